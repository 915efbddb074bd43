"""What is offered to groups, and which placement is best."""

from collections.abc import Sequence
from typing import Any

import pytest

from asched.core.framework.placements import EVERYWHERE, Assignments, Placement
from asched.core.framework.status import Code, Status
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD, POD_GROUP
from asched.core.model.workload import CoschedulingGroup, PodGroup
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.hardware.network.plugin import NetworkTopology, NetworkTopologyArgs
from asched.hardware.network.sources import HYPER_NODE, KUEUE_TOPOLOGY, HyperNode
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending

LEVELS = ("zone", "block", "rack")
LABEL = "scheduling.x-k8s.io/pod-group"
CREW = "scheduling.x-k8s.io:default/crew"
GPU = "nvidia.com/gpu"
KUEUE, KAI = "kueue.x-k8s.io/podset-", "kai.scheduler/topology-"
VOLCANO = "volcano.sh/network-topology-"


def a_plugin(cluster: Cluster, **args: Any) -> NetworkTopology:
    return NetworkTopology(NetworkTopologyArgs(**args or {"levels": LEVELS}), cluster)


def a_world(**paths: str) -> Cluster:
    """Nodes by name with their way down, `zone/block/rack`, or the beginning of it."""
    return a_cluster(
        *(
            a_node(name).labels(dict(zip(LEVELS, path.split("/") if path else (), strict=False)))
            for name, path in paths.items()
        )
    )


def tell(cluster: Cluster, **annotations: str) -> None:
    """Of the crew, with these annotations."""
    metadata = {"name": "crew", "namespace": "default", "annotations": annotations}
    cluster.apply(Seen(COSCHEDULING_GROUP, decode(CoschedulingGroup, {"metadata": metadata})))


def a_mate(name: str, group: str = "crew", **annotations: str) -> PodBuilder:
    mate = a_pod(name).labels({LABEL: group})
    return mate.metadata(annotations=annotations) if annotations else mate


def place(cluster: Cluster, pod: PodBuilder, node: str) -> None:
    cluster.apply(Seen(POD, pod.on(node).build()))


def offered(
    cluster: Cluster,
    plugin: NetworkTopology | None = None,
    group: str = CREW,
    parent: Placement = EVERYWHERE,
) -> dict[str, str]:
    """Name of each placement to its nodes, in their order."""
    found = (plugin or a_plugin(cluster)).generate_placements(group, parent)
    assert not isinstance(found, Status), found
    names = [node.name if node else "" for node in cluster.nodes.node_at]
    masks = [one.mask(cluster.nodes).tolist() for one in found]
    return {
        placement.name: " ".join(n for n, is_in in zip(names, mask, strict=True) if is_in)
        for placement, mask in zip(found, masks, strict=True)
    }


PATHS = {"n0": "z/a/1", "n1": "z/a/2", "n2": "z/b/1", "n3": "z/b", "n4": "", "n5": "z/a/1"}
RACKS = {"rack=z/a/1": "n0 n5", "rack=z/a/2": "n1", "rack=z/b/1": "n2"}
BLOCKS = {"block=z/a": "n0 n1 n5", "block=z/b": "n2 n3"}
ZONES = {"zone=z": "n0 n1 n2 n3 n5"}
ALL = {"": "n0 n1 n2 n3 n4 n5"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ALL),
        ({f"{KUEUE}required-topology": "rack"}, RACKS),
        ({f"{KUEUE}required-topology": "zone"}, ZONES),
        ({f"{KUEUE}preferred-topology": "rack"}, {**RACKS, **BLOCKS, **ZONES, **ALL}),
        ({f"{KUEUE}preferred-topology": "block"}, {**BLOCKS, **ZONES, **ALL}),
        (
            {f"{KUEUE}required-topology": "block", f"{KUEUE}preferred-topology": "rack"},
            {**RACKS, **BLOCKS},
        ),
        # what is preferred lies above what is required: it is met anyway
        ({f"{KUEUE}required-topology": "rack", f"{KUEUE}preferred-topology": "zone"}, RACKS),
        ({f"{KAI}required-placement": "block"}, BLOCKS),
        ({f"{KAI}preferred-placement": "zone"}, {**ZONES, **ALL}),
        ({f"{KUEUE}required-topology": "", f"{KAI}required-placement": "block"}, BLOCKS),
        ({f"{KUEUE}preferred-topology": "", f"{KAI}preferred-placement": "zone"}, ZONES | ALL),
        ({f"{VOLCANO}mode": "hard", f"{VOLCANO}highest-tier": "rack"}, RACKS),
        (
            {f"{VOLCANO}mode": "hard", f"{VOLCANO}highest-tier": "block"},
            {**RACKS, **BLOCKS},
        ),
        ({f"{VOLCANO}mode": "hard"}, {**RACKS, **BLOCKS, **ZONES}),
        ({f"{VOLCANO}mode": "soft"}, {**RACKS, **BLOCKS, **ZONES, **ALL}),
        # a limit is for the mode hard alone
        (
            {f"{VOLCANO}mode": "soft", f"{VOLCANO}highest-tier": "block"},
            {**RACKS, **BLOCKS, **ZONES, **ALL},
        ),
        ({f"{VOLCANO}highest-tier": "block"}, ALL),
        ({f"{VOLCANO}mode": "hard", f"{KUEUE}required-topology": "rack"}, RACKS),
        ({f"{VOLCANO}mode": "soft", f"{KUEUE}preferred-topology": "zone"}, {**ZONES, **ALL}),
    ],
)
def test_the_lowest_level_comes_first(
    annotations: dict[str, str], expected: dict[str, str]
) -> None:
    cluster = a_world(**PATHS)
    tell(cluster, **annotations)
    found = offered(cluster)
    assert list(found.items()) == list(expected.items())


def test_a_group_says_what_its_first_pod_does_not_say_and_more_loudly() -> None:
    cluster = a_world(**PATHS)
    tell(cluster)
    plugin = a_plugin(cluster)
    first = a_mate("w0", **{f"{KUEUE}required-topology": "rack"})
    cluster.apply(Seen(POD, first.build()))
    cluster.apply(Seen(POD, a_mate("w1", **{f"{KUEUE}required-topology": "zone"}).build()))
    assert offered(cluster, plugin) == RACKS
    tell(cluster, **{f"{KUEUE}preferred-topology": "rack"})
    assert offered(cluster, plugin) == RACKS
    tell(cluster, **{f"{KUEUE}required-topology": "block"})
    assert offered(cluster, plugin) == BLOCKS
    tell(cluster)
    cluster.apply(Gone(POD, first.build()))
    assert offered(cluster, plugin) == ZONES
    place(cluster, a_mate("w1", **{f"{KUEUE}required-topology": "rack"}), "n5")
    assert offered(cluster, plugin) == {"rack=z/a/1": "n0 n5"}


def test_a_constraint_of_the_group_counts_before_all_annotations() -> None:
    cluster = a_world(**PATHS)
    metadata = {
        "name": "crew",
        "namespace": "default",
        "annotations": {f"{KUEUE}required-topology": "zone", f"{VOLCANO}mode": "hard"},
    }
    spec = {"schedulingConstraints": {"topology": [{"key": "block"}]}}
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, {"metadata": metadata, "spec": spec})))
    assert offered(cluster, group="default/crew") == {**RACKS, **BLOCKS}
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, {"metadata": metadata})))
    assert offered(cluster, group="default/crew") == {**RACKS, **BLOCKS, **ZONES}


@pytest.mark.parametrize(
    ("placed", "expected"),
    [
        ({}, {**RACKS, **BLOCKS}),
        ({"w0": "n0"}, {"rack=z/a/1": "n0 n5", "block=z/a": "n0 n1 n5"}),
        ({"w0": "n0", "w1": "n5"}, {"rack=z/a/1": "n0 n5", "block=z/a": "n0 n1 n5"}),
        ({"w0": "n0", "w1": "n1"}, {"block=z/a": "n0 n1 n5"}),
        ({"w0": "n2", "w1": "n3"}, {"block=z/b": "n2 n3"}),
        ({"w0": "n1", "w1": "lost"}, {"rack=z/a/2": "n1", "block=z/a": "n0 n1 n5"}),
        ({"w0": "n1", "w1": "n2"}, None),
        ({"w0": "n4"}, None),
    ],
)
def test_pods_that_have_places_keep_the_others_with_them(
    placed: dict[str, str], expected: dict[str, str] | None
) -> None:
    cluster = a_world(**PATHS)
    tell(cluster, **{f"{KUEUE}required-topology": "block", f"{KUEUE}preferred-topology": "rack"})
    for name, node in placed.items():
        place(cluster, a_mate(name), node)
    place(cluster, a_mate("x", "others"), "n1")
    if expected is not None:
        assert offered(cluster) == expected
        return
    found = a_plugin(cluster).generate_placements(CREW, EVERYWHERE)
    assert isinstance(found, Status)
    assert "are in no one domain of block" in found.message


def test_within_a_part_of_the_cluster_only_its_nodes_are_offered() -> None:
    cluster = a_world(**PATHS)
    tell(cluster, **{f"{KUEUE}preferred-topology": "block"})
    rows = all_rows(cluster).row_numbers() > 1
    found = offered(cluster, parent=Placement("part", rows))
    assert found == {
        "block=z/a": "n5",
        "block=z/b": "n2 n3",
        "zone=z": "n2 n3 n5",
        "part": "n2 n3 n4 n5",
    }


def test_where_no_node_has_the_level_nothing_is_offered() -> None:
    cluster = a_world(n0="z", n1="")
    tell(cluster, **{f"{KUEUE}required-topology": "rack"})
    assert offered(cluster) == {}


@pytest.mark.parametrize(
    ("group", "annotations", "why"),
    [
        ("default/crew", {}, 'podgroup "crew" not found'),
        ("scheduling.x-k8s.io:default/others", {}, 'podgroup "others" not found'),
        (CREW, {f"{KUEUE}required-topology": "x"}, 'no topology level "x"; there are none'),
        (CREW, {f"{KUEUE}preferred-topology": "x"}, 'no topology level "x"; there are none'),
        (CREW, {"kai.scheduler/topology": "t"}, ""),
        (CREW, {"kai.scheduler/topology": "u"}, '"u": this profile knows no such topology'),
        (CREW, {"kai.scheduler/topology": ""}, '"": this profile knows no such topology'),
        (CREW, {f"{VOLCANO}mode": "hard"}, ""),  # there are no tiers to stay below
        (CREW, {f"{VOLCANO}mode": "soft"}, ""),
        (CREW, {f"{VOLCANO}mode": "x"}, 'mode "x" is neither hard nor soft'),
    ],
)
def test_what_cannot_be_had_is_an_error(group: str, annotations: dict[str, str], why: str) -> None:
    """Of a Topology that is not there."""
    cluster = a_world(**PATHS)
    tell(cluster, **annotations)
    plugin = a_plugin(cluster, source="Kueue", topology="t")
    assert plugin.kinds == (KUEUE_TOPOLOGY,)
    found = plugin.generate_placements(group, EVERYWHERE)
    if not why:
        assert not isinstance(found, Status)
        return
    assert isinstance(found, Status)
    assert found.code is Code.ERROR
    assert why in found.message


# --- which placement -----------------------------------------------------------------------------


def best(plugin: NetworkTopology, placements: Sequence[Placement], *pods: Any) -> list[str]:
    """Names from the best down; equals are told by one name."""
    crew = tuple((pod, "") for pod in pods)
    scores = [plugin.score_placement(CREW, Assignments(one, crew)) for one in placements]
    points = plugin.normalize_placements(scores)
    assert max(points) == 100
    assert min(points) > 0
    by_points: dict[int, str] = {}
    for one, its in zip(placements, points, strict=True):
        by_points[its] = f"{by_points[its]}+{one.name}" if its in by_points else one.name
    return [by_points[its] for its in sorted(by_points, reverse=True)]


def test_a_low_level_counts_before_all_and_within_it_who_has_least_left() -> None:
    paths = {"n0": "z/a/1", "n1": "z/a/2", "n2": "z/b/1", "n3": "z/b/2", "n4": "y/c/1", "n5": ""}
    cluster = a_world(**paths)
    tell(cluster, **{f"{KUEUE}preferred-topology": "rack"})
    # CPU left: 64, but 60 on n1 and 62 on n3; less than nothing on n4
    for number, (cpu, node) in enumerate((("4", "n1"), ("2", "n3"), ("70", "n4"), ("1", "n5"))):
        place(cluster, a_pod(f"p{number}").requests(cpu=cpu), node)
    plugin = a_plugin(cluster)
    found = plugin.generate_placements(CREW, EVERYWHERE)
    assert not isinstance(found, Status)
    assert best(plugin, found[::-1], pending(cluster, a_pod().requests(cpu="1"))) == [
        "rack=y/c/1",
        "rack=z/a/2",
        "rack=z/b/2",
        "rack=z/b/1+rack=z/a/1",
        "block=y/c",
        "block=z/a",
        "block=z/b",
        "zone=y",
        "zone=z",
        "",
    ]


@pytest.mark.parametrize(
    ("crew", "tightest"),
    [
        ([{"cpu": "1"}], "rack=z/a/1"),
        ([{"cpu": "1", GPU: "1"}], "rack=z/a/2"),
        ([{"cpu": "1", "memory": "1Gi"}], "rack=z/a/1"),
        ([{"cpu": "1", GPU: "0"}], "rack=z/a/1"),
        ([{"cpu": "1", "example.com/nobody-has": "1"}], "rack=z/a/1"),
        # who leads the others has no device, or another
        ([{"cpu": "1"}, {"cpu": "1", GPU: "1"}], "rack=z/a/2"),
        ([{"cpu": "1", GPU: "1"}, {"cpu": "1"}], "rack=z/a/2"),
    ],
)
def test_devices_that_the_group_asks_for_are_scarcer_than_cpu(
    crew: list[dict[str, str]], tightest: str
) -> None:
    cluster = a_cluster(
        *(
            a_node(f"n{rack}")
            .labels(zone="z", block="a", rack=rack)
            .allocatable({"cpu": cpu, "memory": memory, GPU: gpus})
            for rack, cpu, memory, gpus in (
                ("1", "8", "64Gi", "9"), ("2", "16", "32Gi", "2"), ("3", "9", "8Gi", "4"),
            )
        )
    )  # fmt: skip
    tell(cluster, **{f"{KUEUE}required-topology": "rack"})
    plugin = a_plugin(cluster)
    found = plugin.generate_placements(CREW, EVERYWHERE)
    assert not isinstance(found, Status)
    pods = [pending(cluster, a_pod(f"w{at}").requests(one)) for at, one in enumerate(crew)]
    assert best(plugin, found, *pods)[0] == tightest


def test_a_placement_of_another_name_has_the_rank_of_no_level() -> None:
    cluster = a_world(n0="z/a/1", n1="z/a/1")
    plugin = a_plugin(cluster)
    everybody = all_rows(cluster).row_numbers() >= 0
    ours, no_ones = Placement("zone=z", everybody), Placement("part", everybody)
    pod = pending(cluster, a_pod())
    assert best(plugin, [no_ones, Placement("zone=z"), ours], pod) == ["zone=z", "part+zone=z"]


@pytest.mark.parametrize("name", ["rack", "a=b", "=", "rack=z"])
def test_the_name_of_a_tier_may_have_any_character(name: str) -> None:
    cluster = a_world(n0="", n1="")
    for tier, called, members in ((2, name + "s", "n0 n1"), (1, name, "n0")):
        held = [
            {"type": "Node", "selector": {"exactMatch": {"name": member}}}
            for member in members.split()
        ]
        spec = {"tier": tier, "tierName": called, "members": held}
        one = {"metadata": {"name": f"h{tier}"}, "spec": spec}
        cluster.apply(Seen(HYPER_NODE, decode(HyperNode, one)))
    tell(cluster, **{f"{VOLCANO}mode": "soft"})
    plugin = a_plugin(cluster, source="HyperNode")
    found = plugin.generate_placements(CREW, EVERYWHERE)
    assert not isinstance(found, Status)
    ranked = best(plugin, found[::-1], pending(cluster, a_pod()))
    assert ranked == [f"{name}=h2/h1", f"{name}s=h2", ""]
