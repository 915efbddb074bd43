"""API servers label a pod as they bind it: it is counted by its new labels, and by nothing else."""

import pytest

from asched.core.cluster.audit import recount
from asched.core.cluster.counters import CounterKey, PodPredicate
from asched.core.cluster.facts import Seen
from asched.core.cluster.nodes import Aspect
from asched.core.model.kinds import POD
from tests.builders import a_cluster, a_node, a_pod, pending
from tests.unit.core.cluster.topology_keys import key

ZONE = {"zone": "a"}
GONE = "2026-01-01T00:00:00Z"


def a_world():
    """Two nodes, and a pod that is assumed to be on the first."""
    cluster = a_cluster(a_node("n1").labels(ZONE), a_node("n2").labels({"zone": "b"}))
    counters = [cluster.counter(key(text, "default")) for text in ("app=web", "zone=a", "!zone")]
    info = pending(cluster, the_pod())
    cluster.assume(info, "n1")
    return cluster, info, counters


def the_pod():
    return a_pod("web").labels(app="web").requests(cpu="500m").host_port(80)


def since(cluster, cursor):
    """The rows that changed, and in which aspects."""
    log = cluster.nodes.log
    return set(log.rows(cursor, -1)), Aspect(log.touched(cursor))


def test_a_confirmation_with_more_labels_moves_the_counts_of_labels_alone() -> None:
    cluster, info, counters = a_world()
    cursor, versions = cluster.nodes.log.end, [c.version for c in counters]
    assert [c.total for c in counters] == [1, 0, 1]

    cluster.apply(Seen(POD, the_pod().labels(ZONE).on("n1").build()))

    assert [c.total for c in counters] == [1, 1, 0]
    moved = [c.version != version for c, version in zip(counters, versions, strict=True)]
    assert moved == [False, True, True]
    assert since(cluster, cursor) == ({0}, Aspect.POD_LABELS)
    assert cluster.placed[info.pod.uid] is info
    assert not info.assumed
    assert info.cls.label_set.labels == {"app": "web", "zone": "a"}
    assert recount(cluster) == []

    gone = cluster.nodes.log.end
    cluster.apply(Seen(POD, the_pod().labels(ZONE).on("n2").build()))
    assert since(cluster, gone) == ({0, 1}, Aspect.PODS)
    assert recount(cluster) == []


@pytest.mark.parametrize(
    "changed",
    [
        lambda pod: pod.requests(cpu="501m"),
        lambda pod: pod.host_port(81),
        lambda pod: pod.priority(7),
        lambda pod: pod.metadata(deletionTimestamp=GONE),
    ],
)
def test_more_than_labels_is_counted_anew(changed) -> None:
    cluster, _, counters = a_world()
    cursor = cluster.nodes.log.end

    cluster.apply(Seen(POD, changed(the_pod().labels(ZONE)).on("n1").build()))

    assert since(cluster, cursor) == ({0}, Aspect.PODS)
    assert [c.total for c in counters] == [1, 1, 0]
    assert recount(cluster) == []


def test_its_own_terms_stay_where_they_are() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
            ]
        }
    }
    cluster = a_cluster(a_node("n1").labels(ZONE))
    pod = the_pod().spec(affinity=near)
    cluster.assume(pending(cluster, pod), "n1")
    label_set = cluster.classes.class_of(pod.build()).label_set
    (term,) = cluster.topology.matching_terms(label_set, {})

    cluster.apply(Seen(POD, pod.labels(ZONE).on("n1").build()))

    assert term.tally.total == 1
    assert recount(cluster) == []


def test_what_counts_staying_pods_only_does_not_see_a_terminating_one() -> None:
    predicate = PodPredicate(frozenset(["default"]), key("zone=a").predicates[0].selector)
    cluster = a_cluster(a_node("n1").labels(ZONE))
    staying = cluster.counter(CounterKey((predicate,), counts_terminating=False))
    every = cluster.counter(CounterKey((predicate,), counts_terminating=True))
    for labels in ({}, ZONE):
        cluster.apply(
            Seen(POD, the_pod().labels(labels).metadata(deletionTimestamp=GONE).on("n1").build())
        )

    assert (staying.total, every.total) == (0, 1)
    assert recount(cluster) == []
