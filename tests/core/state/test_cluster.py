"""A pod's life in the cluster: pending, assumed, placed, orphaned, gone; each step counted once."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.state.audit import recount
from asched.core.state.cluster import CannotAssumeError, Cluster, ObservedChange
from asched.core.state.facts import Gone, Listed, Seen, WallClock
from asched.core.state.nodes import POD_LABELS, PODS_MOVED, START_TIMES
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending

ONE = 1000


def cpu(cluster: Cluster, node: str = "n1") -> tuple[int, int]:
    """(milli-CPU asked for, pods) on a node."""
    row, read = cluster.nodes.row_of[node], cluster.nodes.columns.read
    return int(read("requested")[0, row]), int(read("pod_count")[row])


def web(name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu="1")


def see(cluster: Cluster, *built: PodBuilder | NodeBuilder) -> list[Any]:
    sights = []
    for one in built:
        kind = POD if isinstance(one, PodBuilder) else NODE
        sights += cluster.apply(Seen(kind, one.build()))
    return sights


def moved(cluster: Cluster, cursor: int) -> list[tuple[int, int]]:
    return list(cluster.nodes.log.since(cursor) or ())


def test_a_pending_pod_counts_nowhere() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    assert (cpu(cluster), cluster.placed, list(cluster.pods_seen)) == ((0, 0), {}, ["default/web"])
    assert not cluster.is_supposed


def test_an_assumed_pod_counts_and_its_confirmation_counts_nothing_more() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    info = pending(cluster, web())
    cluster.assume(info, "n1")
    assert cpu(cluster) == (ONE, 1)
    assert cluster.is_assumed("uid-web")
    cursor = cluster.nodes.log.end
    see(cluster, web().on("n1"))
    assert cpu(cluster) == (ONE, 1)
    assert not cluster.is_assumed("uid-web")
    assert cluster.placed["uid-web"] is info
    assert moved(cluster, cursor) == []
    assert recount(cluster) == []


def test_a_pod_that_counts_already_cannot_be_assumed() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    with pytest.raises(CannotAssumeError, match=r"pod uid-web\(default/web\) is in the cache"):
        cluster.assume(pending(cluster, web()), "n1")


def test_what_was_assumed_is_given_back_once() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    info = pending(cluster, web())
    cluster.assume(info, "n1")
    assert cluster.forget(info)
    assert (cpu(cluster), info.row, info.node_name, info.assumed) == ((0, 0), -1, "", False)
    assert not cluster.forget(info)
    see(cluster, web().on("n1"))
    assert not cluster.forget(info), "it is placed for good"
    assert cpu(cluster) == (ONE, 1)


def test_the_api_knows_better_where_a_pod_is() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[web()])
    cluster.assume(pending(cluster, web()), "n1")
    see(cluster, web().on("n2"))
    assert (cpu(cluster, "n1"), cpu(cluster, "n2")) == ((0, 0), (ONE, 1))
    assert not cluster.is_assumed("uid-web")
    assert recount(cluster) == []


@pytest.mark.parametrize(
    "newer",
    [
        web().on("n1").priority(9),
        web().on("n1").metadata(deletionTimestamp="2026-01-01T00:00:00Z"),
        a_pod("web").requests(cpu="2").on("n1"),
    ],
)
def test_a_placed_pod_that_counts_otherwise_is_counted_anew(newer: PodBuilder) -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    cursor = cluster.nodes.log.end
    see(cluster, newer)
    assert (0, PODS_MOVED) in moved(cluster, cursor)
    assert recount(cluster) == []
    info = cluster.placed["uid-web"]
    assert info.pod.priority == newer.build().priority
    assert dict(cluster.priorities) == {info.pod.priority: 1}


def test_new_labels_of_a_placed_pod_are_logged_as_that() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    cursor = cluster.nodes.log.end
    see(cluster, web().on("n1").labels(a="b"))
    assert moved(cluster, cursor) == [(0, POD_LABELS)]
    assert cluster.placed["uid-web"].cls.label_set.labels == {"a": "b"}
    assert recount(cluster) == []


def test_a_start_matters_to_victims_alone() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    cursor = cluster.nodes.log.end
    see(cluster, web().on("n1").status(startTime="2026-01-01T00:00:00Z"))
    assert moved(cluster, cursor) == [(0, START_TIMES)]
    see(cluster, web().on("n1").status(startTime="2026-01-01T00:00:00Z", phase="Running"))
    assert moved(cluster, cursor) == [(0, START_TIMES)]


def test_a_pod_on_an_unknown_node_counts_when_that_comes() -> None:
    cluster = a_cluster(pods=[web().on("n1"), web("other").on("n2")])
    assert cluster.placed["uid-web"].row == -1
    see(cluster, a_node("n1"))
    assert cpu(cluster) == (ONE, 1)
    assert [info.pod.metadata.name for info in cluster.pods_on(0).values()] == ["web"]
    assert recount(cluster) == []


def test_pods_of_a_node_that_goes_wait_for_it() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[web().on("n1"), web("b").on("n2")])
    (sight,) = cluster.apply(Gone(NODE, a_node("n1").build()))
    assert (sight.old.name, sight.new) == ("n1", None)
    assert cluster.placed["uid-web"].row == -1
    assert cpu(cluster, "n2") == (ONE, 1)
    assert cluster.apply(Gone(NODE, a_node("n1").build())) == []
    cluster.apply(Gone(POD, web().on("n1").build()))
    see(cluster, a_node("n1"))
    assert cpu(cluster, "n1") == (0, 0)
    assert recount(cluster) == []


def test_another_pod_of_the_same_name_takes_the_place_of_the_first() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    sights = see(cluster, web().metadata(uid="anew"))
    assert [(s.old and s.old.uid, s.new and s.new.uid) for s in sights] == [
        ("uid-web", None),
        (None, "anew"),
    ]
    assert (cpu(cluster), cluster.placed) == ((0, 0), {})
    assert cluster.pods_seen["default/web"].uid == "anew"


def test_the_end_of_a_namesake_is_nobody_s() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    assert cluster.apply(Gone(POD, web().metadata(uid="another").build())) == []
    assert cpu(cluster) == (ONE, 1)
    assert cluster.apply(Gone(POD, web("unknown").build())) == []


def test_an_assumed_pod_that_goes_without_a_node_is_given_back_by_its_cycle() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    cluster.assume(pending(cluster, web()), "n1")
    (sight,) = cluster.apply(Gone(POD, web().build()))
    assert (sight.old.uid, sight.new) == ("uid-web", None)
    assert cluster.is_assumed("uid-web")


def test_the_last_version_tells_of_a_placement_that_was_missed() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    cluster.assume(pending(cluster, web()), "n1")
    (sight,) = cluster.apply(Gone(POD, web().on("n1").build()))
    assert sight.old.spec.node_name == "n1"
    assert (cpu(cluster), cluster.placed) == ((0, 0), {})


def test_what_rules_do_not_read_is_told_to_nobody() -> None:
    cluster = a_cluster()

    def group(min_count: int, *conditions: str) -> PodGroup:
        spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
        status = {"conditions": [{"type": type_, "status": "True"} for type_ in conditions]}
        metadata = {"name": "crew", "namespace": "default", "uid": "u"}
        return decode(PodGroup, {"metadata": metadata, "spec": spec, "status": status})

    first, other, last = group(1), group(1, "Scheduled"), group(2, "Scheduled")
    assert cluster.apply(Seen(POD_GROUP, first)) == [ObservedChange(POD_GROUP, None, first)]
    assert cluster.apply(Seen(POD_GROUP, other)) == []
    assert cluster.apply(Seen(POD_GROUP, last)) == [ObservedChange(POD_GROUP, other, last)]
    assert cluster.apply(Gone(POD_GROUP, last)) == [ObservedChange(POD_GROUP, last, None)]
    assert cluster.apply(Gone(POD_GROUP, group(2))) == []


def versioned(name: str, version: str, uid: str = "") -> PodBuilder:
    return web(name).metadata(resourceVersion=version, uid=uid or f"uid-{name}")


def listed(*pods: PodBuilder) -> Listed:
    return Listed(POD, tuple(pod.build() for pod in pods))


def names(sights: list[Any]) -> list[tuple[str, str]]:
    return [
        (s.old.metadata.resource_version if s.old else "", s.new.metadata.name if s.new else "")
        for s in sights
    ]


def test_of_a_list_only_what_differs_counts() -> None:
    cluster = a_cluster()
    see(cluster, versioned("same", "1"), versioned("newer", "1"), versioned("gone", "1"))
    sights = cluster.apply(
        listed(versioned("same", "1"), versioned("newer", "2"), versioned("new", "3"))
    )
    assert sorted(names(sights)) == [("", "new"), ("1", ""), ("1", "newer")]
    assert sorted(cluster.pods_seen) == ["default/new", "default/newer", "default/same"]


def test_in_a_list_the_same_version_of_another_object_is_another_object() -> None:
    cluster = a_cluster(a_node("n1"))
    see(cluster, versioned("web", "1").on("n1"))
    cluster.apply(listed(versioned("web", "1", uid="anew")))
    assert (cluster.pods_seen["default/web"].uid, cpu(cluster)) == ("anew", (0, 0))


def test_nodes_that_a_list_leaves_out_are_gone() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    cluster.apply(Listed(NODE, (a_node("n2").build(), a_node("n3").build())))
    assert sorted(cluster.nodes.row_of) == ["n2", "n3"]


def test_calendars_are_ahead_of_turns() -> None:
    cluster = a_cluster()
    cluster.begin_turn(10.0, is_quiet=False)
    cluster.apply(WallClock(100.0))
    assert cluster.wall_clock_s == 110.0
    cluster.begin_turn(12.0, is_quiet=False)
    assert cluster.wall_clock_s == 112.0
    cluster.apply(WallClock(50.0))
    assert cluster.wall_clock_s == 62.0


def test_rows_are_given_back_in_quiet_turns_alone() -> None:
    cluster = a_cluster(*(a_node(f"n{number}") for number in range(130)))
    for number in range(10, 130):
        cluster.apply(Gone(NODE, a_node(f"n{number}").build()))
    cluster.begin_turn(1.0, is_quiet=False)
    assert cluster.nodes.height == 130
    cluster.begin_turn(1.0, is_quiet=True)
    assert cluster.nodes.height == 10
    see(cluster, a_node("n10"), web().on("n10"))
    assert cpu(cluster, "n10") == (ONE, 1)


def test_a_singleton_is_made_once() -> None:
    cluster = a_cluster()
    assert cluster.singleton(Dummy) is cluster.singleton(Dummy)
    assert cluster.singleton(Dummy).cluster is cluster


class Dummy:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster


def test_counts_move_with_what_counts_beside_amounts() -> None:
    cluster = a_cluster(a_node("n1"))
    before = cluster.counts
    see(cluster, web().on("n1"))
    assert cluster.counts == before
    see(cluster, a_pod("port").host_port(80).on("n1"))
    assert (cluster.counts, cluster.counts_settled) == (before + 1, before + 1)
    info = pending(cluster, a_pod("port2").host_port(81))
    with cluster.supposing() as supposition:
        supposition.there([info], 0)
    assert cluster.counts > before + 1
    assert cluster.counts_settled == before + 1


def test_priorities_and_usage_follow_pods_with_places() -> None:
    cluster = a_cluster(a_node("n1"))
    cluster.usage.kept()
    see(cluster, web().priority(5).on("n1"), web("b").on("unknown"))
    assert dict(cluster.priorities) == {5: 1}, "nobody is asked to leave a node that is not there"
    assert cluster.usage.of("default") == {"cpu": 2000}
    cluster.apply(Seen(NODE, a_node("unknown").build()))
    assert dict(cluster.priorities) == {5: 1, 0: 1}
    cluster.apply(Gone(NODE, a_node("unknown").build()))
    assert dict(cluster.priorities) == {5: 1}
    cluster.apply(Gone(POD, web("b").on("unknown").build()))
    assert dict(cluster.priorities) == {5: 1}
    assert cluster.usage.of("default") == {"cpu": 1000}


def test_a_node_is_found_by_its_name() -> None:
    cluster = a_cluster(a_node("n1"))
    node = cluster.node_of("n1")
    assert node is not None
    assert node.name == "n1"
    assert cluster.node_of("n2") is None
    assert isinstance(web().build(), Pod)
