"""Second looks: what they are told, what they take back, how much of it, and what it leaves."""

from typing import Any

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.state.audit import recount
from asched.core.state.facts import Gone, Listed
from asched.insight.shadow import neighbours
from asched.insight.shadow.following import AGAIN_S, BACKOFF_S, LATE_S
from asched.insight.shadow.neighbours import NEAR, ObservedBinding
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.shadow.followed import (
    IN_VAIN,
    PACKS,
    REFUSED,
    Broken,
    Looking,
    equal,
    of_size,
    small,
)


def of(looking: Looking, name: str) -> dict[str, Any]:
    """What was found of a pod, first as it was placed."""
    told = [one for one in looking.tally.told()["examples"] if one["pod"] == f"default/{name}"]
    found: dict[str, Any] = min(told, key=lambda one: one["verdict"])
    return found


def pods(others: list[dict[str, Any]]) -> list[str]:
    return [one["pod"].removeprefix("default/") for one in others]


def last(looking: Looking) -> ObservedBinding:
    return looking.shadow._neighbours._last[-1]


# --- what is seen ---------------------------------------------------------------------------------


def test_other_facts_tell_no_decision() -> None:
    looking = Looking(*equal("n1"))
    pod = small().spec(schedulerName="default-scheduler").build()
    for fact in (Listed(POD, (pod,)), Gone(NODE, a_node("n1").build()), Gone(POD, pod)):
        looking.shadow.about_to_see(fact)
    assert looking.tally.told()["profiles"] == {}


def test_a_pod_that_was_refused_before_it_was_seen() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    looking.refuses(a_pod("big").requests(cpu="9"), REFUSED + IN_VAIN)
    assert looking.found("unschedulable") == {"same": 1}
    assert recount(looking.play.parts.cluster) == []


def test_a_refusal_that_cannot_be_judged_is_counted_at_once() -> None:
    looking = Looking(*equal("n1"), plugins=[Broken])
    looking.refuses(small(), REFUSED)
    assert looking.found("unschedulable") == {"error": 1}
    assert looking.shadow.doubts == 0


# --- how much of it -------------------------------------------------------------------------------


def refused(looking: Looking, count: int) -> None:
    for number in range(count):
        looking.refuses(a_pod(f"big-{number}").requests(cpu="9"), "other words")


def test_a_late_look_waits_for_its_time_however_many_are_bound() -> None:
    looking = Looking(*equal("n1", "n2", cpu="400"))
    looking.waits(a_pod("there").requests(cpu="300", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    looking.later(AGAIN_S)
    assert looking.shadow.doubts == 1
    for pod in tiny(NEAR + 1):
        looking.waits(pod)
        looking.binds(pod, "n2")
    assert not looking.shadow.look_again(looking.play.now_s)
    looking.waits(small("other"))
    looking.binds(small("other"), "n1")
    assert looking.shadow.doubts == 2
    looking.later(LATE_S)
    assert looking.shadow.doubts == 1


# --- what is taken back ---------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the very next binding is near, and late the next two."""
    for name, value in {"NEAR": 1, "SHUFFLED": 1, "FAR": 2, "REACHES": (1, 1)}.items():
        monkeypatch.setattr(neighbours, name, value)
    monkeypatch.setattr(neighbours, "REACHES_LATE", (1, 2))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("another", [False, True])
def test_what_came_much_later_is_taken_back(another: bool) -> None:
    """As `test_bindings_in_another_order...`: b knew of a. Then n2 is filled; maybe one more that
    is in doubt, far from b, is looked at in one go with it.
    """
    looking = Looking(*equal("n1", cpu="5"), *(n.labels(only="2") for n in equal("n2", cpu="4")))
    large, b = a_pod("a").requests(cpu="3", memory="3Gi"), small("b")
    fill = [a_pod(f"f{k}").requests(cpu="500m", memory="1Gi").selects(only="2") for k in range(6)]
    odd = a_pod("odd").requests(cpu="10m")
    looking.waits(large, b, *fill, odd)
    for pod, node in ((b, "n2"), (large, "n1"), *((pod, "n2") for pod in fill)):
        looking.binds(pod, node)
    if another:
        looking.binds(odd, "n2")
        assert looking.shadow.doubts == 2
    looking.later(AGAIN_S)
    assert of(looking, "b")["outcome"] == "lag"
    assert pods(of(looking, "b")["details"]["decidedBefore"]) == ["a"]


@pytest.mark.usefixtures("few")
def test_a_pod_that_was_bound_long_after_it_was_refused_is_taken_back_once() -> None:
    looking = Looking(*equal("n1", "n2"))
    big = a_pod("big").requests(cpu="9")
    looking.waits(big)
    looking.refuses(big, "other words")
    for number in range(4):
        looking.waits(small(f"p{number}"))
        looking.binds(small(f"p{number}"), "n1" if number % 2 else "n2")
    looking.binds(big, "n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"words": 1}
    assert recount(looking.play.parts.cluster) == []


LATER = [("b", "n3"), ("c", "n3"), ("d", "n3"), ("x", "n1")]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "bound", [[("a", "n2"), *LATER, ("big", "n1")], [("big", "n1"), ("a", "n2")]]
)
def test_a_refusal_knew_of_the_next_bindings_and_of_none_that_came_much_later(
    bound: list[tuple[str, str]],
) -> None:
    """a took the last place on n2; long after it x took that on n1. The pod itself is forced onto
    n1 some time: of that its refusal knew nothing.
    """
    looking = Looking(*equal("n1", "n2", pods="1"), *equal("n3"))
    big = a_pod("big").requests(cpu="9")
    looking.waits(big)
    looking.refuses(
        big,
        "0/3 nodes are available: 1 Too many pods, 3 Insufficient cpu."
        + IN_VAIN.replace("0/1", "0/3").replace("1 Pre", "3 Pre"),
    )
    for name, node in bound:
        pod = big if name == "big" else a_pod(name).requests(cpu="10m")
        if pod is not big:
            looking.waits(pod)
        looking.binds(pod, node)
    looking.later(BACKOFF_S)
    told = of(looking, "big")["details"]
    assert looking.found("unschedulable") == {"lag": 1}, looking.tally.told()
    assert (told["first"], pods(told["decidedBefore"])) == ("words", ["a"])


def test_who_went_before_the_second_look_is_counted_as_it_was_found() -> None:
    looking = Looking(*equal("n1", "n2"))
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small())
    looking.binds(small(), "n1")
    refused(looking, 1)
    looking.play.lose(small())
    looking.play.lose(a_pod("big-0"))
    for after_s in (AGAIN_S, LATE_S, BACKOFF_S):
        looking.later(after_s)
    assert (looking.found(), looking.found("unschedulable")) == ({"score": 1}, {"words": 1})


def test_a_refusal_that_is_said_otherwise_a_moment_later_is_lag() -> None:
    looking = Looking(*equal("n1"))
    refused(looking, 1)
    big = a_pod("big-0").requests(cpu="9")
    looking.refuses(big.metadata(resourceVersion="3"), REFUSED + IN_VAIN)
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"same": 1, "lag": 1}


def test_a_refusal_of_which_nothing_is_said_any_more_stays_as_it_was_found() -> None:
    looking = Looking(*equal("n1"))
    refused(looking, 1)
    looking.waits(a_pod("big-0").requests(cpu="9").metadata(resourceVersion="3"))
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"words": 1}


# --- in which order -------------------------------------------------------------------------------


def full_one_after_the_other(*, came_first: bool = False) -> Looking:
    """1. x1 fills n1, x2 fills n2, so that web goes to n3. 2. web's binding is seen first.
    `came_first`: x1 and x2 came before web.
    """
    nodes = [a_node(f"n{k}").allocatable(cpu="8", memory="16Gi", pods="110") for k in range(1, 5)]
    looking = Looking(*nodes, profiles=[PACKS])
    there = zip(range(1, 5), (7, 6, 4, 3), strict=True)
    looking.waits(*(of_size(f"there-{k}", size).on(f"n{k}") for k, size in there))
    x1, x2, z, web = of_size("x1", 1), of_size("x2", 2), of_size("z", 3), of_size("web", 1)
    looking.waits(*([x1, x2, web, z] if came_first else [web, x1, x2, z]))
    for pod, node in ((web, "n3"), (x1, "n1"), (x2, "n2"), (z, "n4")):
        looking.binds(pod, node)
    return looking


def test_those_on_its_node_and_on_ours_are_not_named_alone_where_others_matter() -> None:
    looking = full_one_after_the_other(came_first=True)
    looking.later(AGAIN_S)
    told = of(looking, "web")
    assert (told["outcome"], told["ours"]) == ("lag", "n1")
    assert pods(told["details"]["decidedBefore"]) == ["x1", "x2"]


def a_swap(*others: PodBuilder, node: str) -> Looking:
    """b knew of a; others were bound between them."""
    nodes = [*equal("n1", cpu="5"), *equal("n2", cpu="4"), *equal("x", cpu="1")]
    looking = Looking(*nodes)
    large = a_pod("a").requests(cpu="3", memory="3Gi")
    looking.waits(*others, large, small("b"))
    looking.binds(small("b"), "n2")
    for pod in others:
        looking.binds(pod, node)
    looking.binds(large, "n1")
    looking.later(AGAIN_S)
    looking.later(LATE_S)
    return looking


def tiny(count: int) -> list[PodBuilder]:
    return [a_pod(f"t{k}").requests(cpu="1m", memory="1Mi") for k in range(count)]


def test_many_on_other_nodes_are_not_named() -> None:
    looking = a_swap(*tiny(20), node="x")
    assert pods(of(looking, "b")["details"]["decidedBefore"]) == ["a"]
