"""A plugin that ends the process, as `sys.exit()` would, costs its pod an attempt and no more."""

import sys
from typing import Any

import pytest

from asched.plugin import Action, Registration, Trigger, WaitFor
from asched.testing import given, node, pod
from tests.unit.core.cycle.mischief import NODES, POINTS, after, mischief

TOLD = 'plugin "Bad" raised SystemExit: 3'


def leave(*_: Any) -> Any:
    sys.exit(3)


async def leave_late(*_: Any) -> Any:
    sys.exit(3)


@pytest.mark.parametrize("method", POINTS)
def test_at_every_point_it_is_an_error_of_the_attempt(method: str) -> None:
    world = given(NODES, plugins=[mischief(**{method: leave})])

    outcome = world.schedule(pod("web", labels={"bad": "yes"}))

    assert (outcome.node, outcome.reason, outcome.message) == ("", "SchedulerError", TOLD)
    assert [(p, at, str(e)) for p, at, e in world.raised] == [("Bad", POINTS[method], "3")]
    after(world)


@pytest.mark.parametrize("method", ["permit", "pre_bind", "bind"])
def test_in_a_coroutine_it_is_named(method: str) -> None:
    profile = {"multiPoint": {"enabled": [{"name": "Bad"}]}}
    if method == "bind":
        profile = {"bind": {"enabled": [{"name": "Bad"}], "disabled": [{"name": "*"}]}}
    world = given(NODES, plugins=[type("Bad", (), {method: leave_late})], profile=profile)

    assert world.schedule(pod("web")).message == TOLD


def test_in_the_queue_it_holds_its_pod_or_leaves_the_default_order() -> None:
    gated = given(NODES, plugins=[mischief(pre_enqueue=leave)])
    assert gated.schedule(pod("web", labels={"bad": "yes"})).node == ""
    assert {(p, at) for p, at, _ in gated.raised} == {("Bad", "preEnqueue")}
    after(gated)

    profile = {"multiPoint": {"enabled": [{"name": "Bad"}], "disabled": [{"name": "PrioritySort"}]}}
    sorting = given(NODES, plugins=[type("Bad", (), {"queue_sort": leave})], profile=profile)
    after(sorting)
    assert {(p, at) for p, at, _ in sorting.raised} == {("Bad", "queueSort")}


def test_in_a_hint_it_wakes_the_pod() -> None:
    class Bad:
        def registrations(self) -> list[Registration]:
            return [Registration(Trigger("Node", Action.UPDATE_NODE_LABEL), leave)]

        def filter(self, pod: Any, node: Any) -> str | None:
            return None if "open" in node.labels else "closed"

    world = given([node("n1")], plugins=[Bad])
    assert world.schedule(pod("web")).node == ""
    world.add(node("n1", labels={"open": "yes"}))
    assert ("Bad", "queueingHint") in {(p, at) for p, at, _ in world.raised}
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_while_it_waits_it_ends_the_wait() -> None:
    class Bad:
        def pre_bind(self, pod: Any, node: Any) -> Any:
            yield WaitFor(ready=leave, timeout_s=60.0)

    world = given(NODES, plugins=[Bad])
    assert world.schedule(pod("web")).message == TOLD
