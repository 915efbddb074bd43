"""Several extenders in a row: who is asked about what, and what their words add up to."""

import random
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import pytest

from asched.core.config.v1 import Extender, ExtenderManagedResource
from asched.core.extender.binder import ExtenderBinder
from asched.core.extender.consult import Chain, wants_victims
from asched.core.framework.effects import AskExtender, Together
from asched.core.framework.status import PointError
from asched.core.framework.trial import Candidate
from asched.core.state.facts import Answer, Refused, Replied, Returned
from tests.builders import a_cluster, a_node, a_pod, pending

DEVICE, OTHER = "example.com/dev", "example.com/other"
#: What an extender answers: JSON, or an exception for none.
Answers = Mapping[str, Any]


def an_extender(at: str, *, manages: str = "", **fields: Any) -> Extender:
    managed = (ExtenderManagedResource(manages),) if manages else ()
    return Extender(url_prefix=at, node_cache_capable=True, managed_resources=managed, **fields)


CLUSTER = a_cluster(
    *(a_node(f"n{at}") for at in range(4)),
    pods=[a_pod(f"v{at}").priority(0).on(f"n{at}") for at in range(4)],
)
PLAIN = pending(CLUSTER, a_pod("plain").priority(9))
WISHING = pending(CLUSTER, a_pod("wishing").priority(9).container().requests({DEVICE: "1"}))
ALL = np.ones(4, dtype=np.bool_)


def drive(steps: Generator[Any, Answer, Any], answers: Answers, asked: list[str]) -> Any:
    """What comes of it, each question answered by the extender's name."""
    answer: Any = None
    try:
        while True:
            effect = steps.send(answer)
            if isinstance(effect, Together):
                answer = Returned(0, [drive(part, answers, asked) for part in effect.parts])
                continue
            assert isinstance(effect, AskExtender)
            asked.append(f"{effect.extender.url_prefix} {effect.verb}")
            value = answers[effect.extender.url_prefix]
            if isinstance(value, Exception):
                answer = Refused(0, 500, str(value))
            else:
                answer = Replied(0, value)
    except StopIteration as end:
        return end.value


def left_of(mask: Any) -> list[str]:
    rows = np.flatnonzero(mask).tolist()
    return sorted(node.name for row in rows if (node := CLUSTER.nodes.node_at[row]))


def passing(*names: str) -> dict[str, Any]:
    return {"NodeNames": list(names)}


# --- filter --------------------------------------------------------------------------------------

FILTERS = [
    an_extender("scorer", prioritize_verb="score"),
    an_extender("devices", filter_verb="filter", manages=DEVICE),
    an_extender("others", filter_verb="filter", manages=OTHER),
    an_extender("plain", filter_verb="filter"),
    an_extender("soft", filter_verb="filter", ignorable=True),
    an_extender("last", filter_verb="sift", ignorable=True),
]


def test_those_that_filter_are_asked_about_the_pods_they_look_after() -> None:
    answers = {
        "devices": passing("n0", "n1", "n2"),
        "plain": passing("n0", "n1"),
        "soft": ValueError("broken"),
        "last": passing("n1"),
    }
    for pod, wanted in ((PLAIN, ()), (WISHING, ("devices filter",))):
        asked: list[str] = []
        mask, statuses = drive(Chain(FILTERS, CLUSTER).filter(pod, ALL), answers, asked)
        assert left_of(mask) == ["n1"]
        assert statuses == {}
        assert asked == [*wanted, "plain filter", "soft filter", "last sift"]


def test_nobody_is_asked_once_no_node_is_left() -> None:
    asked: list[str] = []
    chain = Chain(FILTERS, CLUSTER)
    mask, _ = drive(chain.filter(PLAIN, ALL), {"plain": passing()}, asked)
    assert (left_of(mask), asked) == ([], ["plain filter"])
    with pytest.raises(PointError, match="ill"):
        drive(chain.filter(PLAIN, ALL), {"plain": ValueError("ill")}, asked)


# --- prioritize ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_points_of_all_add_up_by_weight(seed: int) -> None:
    """A failure gives none, nor does a word about a node that was not asked about."""
    rng = random.Random(seed)
    extenders, answers, totals = [], {}, dict.fromkeys(("n0", "n1", "n2", "n3"), 0)
    is_asked = [rng.random() < 0.7 for _ in totals]
    mask = np.array([is_asked[int(name[1])] for name in _names()])
    for at in range(rng.randint(0, 3)):
        weight = rng.randint(1, 5)
        manages = rng.choice(("", "", OTHER))
        verb = rng.choice(("score", "score", ""))
        one = an_extender(f"e{at}", prioritize_verb=verb, weight=weight, manages=manages)
        extenders.append(one)
        listed = [(rng.choice((*totals, "n9")), rng.randint(-3, 10)) for _ in range(5)]
        answers[f"e{at}"] = [{"Host": host, "Score": score} for host, score in listed]
        if rng.random() < 0.2:
            answers[f"e{at}"] = rng.choice((ValueError("broken"), {}))
        elif not manages and verb:
            for host, score in listed:
                if host in totals and is_asked[int(host[1])]:
                    totals[host] += 10 * weight * score
    asked: list[str] = []
    extra = drive(Chain(extenders, CLUSTER).prioritize(PLAIN, mask), answers, asked)
    wanted = [one for one in extenders if one.prioritize_verb and not one.managed_resources]
    assert asked == [f"{one.url_prefix} score" for one in wanted]
    found = np.zeros(4, dtype=np.int64) if extra is None else extra
    assert found.tolist() == [totals[name] for name in _names()]
    if all(isinstance(answers[one.url_prefix], (ValueError, dict)) for one in wanted):
        assert extra is None


def _names() -> list[str]:
    return [node.name for node in CLUSTER.nodes.node_at[:4] if node is not None]


def test_sums_of_several_wrap_as_64_bits_do() -> None:
    extenders = [an_extender(name, prioritize_verb="score", weight=1) for name in ("a", "b")]
    points = {name: [{"Host": "n0", "Score": 2**59 - 1}] for name in ("a", "b")}
    extra = drive(Chain(extenders, CLUSTER).prioritize(PLAIN, ALL), points, [])
    assert extra[CLUSTER.nodes.row_of["n0"]] == 20 * (2**59 - 1) - 2**64


# --- preempt -------------------------------------------------------------------------------------


def candidates(*names: str) -> dict[str, Candidate]:
    found = {}
    for name in names:
        row = CLUSTER.nodes.row_of[name]
        found[name] = Candidate(name, row, tuple(CLUSTER.pods_on(row).values()), 0)
    return found


def emptying(*names: str) -> dict[str, Any]:
    victims = {f"n{at}": [{"UID": f"uid-v{at}"}] for at in range(4)}
    return {"NodeNameToMetaVictims": {name: {"Pods": victims[name]} for name in names}}


PREEMPTING = [
    an_extender("filter", filter_verb="filter"),
    an_extender("others", preempt_verb="preempt", filter_verb="filter", manages=OTHER),
    an_extender("first", preempt_verb="preempt"),
    an_extender("ill", preempt_verb="preempt", filter_verb="filter", ignorable=True),
    an_extender("soft", preempt_verb="preempt", ignorable=True),
    an_extender("never", filter_verb="filter", ignorable=True),
]


def preempted(answers: Answers, *names: str) -> tuple[list[str], list[str]]:
    asked: list[str] = []
    left = drive(Chain(PREEMPTING, CLUSTER).preempt(PLAIN, candidates(*names)), answers, asked)
    return sorted(left), asked


def test_candidates_are_those_that_all_leave_and_none_says_can_never_be() -> None:
    nobody = {
        "NodeNameToMetaVictims": {
            "n0": {"Pods": []},
            **emptying("n1", "n2")["NodeNameToMetaVictims"],
        }
    }
    answers = {
        "first": emptying("n0", "n1", "n2"),
        "ill": ValueError("broken"),
        "soft": nobody,
        "filter": {"FailedNodes": {"n1": "not now"}},
        "never": {"FailedAndUnresolvableNodes": {"n2": "never"}},
    }
    left, asked = preempted(answers, "n0", "n1", "n2", "n3")
    assert left == ["n1"]
    assert asked == [
        "first preempt",
        "ill preempt",
        "soft preempt",
        "filter filter",
        "ill filter",
        "never filter",
    ]


def test_nobody_is_asked_about_no_candidates() -> None:
    assert preempted({"first": emptying()}, "n0", "n1") == ([], ["first preempt"])
    assert preempted({}) == ([], [])
    never = {"FailedAndUnresolvableNodes": {"n0": "never"}}
    answers = {"filter": never, **dict.fromkeys(("first", "ill", "soft"), emptying("n0"))}
    left, asked = preempted(answers, "n0")
    assert (left, asked[-1]) == ([], "filter filter")


@pytest.mark.parametrize("ill", ["first", "filter"])
def test_one_that_is_not_ignorable_ends_the_search(ill: str) -> None:
    answers = dict.fromkeys(("first", "ill", "soft"), emptying("n0"))
    with pytest.raises(PointError, match="broken"):
        preempted({**answers, "filter": {}, ill: ValueError("broken")}, "n0")


# --- who has a say -------------------------------------------------------------------------------


def test_who_has_a_say() -> None:
    of_devices = an_extender("devices", bind_verb="bind", manages=DEVICE)
    binding = an_extender("all", bind_verb="bind")
    silent = an_extender("silent")
    for extenders, plain, wishing in (
        ([silent], "", ""),
        ([silent, of_devices], "", "devices"),
        ([of_devices, binding], "all", "devices"),
    ):
        chain = Chain(extenders, CLUSTER)
        for pod, wanted in ((PLAIN, plain), (WISHING, wishing)):
            found = chain.binder(pod)
            assert isinstance(found, ExtenderBinder if wanted else type(None))
            assert getattr(found, "_config", Extender()).url_prefix == wanted
            assert not chain.is_interested(pod)  # to bind is no say in the place
    for verb in ("filter_verb", "prioritize_verb", "preempt_verb"):
        chain = Chain([silent, an_extender("d", manages=DEVICE, **{verb: "x"})], CLUSTER)
        assert (chain.is_interested(PLAIN), chain.is_interested(WISHING)) == (False, True)
        assert chain.has_filter is (verb == "filter_verb")
        assert chain.has_prioritize is (verb == "prioritize_verb")
        assert chain.has_preempt is (verb != "prioritize_verb")
    assert not wants_victims([Extender(prioritize_verb="score")])
    assert wants_victims([PREEMPTING[2], Extender(preempt_verb="preempt")])
