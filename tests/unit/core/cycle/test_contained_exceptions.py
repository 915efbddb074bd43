"""A plugin that raises, or answers nonsense, costs its pod an attempt and nobody anything else."""

import math
from typing import Any

import numpy as np
import pytest

from asched.plugin import (
    Action,
    Aspect,
    FilterPlugin,
    Hint,
    PreBindPlugin,
    Registration,
    ReservePlugin,
    ScorePlugin,
    Trigger,
    WaitFor,
)
from asched.testing import given, node, pod
from tests.unit.core.cycle.mischief import NODES, POINTS, after, mischief


def boom(*_: Any) -> Any:
    raise ValueError("boom")


async def async_boom(*_: Any) -> Any:
    raise ValueError("boom")


@pytest.mark.parametrize("method", POINTS)
def test_a_plugin_that_raises_costs_its_pod_an_error_status(method: str) -> None:
    world = given(NODES, plugins=[mischief(**{method: boom})])

    outcome = world.schedule(pod("web", labels={"bad": "yes"}))

    assert (outcome.node, outcome.reason) == ("", "SchedulerError")
    assert outcome.message == 'plugin "Bad" raised ValueError: boom'
    assert [(p, at, str(e)) for p, at, e in world.raised] == [("Bad", POINTS[method], "boom")]
    after(world)


@pytest.mark.parametrize("method", POINTS)
@pytest.mark.parametrize(
    "answer", [3.5, {"a": 1}, object()], ids=lambda value: type(value).__name__
)
def test_nonsense_costs_the_same(method: str, answer: Any) -> None:
    world = given(NODES, plugins=[mischief(**{method: lambda *_: answer})])

    outcome = world.schedule(pod("web", labels={"bad": "yes"}))

    assert (outcome.node, outcome.reason) == ("", "SchedulerError")
    assert f'running {POINTS[method]} plugin "Bad": answered ' in outcome.message
    assert [(p, at) for p, at, _ in world.raised] == [("Bad", POINTS[method])]
    after(world)


@pytest.mark.parametrize("method", ["permit", "pre_bind", "bind"])
def test_a_coroutine_that_raises_is_named(method: str) -> None:
    profile = {"multiPoint": {"enabled": [{"name": "Bad"}]}}
    if method == "bind":
        profile = {"bind": {"enabled": [{"name": "Bad"}], "disabled": [{"name": "*"}]}}
    cls = type("Bad", (), {method: async_boom})
    world = given(NODES, plugins=[cls], profile=profile)

    outcome = world.schedule(pod("web"))

    assert outcome.message == 'plugin "Bad" raised ValueError: boom'
    assert [(p, str(e)) for p, _, e in world.raised] == [("Bad", "boom")]


def test_unreserve_that_raises_leaves_the_others_theirs() -> None:
    undone: list[str] = []
    first = type("First", (), {"unreserve": lambda _s, p, _n: undone.append(p.name)})
    bad = type("Bad", (), {"unreserve": boom, "pre_bind": lambda *_: "no"})
    world = given(NODES, plugins=[first, bad])
    assert world.schedule(pod("web")).node == ""
    assert undone == ["web"]
    assert [(p, at) for p, at, _ in world.raised] == [("Bad", "reserve")]


@pytest.mark.parametrize("key", [boom, lambda *_: object(), lambda *_: np.array([1, 2])])
def test_sort_keys_that_fail_leave_the_default_order(key: Any) -> None:
    bound: list[str] = []
    watcher = type("Watcher", (), {"post_bind": lambda _s, p, _n: bound.append(p.name)})
    profile = {
        "multiPoint": {
            "enabled": [{"name": "Bad"}, {"name": "Watcher"}],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    world = given(NODES, plugins=[type("Bad", (), {"queue_sort": key}), watcher], profile=profile)
    world.add(*(pod(f"p{i}", priority=i) for i in (1, 3, 2)))
    assert bound == ["p3", "p2", "p1"]
    assert {(p, at) for p, at, _ in world.raised} == {("Bad", "queueSort")}


def test_a_hint_that_raises_wakes_the_pod() -> None:
    class Bad:
        is_open = False

        def registrations(self) -> list[Registration]:
            def hint(*_: Any) -> Hint:
                raise ValueError("boom")

            return [Registration(Trigger("Node", Action.UPDATE_NODE_LABEL), hint)]

        def filter(self, pod: Any, node: Any) -> str | None:
            return None if "open" in node.labels else "closed"

    world = given(NODES, plugins=[Bad])
    assert world.schedule(pod("web")).node == ""
    world.add(node("n1", labels={"open": "yes"}))
    world.wait(15)
    assert world.outcome("web").node == "n1"
    assert ("Bad", "queueingHint") in {(p, at) for p, at, _ in world.raised}


class WrongShape(FilterPlugin):
    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.zeros(nodes.size + 3, dtype=np.int32)


class WrongType(FilterPlugin):
    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return None


class UndeclaredReason(FilterPlugin):
    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.full(nodes.size, 7, dtype=np.int32)


class TooHigh(ScorePlugin):
    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.full(nodes.size, 101, dtype=np.int64)


class NoStatus(ReservePlugin):
    def reserve(self, pod: Any, node: str, data: Any) -> Any:
        return None

    def unreserve(self, pod: Any, node: str) -> None:
        pass


class NoGenerator(PreBindPlugin):
    def pre_bind_pre_flight(self, pod: Any, node: str) -> Any:
        from asched.plugin import SUCCESS

        return SUCCESS

    def pre_bind(self, pod: Any, node: str) -> Any:
        return None


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (WrongShape, "answered (5,) where an array of 2 integers is expected"),
        (WrongType, "answered NoneType where an array of 2 integers is expected"),
        (UndeclaredReason, 'plugin "UndeclaredReason" raised IndexError'),
        (TooHigh, 'plugin "TooHigh" returns an invalid score 101'),
        (NoStatus, 'plugin "NoStatus" raised AttributeError'),
        (NoGenerator, "where a generator of effects is expected"),
    ],
)
def test_plugins_over_columns_are_contained_as_well(cls: type[Any], words: str) -> None:
    world = given(NODES, plugins=[cls])
    outcome = world.schedule(pod("web"))
    assert outcome.reason == "SchedulerError"
    assert words in outcome.message
    assert [p for p, _, _ in world.raised] == [cls.__name__]
    assert world.schedule(pod("again")).reason == "SchedulerError"


def test_a_score_that_failed_once_leaves_no_stale_ranking() -> None:
    """A decision after a failed one sees every row that changed meanwhile."""

    class Moody(ScorePlugin):
        depends_on = Aspect.NODE
        failures = 0

        def score(self, pod: Any, nodes: Any, data: Any) -> Any:
            if Moody.failures:
                Moody.failures -= 1
                raise ValueError("not now")
            return np.zeros(nodes.size, dtype=np.int64)

    nodes = [node(f"n{i}", cpu=2) for i in range(4)]
    world = given(nodes, plugins=[Moody])
    used = [world.schedule(pod(f"a{i}", cpu=1)).node for i in range(4)]
    world.add(node("n9", cpu=1))
    Moody.failures = 1
    assert world.schedule(pod("bad", cpu=1)).reason == "SchedulerError"
    world.remove(pod("bad", cpu=1))
    used += [world.schedule(pod(f"b{i}", cpu=1)).node for i in range(5)]
    assert sorted(used) == sorted([f"n{i}" for i in range(4)] * 2 + ["n9"])
    assert world.schedule(pod("late", cpu=1)).node == ""


@pytest.mark.parametrize("method", ["pre_bind", "bind"])
@pytest.mark.parametrize(
    ("wait", "words"),
    [
        ({"ready": boom}, 'plugin "Bad" raised ValueError: boom'),
        ({"timeout_s": "soon"}, "where an effect that makes sense is expected"),
        ({"timeout_s": math.nan}, "where an effect that makes sense is expected"),
        ({"on": 5}, "where an effect that makes sense is expected"),
        ({"on": ([],)}, "where an effect that makes sense is expected"),
    ],
)
def test_nobody_else_suffers_from_a_wait_that_makes_no_sense(
    method: str, wait: dict[str, Any], words: str
) -> None:
    """It is asked about in the midst of others' turn."""

    def steps(_self: Any, _pod: Any, _node: Any) -> Any:
        yield WaitFor(**{"ready": boom, "timeout_s": 1.0, **wait})

    profile = {"multiPoint": {"enabled": [{"name": "Bad"}]}}
    if method == "bind":
        profile["bind"] = {"enabled": [{"name": "Bad"}], "disabled": [{"name": "*"}]}
    world = given(NODES, plugins=[type("Bad", (), {method: steps})], profile=profile)

    outcome = world.schedule(pod("web"))

    assert (outcome.node, outcome.reason) == ("", "SchedulerError")
    assert words in outcome.message
