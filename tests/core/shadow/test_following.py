"""Decisions of another scheduler, one by one: what is found, and when it is looked at again."""

import pytest

from asched.core.model.kinds import POD
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.state.facts import Listed
from asched.insight.shadow.finding import MEANING, Agreement
from asched.insight.shadow.following import AGAIN_MAX, AGAIN_S, BACKOFF_S, LATE_S
from asched.insight.shadow.neighbours import NEAR
from asched.insight.shadow.tally import EXAMPLES_MAX
from asched.insight.shadow.words import text
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.shadow.followed import (
    IN_VAIN,
    NAME,
    PACKS,
    REFUSED,
    Broken,
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
    assert "web on n1, here n2" in text(looking.tally.told())


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
    told = next(one for one in looking.tally.told()["examples"] if one["pod"] == "default/web")
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
    assert "agrees if decided before it: default/a on n1" in text(looking.tally.told())


def test_of_bindings_in_another_order_only_those_that_matter_are_named() -> None:
    """b was decided when a had its place; others that came and went between say nothing."""
    looking = Looking(*equal("n1", cpu="5"), *equal("n2", cpu="4"), *equal("x", cpu="1"))
    large = a_pod("a").requests(cpu="3", memory="3Gi")
    tiny = [a_pod(f"t{n}").requests(cpu="1m", memory="1Mi") for n in range(4)]
    looking.waits(large, *tiny[:2], small("b"), *tiny[2:])
    looking.binds(small("b"), "n2")
    for number, pod in enumerate((*tiny[:2], large, *tiny[2:])):
        looking.binds(pod, "x" if pod is not large else "n1")
        assert number < NEAR
    looking.later(AGAIN_S)
    lags = [one for one in looking.tally.told()["examples"] if one["pod"] == "default/b"]
    assert [one["outcome"] for one in lags] == ["lag"]
    assert [one["pod"] for one in lags[0]["details"]["decidedBefore"]] == ["default/a"]
    assert "decidedAfter" not in lags[0]["details"]


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


def test_enough_bindings_make_a_second_look_due() -> None:
    looking = Looking(*equal("n1", "n2", cpu="400"))
    looking.waits(a_pod("there").requests(cpu="300", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    for number in range(NEAR - 1):
        looking.waits(a_pod(f"more-{number}"))
        looking.binds(a_pod(f"more-{number}"), "n2")
        assert not looking.shadow.look_again(looking.play.now_s)
    looking.waits(a_pod("last"))
    looking.binds(a_pod("last"), "n2")
    assert looking.shadow.look_again(looking.play.now_s)


def test_only_a_part_of_many_nodes_is_scored_there() -> None:
    looking = Looking(*equal(*(f"n{number}" for number in range(150))))
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found() == {"sampled": 1}
    assert looking.example()["details"]["fits"] == 150


def test_all_nodes_are_scored_there_if_its_configuration_says_so() -> None:
    nodes = equal(*(f"n{number}" for number in range(150)))
    looking = Looking(*nodes, percentageOfNodesToScore=100)
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    assert looking.found() == {"score": 1}


def test_a_list_shows_bindings_that_nobody_judged() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    bound = small().spec(schedulerName=NAME).on("n1").build()
    looking.play.turn(Listed(POD, (bound,)))
    assert looking.found() == {"missed": 1}
    assert looking.tally.told()["profiles"][NAME]["placed"]["agreement"] is None


def test_pods_made_with_a_node_and_pods_of_others_are_nobodys_decision() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small("static").on("n1"))
    looking.waits(small("theirs").spec(schedulerName="batch"))
    looking.binds(small("theirs").spec(schedulerName="batch"), "n1")
    assert looking.tally.told()["profiles"] == {}


def test_a_pod_that_was_bound_before_it_was_seen_waiting() -> None:
    looking = Looking(*equal("n1"))
    bound = small().on("n1").status(conditions=[{"type": "PodScheduled", "status": "True"}])
    looking.waits(bound)
    assert looking.found() == {"same": 1}


def test_the_same_refusal_word_for_word() -> None:
    looking = Looking(*equal("n1"))
    big = a_pod("big").requests(cpu="9")
    looking.waits(big)
    looking.refuses(big, REFUSED + IN_VAIN)
    assert looking.found("unschedulable") == {"same": 1}
    looking.waits(big.labels(a="b"))  # the same condition says nothing new
    assert looking.found("unschedulable") == {"same": 1}


def test_other_words_are_told_beside_ours() -> None:
    looking = Looking(*equal("n1"))
    big = a_pod("big").requests(cpu="9")
    looking.waits(big)
    looking.refuses(big, "0/1 nodes are available: 1 Too many pods.")
    assert looking.found("unschedulable") == {}
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"words": 1}
    assert looking.example()["details"]["ours"] == REFUSED + IN_VAIN


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


def test_a_plugin_that_raises_is_an_error_of_that_decision() -> None:
    looking = Looking(*equal("n1", "n2"), plugins=[Broken])
    looking.waits(small())
    looking.binds(small(), "n1")
    assert looking.found() == {"error": 1}
    assert "no idea" in looking.example()["details"]["error"]


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
    assert "there was no time for a second look" in text(looking.tally.told())
    assert len(looking.tally.told()["examples"]) == EXAMPLES_MAX


def test_every_outcome_has_a_meaning() -> None:
    assert set(MEANING) == set(Agreement)


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
    assert looking.found().keys() <= {"same", "tie", "lag"}, looking.tally.told()
    (told,) = [one for one in looking.tally.told()["examples"] if one["pod"] == "default/c"]
    assert told["details"]["first"] == "refused"
    assert [one["pod"] for one in told["details"]["decidedBefore"]] == ["default/b"]


def test_a_refusal_that_knew_of_a_binding_seen_later_is_lag() -> None:
    """1. a is placed there, b refused. 2. b's refusal is seen first, then a's binding, then c's,
    with whom the node has no place left either: by now b would be refused in other words.
    """
    looking = Looking(*equal("n1", pods="2"))
    first, late = a_pod("a").requests(cpu="3"), a_pod("c").requests(cpu="10m")
    waits = a_pod("b").requests(cpu="2")
    looking.waits(first, waits, late)
    message = REFUSED + IN_VAIN.replace(
        "Preemption is not helpful for scheduling", "No preemption victims found for incoming pod"
    )
    looking.refuses(waits, message)
    for pod in (first, late):
        looking.binds(pod, "n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"lag": 1}, looking.tally.told()
    details = next(
        one["details"]
        for one in looking.tally.told()["examples"]
        if one["verdict"] == "unschedulable"
    )
    assert details["first"] == "placeable"
    assert [one["pod"] for one in details["decidedBefore"]] == ["default/a"]
