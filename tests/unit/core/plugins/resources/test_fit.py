"""NodeResourcesFit: what is left, who is to blame, what is ignored, and the strategies."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.config import args as config
from asched.core.framework.status import Code
from asched.core.plugins.resources.fit import NodeResourcesFit
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    a_cluster,
    a_node,
    a_pod,
    all_rows,
    pending,
)

GPU = "example.com/gpu"
U, UAU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def small(name: str = "n1") -> NodeBuilder:
    return a_node(name).offering_only(cpu="4", memory="8Gi", ephemeral_storage="10Gi", pods="3")


@dataclass(frozen=True)
class Case:
    name: str
    pod: PodBuilder
    node: NodeBuilder
    reasons: str
    code: Code = Code.SUCCESS


#: On each node a pod runs that holds cpu 3, memory 1Gi and no gpu.
CASES = [
    Case("what is left is enough", a_pod().requests(cpu="1", memory="7Gi"), small(), ""),
    Case("a millicore too much", a_pod().requests(cpu="1001m"), small(), "Insufficient cpu", U),
    Case(
        "more than there ever is", a_pod().requests(cpu="4001m"), small(), "Insufficient cpu", UAU
    ),
    Case("nothing requested always fits", a_pod(), small().allocatable(cpu="1"), ""),
    Case("an explicit zero too", a_pod().requests(cpu="0"), small().allocatable(cpu="1"), ""),
    Case("no room for one more pod", a_pod(), small().allocatable(pods="1"), "Too many pods", U),
    Case("no room at all", a_pod(), small().allocatable(pods="0"), "Too many pods", U),
    Case(
        "all reasons are told in order, one of them hopeless",
        a_pod().requests({GPU: "1"}, cpu="2", memory="9Gi", ephemeral_storage="9Gi"),
        small().allocatable({GPU: "0"}, pods="1"),
        f"Too many pods, Insufficient cpu, Insufficient memory, Insufficient {GPU}",
        UAU,
    ),
    Case(
        "others come by name",
        a_pod().requests({"hugepages-2Mi": "2Mi", GPU: "1"}),
        small().allocatable({GPU: "0", "hugepages-2Mi": "0"}),
        f"Insufficient {GPU}, Insufficient hugepages-2Mi",
        UAU,
    ),
    Case(
        "a resource nobody ever named is not there",
        a_pod().requests({GPU: "1"}),
        small(),
        f"Insufficient {GPU}",
        UAU,
    ),
    Case("a name that nobody counts is no request", a_pod().requests({"colour": "9"}), small(), ""),
    Case(
        "the largest init container counts",
        a_pod().requests(cpu="500m").init(cpu="2"),
        small(),
        "Insufficient cpu",
        U,
    ),
    Case(
        "overhead is added",
        a_pod().requests(cpu="1").spec(overhead={"cpu": "1m"}),
        small(),
        "Insufficient cpu",
        U,
    ),
    Case(
        "the pod's own level replaces the containers'",
        a_pod().requests(cpu="500m").spec(resources={"requests": {"cpu": "2"}}),
        small(),
        "Insufficient cpu",
        U,
    ),
    Case(
        "parts are rounded once, at the end",
        a_pod().requests(cpu="500.4m").container(cpu="499.6m"),
        small(),
        "",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    holder = a_pod("holder").requests(cpu="3", memory="1Gi").on("n1")
    cluster = a_cluster(case.node, pods=[holder])
    plugin = NodeResourcesFit(None, cluster)
    pod = pending(cluster, case.pod)

    (code,) = plugin.filter(pod, all_rows(cluster), None).tolist()

    assert bool(code) == bool(case.reasons)
    if code:
        status = plugin.explain(pod, code)
        assert (status.message, status.code) == (case.reasons, case.code)


@pytest.mark.parametrize(
    ("name", "args", "rejected"),
    [
        ("by name", config.NodeResourcesFitArgs(ignored_resources=(GPU,)), False),
        ("by group", config.NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), False),
        ("another group", config.NodeResourcesFitArgs(ignored_resource_groups=("example",)), True),
        ("only names with a domain", config.NodeResourcesFitArgs(ignored_resources=("cpu",)), True),
        ("no huge pages", config.NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi",)), True),
    ],
)
def test_ignored_resources(name: str, args: config.NodeResourcesFitArgs, rejected: bool) -> None:
    cluster = a_cluster(small())
    native = {"cpu": "5", "hugepages-2Mi": "2Mi"}
    wanted = {n: native[n] for n in args.ignored_resources if n in native} or {GPU: "1"}
    pod = pending(cluster, a_pod().requests(wanted))

    codes = NodeResourcesFit(args, cluster).filter(pod, all_rows(cluster), None)

    assert codes.astype(bool).tolist() == [rejected]


def test_a_resource_that_a_class_stands_for_is_left_to_devices_where_no_plugin_offers_it() -> None:
    device_class = {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}}
    implicit = "deviceclass.resource.kubernetes.io/gpus"
    cluster = a_cluster(
        small("bare"),
        small("zero").allocatable({GPU: "0"}),
        small("one").allocatable({GPU: "1"}),
        deviceclasses=[device_class],
    )
    plugin = NodeResourcesFit(None, cluster)

    two = pending(cluster, a_pod().requests({GPU: "2"}))
    by_class = pending(cluster, a_pod("b").requests({implicit: "2"}))

    assert plugin.filter(two, all_rows(cluster), None).astype(bool).tolist() == [0, 0, 1]
    assert plugin.filter(by_class, all_rows(cluster), None).tolist() == [0, 0, 0]


def test_more_resources_than_there_are_bits_are_still_told() -> None:
    cluster = a_cluster(small())
    plugin = NodeResourcesFit(None, cluster)
    pod = pending(cluster, a_pod().requests({f"example.com/r{i:02}": "1" for i in range(40)}))

    (code,) = plugin.filter(pod, all_rows(cluster), None).tolist()

    status = plugin.explain(pod, code)
    assert status.code is UAU
    assert status.reasons == tuple(f"Insufficient example.com/r{i:02}" for i in range(40))


# --- scores --------------------------------------------------------------------------------------


def score(args: config.NodeResourcesFitArgs | None, cluster: Cluster, pod: PodBuilder) -> list[int]:
    plugin = NodeResourcesFit(args, cluster)
    view = all_rows(cluster)
    whole = plugin.score(pending(cluster, pod), view, None).tolist()
    for row in range(len(whole)):
        single = NodeView(cluster.nodes, np.array([row], dtype=np.int32))
        assert plugin.score(pending(cluster, pod), single, None).tolist() == [whole[row]]
    return whole


def strategy(
    kind: str, *resources: tuple[str, int], shape: tuple[tuple[int, int], ...] = ()
) -> config.NodeResourcesFitArgs:
    corners = tuple(config.UtilizationShapePoint(x, y) for x, y in shape)
    return config.NodeResourcesFitArgs(
        scoring_strategy=config.ScoringStrategy(
            kind,
            tuple(config.ResourceSpec(*entry) for entry in resources) or config.CPU_AND_MEMORY,
            config.RequestedToCapacityRatio(corners) if corners else None,
        )
    )


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("by default the emptier", None, 67),
        ("the fuller", strategy(config.MOST_ALLOCATED), 32),
        (
            "along a curve, rounded",
            strategy(
                config.REQUESTED_TO_CAPACITY_RATIO,
                ("cpu", 3),
                ("memory", 1),
                shape=((0, 0), (100, 10)),
            ),
            35,
        ),
    ],
)
def test_the_published_vectors(
    name: str, args: config.NodeResourcesFitArgs | None, expected: int
) -> None:
    holder = a_pod("holder").requests(cpu="1", memory="2Gi").on("n1")
    cluster = a_cluster(a_node("n1").allocatable(cpu="4", memory="8Gi"), pods=[holder])

    assert score(args, cluster, a_pod().requests(cpu="500m")) == [expected]


def test_a_strategy_without_resources_is_refused() -> None:
    args = config.NodeResourcesFitArgs(
        scoring_strategy=config.ScoringStrategy(resources=(), type=config.LEAST_ALLOCATED)
    )
    with pytest.raises(ValueError, match="resources not found"):
        NodeResourcesFit(args, Cluster())


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="'Random' is unknown"):
        NodeResourcesFit(strategy("Random"), Cluster())


@pytest.mark.parametrize("ratio", [None, config.RequestedToCapacityRatio(())])
def test_a_curve_without_corners_is_refused(ratio: config.RequestedToCapacityRatio | None) -> None:
    kind = config.REQUESTED_TO_CAPACITY_RATIO
    args = config.NodeResourcesFitArgs(
        scoring_strategy=config.ScoringStrategy(kind, config.CPU_AND_MEMORY, ratio)
    )
    with pytest.raises(ValueError, match="shape must not be empty"):
        NodeResourcesFit(args, Cluster())
