"""Second looks: what they are told, what they take back, how much of it, and what it leaves."""

from typing import Any

import pytest

from asched.core.cluster.audit import recount
from asched.insight.shadow import neighbours
from asched.insight.shadow.following import AGAIN_S, BACKOFF_S, LATE_S
from asched.insight.shadow.neighbours import ObservedBinding
from tests.builders import a_pod
from tests.unit.core.shadow.followed import IN_VAIN, REFUSED, Looking, equal, small


def of(looking: Looking, name: str) -> dict[str, Any]:
    """What was found of a pod, first as it was placed."""
    told = [one for one in looking.tally.as_json()["examples"] if one["pod"] == f"default/{name}"]
    found: dict[str, Any] = min(told, key=lambda one: one["verdict"])
    return found


def pods(others: list[dict[str, Any]]) -> list[str]:
    return [one["pod"].removeprefix("default/") for one in others]


def last(looking: Looking) -> ObservedBinding:
    return looking.shadow._neighbours._last[-1]


# --- what is seen ---------------------------------------------------------------------------------


def test_a_pod_that_was_refused_before_it_was_seen() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    looking.refuses(a_pod("big").requests(cpu="9"), REFUSED + IN_VAIN)
    assert looking.found("unschedulable") == {"same": 1}
    assert recount(looking.play.parts.cluster) == []


# --- how much of it -------------------------------------------------------------------------------


def refused(looking: Looking, count: int) -> None:
    for number in range(count):
        looking.refuses(a_pod(f"big-{number}").requests(cpu="9"), "other words")


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
    assert looking.found("unschedulable") == {"lag": 1}, looking.tally.as_json()
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


# --- in which order -------------------------------------------------------------------------------
