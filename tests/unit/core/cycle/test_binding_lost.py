"""Bindings that a plugin makes, or that are lost: what is read back, and what is sent again."""

from typing import Any

import pytest

from asched.core.cluster.facts import ReadPending, ReadPlaced, Returned, Seen, TimedOut, Unknown
from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import Bind, CallPlugin, ReadPod
from asched.core.model.kinds import NODE
from tests.builders import a_node
from tests.unit.core.cycle.binding_scene import Scene, flow


async def nothing() -> None:
    """Nobody runs it here."""


@pytest.mark.parametrize(
    ("found", "place", "steps"),
    [
        (lambda e: ReadPlaced(e.id, "n1"), "n1", [DecisionStep.UNKNOWN, DecisionStep.BOUND]),
        (
            lambda e: ReadPlaced(e.id, "n2"),
            "",
            [DecisionStep.UNKNOWN, DecisionStep.FAILED, DecisionStep.ERROR],
        ),
    ],
)
def test_a_binding_plugin_that_does_not_end_is_read_back(
    found: Any, place: str, steps: list[DecisionStep]
) -> None:
    call = CallPlugin(plugin="Flow", call=nothing, binds=True)
    scene = Scene(flow(bind=call), binders=["Flow"])
    (asked,) = scene.play.of(CallPlugin)
    scene.play.answer(TimedOut(asked.id))
    (read,) = scene.play.of(ReadPod)
    scene.play.answer(found(read))
    assert (scene.place, scene.steps()) == (place, steps)


def test_a_binding_plugin_that_ends_says_itself_what_came_of_it() -> None:
    call = CallPlugin(plugin="Flow", call=nothing, binds=True)
    scene = Scene(flow(bind=call), binders=["Flow"])
    (asked,) = scene.play.of(CallPlugin)
    scene.play.answer(Returned(asked.id, None))
    assert not scene.play.of(ReadPod)
    assert scene.said() == 'running Bind plugin "Flow": it did not end in time'


@pytest.mark.parametrize("is_full", [False, True])
def test_a_lost_binding_is_sent_again_to_a_node_that_still_takes_the_pod(is_full: bool) -> None:
    scene = Scene()
    scene.play.answer(Unknown(scene.play.the(Bind).id, "timed out"))
    (read,) = scene.play.of(ReadPod)
    if is_full:
        scene.play.turn(Seen(NODE, a_node("n1").cordoned().build()))
    scene.play.answer(ReadPending(read.id))
    sent = scene.play.of(Bind)
    for _ in range(4):
        scene.play.turn(after_s=1.0)
        sent += scene.play.of(Bind)
    assert len(sent) == (0 if is_full else 1)


def test_a_lost_binding_is_told_and_read_back() -> None:
    scene = Scene()
    scene.play.answer(Unknown(scene.play.the(Bind).id, "timed out"))
    assert scene.steps() == [DecisionStep.UNKNOWN]
    assert len(scene.play.of(ReadPod)) == 1
