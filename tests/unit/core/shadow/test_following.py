"""Decisions of another scheduler, one by one: what is found, and when it is looked at again."""

import pytest

from asched.core.plugins.default_preemption import DefaultPreemption
from asched.insight.shadow.finding import EXAMPLES_MAX, text
from asched.insight.shadow.following import AGAIN_MAX, AGAIN_S, BACKOFF_S, LATE_S
from tests.builders import PodBuilder, a_node, a_pod
from tests.unit.core.shadow.followed import (
    IN_VAIN,
    NAME,
    PACKS,
    REFUSED,
    Looking,
    equal,
    of_size,
    small,
)


def test_the_only_node_that_fits_is_the_same() -> None:
    looking = Looking(*equal("n1"), *equal("tiny", cpu="500m"))
    looking.waits(small())
    looking.binds(small(), "n1")
    assert looking.found() == {"same": 1}
    assert looking.play.node_of("uid-web") == "n1"


def test_either_of_two_equal_nodes_is_right() -> None:
    looking = Looking(*equal("n1", "n2"))
    for number, node in enumerate(("n1", "n2")):
        looking.waits(small(f"web-{number}"))
        looking.binds(small(f"web-{number}"), node)
    found = looking.found()
    assert sum(found.values()) == 2
    assert set(found) <= {"same", "tie"}


def test_a_lower_score_is_told_with_the_points_of_each_plugin() -> None:
    looking = Looking(*equal("n1", "n2"))
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    assert looking.found() == {}  # it may be the order of bindings
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found() == {"score": 1}
    told = looking.example()
    assert (told["theirs"], told["ours"]) == ("n1", "n2")
    points = {one["plugin"]: one for one in told["details"]["points"]}
    assert points["NodeResourcesFit"]["theirs"] < points["NodeResourcesFit"]["ours"]
    assert told["plugin"] in points
    sums = {side: sum(one[side] for one in points.values()) for side in ("theirs", "ours")}
    assert sums == {"theirs": told["details"]["score"], "ours": told["details"]["ours"]}
    assert "web on n1, here n2" in text(looking.tally.as_json())


@pytest.mark.parametrize("own", [0, 2], ids=["its node as seen", "its node fuller"])
def test_two_nodes_that_were_full_by_bindings_seen_later_are_lag(own: int) -> None:
    """1. x1 fills n1, x2 fills n2, maybe y goes to n3. 2. So web goes to n3, which is fuller than
    n4. 3. z goes to n4. 4. The binding of web is seen first.
    """
    nodes = [a_node(f"n{k}").allocatable(cpu="8", memory="16Gi", pods="110") for k in range(1, 5)]
    looking = Looking(*nodes, profiles=[PACKS])
    there = zip(range(1, 5), (7, 6, 4 - own, 3), strict=True)
    looking.waits(*(of_size(f"there-{k}", size).on(f"n{k}") for k, size in there))
    x1, x2, z, web = of_size("x1", 1), of_size("x2", 2), of_size("z", 3), of_size("web", 1)
    later = [(x1, "n1"), (x2, "n2"), *([(of_size("y", own), "n3")] if own else ()), (z, "n4")]
    looking.waits(*(pod for pod, _ in later), web)
    for pod, node in ((web, "n3"), *later):
        looking.binds(pod, node)
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    told = next(one for one in looking.tally.as_json()["examples"] if one["pod"] == "default/web")
    assert (told["outcome"], told["ours"]) == ("lag", "n1")
    before = [f"default/{pod.build().metadata.name}" for pod, _ in later[:-1]]
    assert [one["pod"] for one in told["details"]["decidedBefore"]] == before


def test_a_node_that_does_not_fit_is_told_with_who_refuses_it() -> None:
    looking = Looking(*equal("n1"), a_node("closed").taints("team=a:NoSchedule"))
    looking.waits(small())
    looking.binds(small(), "closed")
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found() == {"refused": 1}
    told = looking.example()
    assert told["plugin"] == "TaintToleration"
    assert told["details"]["reason"] == "node(s) had untolerated taint(s)"
    assert looking.tally.plugins[NAME, "TaintToleration", "refused"] == 1


def test_a_node_nobody_here_knows() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    looking.binds(small(), "n9")
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found() == {"unknown_node": 1}


def test_bindings_in_another_order_than_the_decisions_are_lag() -> None:
    """1. a goes to n1, then b to n2, which is emptier by then. 2. b's binding is seen first: as if
    it had passed over n1, the better one of two equals with more room. 3. Once a is seen, all is
    well.
    """
    nodes = [*equal("n1", cpu="5"), *equal("n2", cpu="4")]
    looking = Looking(*nodes)
    large = a_pod("a").requests(cpu="3", memory="3Gi")
    looking.waits(large, small("b"))
    looking.binds(small("b"), "n2")
    assert looking.found() == {}
    looking.binds(large, "n1")
    looking.later(AGAIN_S)
    assert looking.found() == {"same": 1, "lag": 1}
    details = looking.example()["details"]
    assert details["first"] == "score"
    (other,) = details["decidedBefore"]
    assert (other["pod"], other["node"], other["places"]) == ("default/a", "n1", 1)
    assert "agrees if decided before it: default/a on n1" in text(looking.tally.as_json())


def test_a_binding_that_takes_long_is_looked_for_once_more() -> None:
    nodes = [*equal("n1", cpu="5"), *equal("n2", cpu="4")]
    looking = Looking(*nodes)
    large = a_pod("a").requests(cpu="3", memory="3Gi")
    looking.waits(large, small("b"))
    looking.binds(small("b"), "n2")
    looking.later(AGAIN_S)
    assert looking.found() == {}
    looking.binds(large, "n1")
    looking.later(LATE_S)
    assert looking.found() == {"same": 1, "lag": 1}


def test_the_same_refusal_word_for_word() -> None:
    looking = Looking(*equal("n1"))
    big = a_pod("big").requests(cpu="9")
    looking.waits(big)
    looking.refuses(big, REFUSED + IN_VAIN)
    assert looking.found("unschedulable") == {"same": 1}
    looking.waits(big.labels(a="b"))  # the same condition says nothing new
    assert looking.found("unschedulable") == {"same": 1}


def test_a_refusal_of_a_pod_that_fits_here() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small("stays"), small("moves"))
    looking.refuses(small("stays"), REFUSED)
    looking.refuses(small("moves"), REFUSED)
    looking.binds(small("moves"), "n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"placeable": 1, "lag": 1}


def test_room_that_is_made_elsewhere_is_told_and_none_is_made_here() -> None:
    nodes = [*equal("n1", cpu="2"), *equal("n2", cpu="2")]
    looking = Looking(*nodes)
    low, lower = (a_pod(n).requests(cpu="2").priority(p) for n, p in (("low", 5), ("lower", 1)))
    looking.waits(low.on("n1"), lower.on("n2"))
    high = a_pod("high").requests(cpu="2").priority(10)
    looking.waits(high)
    message = "0/2 nodes are available: 2 Insufficient cpu."
    looking.refuses(high, message, nominated="n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"nomination": 1}
    assert (looking.example()["theirs"], looking.example()["ours"]) == ("n1", "n2")
    context = looking.play.machine.context
    assert context.nominator.node_of("uid-high") == "n1"  # as the pod says, not as we would
    preemption = context.runners[NAME].profile.plugins["DefaultPreemption"]
    assert isinstance(preemption, DefaultPreemption)
    assert not preemption.holding()


def test_memory_is_bounded_whatever_comes() -> None:
    looking = Looking(*equal("n1", "n2", cpu="40000", pods="9999"))
    looking.waits(a_pod("there").requests(cpu="30000", memory="1Gi").on("n1"))
    count = AGAIN_MAX + EXAMPLES_MAX + 5
    for number in range(count):
        pod = a_pod(f"p-{number}").requests(cpu="1", memory="1Ki")
        looking.waits(pod)
        looking.binds(pod, "n1")
    assert looking.shadow.doubts == AGAIN_MAX
    assert looking.found() == {"score": EXAMPLES_MAX + 5}
    looking.shadow.settle()
    assert looking.found() == {"score": count}
    assert "there was no time for a second look" in text(looking.tally.as_json())
    assert len(looking.tally.as_json()["examples"]) == EXAMPLES_MAX


def test_a_spread_that_was_decided_before_others_of_its_zone_is_lag() -> None:
    """Two zones, at most one pod more in one. In truth b (zone y) came before a and c (zone x),
    which were seen first: as seen, b's zone is the only one left for c.
    """
    nodes = [
        node.labels(**{"topology.kubernetes.io/zone": zone})
        for zone, names in (("x", ("x1", "x2")), ("y", ("y1", "y2")))
        for node in equal(*names)
    ]
    looking = Looking(*nodes)

    def spread(name: str) -> PodBuilder:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "s"}},
        }
        return small(name).labels(app="s").spec(topologySpreadConstraints=[constraint])

    looking.waits(*(spread(name) for name in "bac"))
    for name, node in (("a", "x1"), ("c", "x2"), ("b", "y1")):
        looking.binds(spread(name), node)
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found().keys() <= {"same", "tie", "lag"}, looking.tally.as_json()
    (told,) = [one for one in looking.tally.as_json()["examples"] if one["pod"] == "default/c"]
    assert told["details"]["first"] == "refused"
    assert [one["pod"] for one in told["details"]["decidedBefore"]] == ["default/b"]
