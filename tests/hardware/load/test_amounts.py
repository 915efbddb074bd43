"""What pods ask for and may use at most, and the sums of it on nodes."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.core.state.facts import Gone, Seen
from asched.hardware.load.amounts import PlacedAmounts, amounts_of
from tests.builders import a_cluster, a_node, a_pod

Json = dict[str, Any]


def container(requests: str = "", limits: str = "") -> Json:
    """Amounts as `cpu memory`, in milli-CPU and bytes; `-` for none."""

    def told(text: str) -> Json:
        named = zip(("cpu", "memory"), text.split(), strict=False)
        return {key: f"{one}m" if key == "cpu" else one for key, one in named if one != "-"}

    return {"name": "c", "resources": {"requests": told(requests), "limits": told(limits)}}


@pytest.mark.parametrize(
    ("containers", "inits", "overhead", "requests", "limits"),
    [
        ([container()], [], {}, (0, 0), (0, 0)),
        ([container("100 20")], [], {}, (100, 20), (100, 20)),
        ([container("100 20", "300 10")], [], {}, (100, 20), (300, 20)),
        ([container("100 20", "50 70")], [], {}, (100, 20), (100, 70)),
        ([container("", "300 70")], [], {}, (0, 0), (300, 70)),
        ([container("100 20", "300"), container("1 -", "- 9")], [], {}, (101, 20), (300, 20)),
        ([container("100 20")], [container("90 30", "500 -")], {}, (100, 30), (500, 30)),
        ([container("1 1"), container("1 1")], [container("5 2"), container("1 3")], {},
         (5, 3), (5, 3)),
        ([container("100 20", "300 40")], [container("200 10")], {"cpu": "7m", "memory": "5"},
         (207, 25), (307, 45)),
        ([], [], {"cpu": "7m"}, (7, 0), (7, 0)),
    ],
)  # fmt: skip
def test_containers_together_or_the_largest_init_container_and_overhead(
    containers: list[Json],
    inits: list[Json],
    overhead: Json,
    requests: tuple[int, int],
    limits: tuple[int, int],
) -> None:
    spec = {"containers": containers, "initContainers": inits, "overhead": overhead}
    found = amounts_of(decode(Pod, {"metadata": {"name": "p", "namespace": "d"}, "spec": spec}))
    assert (found.requests, found.limits) == (requests, limits)


def test_sums_of_nodes_follow_their_pods_row_by_row() -> None:
    nodes = [a_node(f"n{at}") for at in range(12)]
    pods = [a_pod(f"p{at}").spec(containers=[container("1 2", "3 4")]) for at in range(3)]
    cluster = a_cluster(*nodes, pods=[pods[0].on("n1"), pods[1].on("n1")])
    placed = PlacedAmounts(cluster)
    assert placed.by_row()[:, :3].T.tolist() == [[0] * 4, [2, 4, 6, 8], [0] * 4]
    passes = placed.full_version
    cluster.apply(Seen(POD, pods[2].on("n2").build()))
    cluster.apply(Gone(POD, pods[0].build()))
    assert placed.by_row()[:, :3].T.tolist() == [[0] * 4, [1, 2, 3, 4], [1, 2, 3, 4]]
    cluster.apply(Gone(POD, pods[1].build()))
    assert placed.by_row()[:, 1].tolist() == [0] * 4
    assert placed.full_version == passes
