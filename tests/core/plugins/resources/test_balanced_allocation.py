"""NodeResourcesBalancedAllocation: who is left out, and what is counted."""

import pytest

from asched.core.config import args as config
from asched.core.framework.status import Code
from asched.core.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending

GPU = "example.com/gpu"


def on_one_node(
    pod: PodBuilder,
    *held: PodBuilder,
    args: config.NodeResourcesBalancedAllocationArgs | None = None,
) -> int | None:
    """The score of a node with cpu 4, memory 8Gi and 4 gpus; None where the pod is left out."""
    node = a_node("n1").allocatable({GPU: "4"}, cpu="4", memory="8Gi")
    cluster = a_cluster(node, pods=[holder.on("n1") for holder in held])
    plugin = NodeResourcesBalancedAllocation(args, cluster)
    info, view = pending(cluster, pod), all_rows(cluster)
    if plugin.pre_score(info, view, view.live).status.code is Code.SKIP:
        return None
    (score,) = plugin.score(info, view, None).tolist()
    return int(score)


def a_quarter() -> PodBuilder:
    return a_pod("held").requests(cpu="1", memory="2Gi")


@pytest.mark.parametrize(
    ("name", "pod", "expected"),
    [
        ("the published vector", a_pod().requests(cpu="500m"), 71),
        ("what keeps the balance is neutral", a_pod().requests(cpu="1", memory="2Gi"), 75),
        ("a pod that asks for nothing is left out", a_pod(), None),
        ("explicit zeroes are nothing", a_pod().requests(cpu="0", memory="0"), None),
        ("others are nothing to it", a_pod().requests({GPU: "1"}), None),
        (
            "the pod's own level counts here",
            a_pod()
            .requests(cpu="500m")
            .spec(resources={"requests": {"cpu": "1", "memory": "2Gi"}}),
            75,
        ),
    ],
)
def test_on_an_evenly_used_node(name: str, pod: PodBuilder, expected: int | None) -> None:
    assert on_one_node(pod, a_quarter()) == expected


def test_what_repairs_the_balance_scores_high() -> None:
    lopsided = a_pod("held").requests(cpu="4")

    assert on_one_node(a_pod().requests(memory="8Gi"), lopsided) == 100


def test_a_resource_the_pod_does_not_name_is_no_part_of_the_balance() -> None:
    three = config.NodeResourcesBalancedAllocationArgs(
        tuple(config.ResourceSpec(name) for name in ("cpu", "memory", GPU))
    )

    assert on_one_node(a_pod().requests(cpu="500m"), a_quarter(), args=three) == 71
    gpu = a_pod("gpu").requests({GPU: "2"}, cpu="500m")
    # (0.375, 0.25, 0.5) deviates by 0.102, (0.25, 0.25, 0) by 0.118.
    assert on_one_node(gpu, a_quarter(), args=three) == 50 + (50 + 89 - 88) // 2
