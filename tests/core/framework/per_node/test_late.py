"""Late points, driven: effects go out, answers come in, and nonsense stops there."""

from collections.abc import Generator
from math import inf, nan
from typing import Any

import pytest

from asched.core.framework.effects import (
    Bind,
    DeletePod,
    Effect,
    EmitEvent,
    Pause,
    PodRef,
    WaitFor,
)
from asched.core.framework.per_node.late import SHOWN_MAX, driven, nonsense
from asched.core.framework.status import PluginError
from asched.core.model.meta import ObjectReference
from asched.core.state.facts import Done

ASK = WaitFor(ready=lambda: True, timeout_s=1.0)


def test_effects_go_out_and_answers_come_in() -> None:
    def late() -> Generator[Effect, Any, str]:
        first = yield ASK
        second = yield ASK
        return f"{first} {second}"

    steps = driven(late(), "Mine", "preBind")
    assert isinstance(next(steps), WaitFor)
    assert isinstance(steps.send("one"), WaitFor)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as end:
        steps.send("two")  # type: ignore[arg-type]
    assert end.value.value == "one two"


def test_each_answer_goes_to_the_step_that_asked() -> None:
    ref = PodRef(namespace="default", name="web", uid="u")

    def late() -> Generator[Effect, Any, Any]:
        first = yield Pause()
        second = yield ASK
        third = yield Bind(pod=ref, node="n1")
        return first, second, third, (yield DeletePod(pod=ref))

    steps = driven(late(), "Mine", "preBind")
    out = [type(next(steps)), *(type(steps.send(Done(at))) for at in range(3))]
    assert out == [Pause, WaitFor, Bind, DeletePod]
    with pytest.raises(StopIteration) as end:
        steps.send(Done(3))
    assert end.value.value == (Done(0), Done(1), Done(2), Done(3))


def test_what_is_no_effect_ends_it_and_closes_the_plugin_s_steps() -> None:
    closed = []

    def late() -> Generator[Any, Any, None]:
        try:
            yield "an effect"
        finally:
            closed.append(True)

    with pytest.raises(PluginError) as error:
        next(driven(late(), "Mine", "preBind"))
    assert closed == [True]
    assert str(error.value) == (
        "running preBind plugin \"Mine\": answered 'an effect' (str) where an effect is expected"
    )
    assert (error.value.plugin, error.value.point) == ("Mine", "preBind")


@pytest.mark.parametrize(
    "effect",
    [
        Bind(pod="default/web", node="n1"),  # type: ignore[arg-type]
        DeletePod(pod=None),  # type: ignore[arg-type]
        EmitEvent(
            regarding={"kind": "Pod"},  # type: ignore[arg-type]
            type="Normal",
            reason="Told",
            action="Telling",
            note="",
            reporting_controller="mine",
        ),
    ],
    ids=lambda effect: type(effect).__name__,
)
def test_what_makes_no_sense_does_not_leave(effect: Effect) -> None:
    def late() -> Generator[Effect, Any, None]:
        yield effect

    with pytest.raises(PluginError, match="where an effect that makes sense is expected"):
        next(driven(late(), "Mine", "preBind"))


REGARDING = ObjectReference(kind="Pod", name="web")


@pytest.mark.parametrize(
    ("wait", "is_sound"),
    [
        ({}, True),
        ({"timeout_s": 3}, True),
        ({"timeout_s": inf}, True),
        ({"timeout_s": nan}, False),
        ({"timeout_s": "3"}, False),
        ({"timeout_s": None}, False),
        ({"on": (("Pod", "default/web"), ("Node", "n1"))}, True),
        ({"on": [("Pod", "default/web")]}, False),
        ({"on": (("Pod", "default/web"), "Node")}, False),
        ({"on": (["Pod", "default/web"],)}, False),
        ({"on": (("Pod", 1),)}, False),
        ({"on": ((1, "default/web"),)}, False),
    ],
)
def test_a_wait_makes_sense_with_a_time_and_topics(wait: Any, is_sound: bool) -> None:
    assert leaves(WaitFor(**{"ready": lambda: True, "timeout_s": 1.0, **wait})) == is_sound


@pytest.mark.parametrize(
    ("related", "is_sound"), [(None, True), (REGARDING, True), ({"kind": "Pod"}, False)]
)
def test_an_event_makes_sense_with_references(related: Any, is_sound: bool) -> None:
    event = EmitEvent(
        regarding=REGARDING,
        type="Normal",
        reason="Told",
        action="Telling",
        note="",
        reporting_controller="mine",
        related=related,
    )
    assert leaves(event) == is_sound


def leaves(effect: Effect) -> bool:
    """Whether it goes out; if not, the steps of the plugin are closed."""
    closed = []

    def late() -> Generator[Effect, Any, None]:
        try:
            yield effect
        finally:
            closed.append(True)

    steps = driven(late(), "Mine", "preBind")
    try:
        next(steps)
    except PluginError:
        assert closed == [True]
        return False
    assert closed == []
    return True


@pytest.mark.parametrize("raised", [ZeroDivisionError("by zero"), SystemExit("enough")])
def test_who_fails_while_asked_whether_a_wait_is_over_ends_it_and_is_told_so(raised: Any) -> None:
    closed = []

    def ready() -> bool:
        raise raised

    def late() -> Generator[Effect, Any, None]:
        try:
            yield WaitFor(ready=ready, timeout_s=1.0)
        finally:
            closed.append(True)

    steps = driven(late(), "Mine", "preBind")
    wait = next(steps)
    assert isinstance(wait, WaitFor)
    assert wait.ready()
    text = f'plugin "Mine" raised {type(raised).__name__}: {raised}'
    with pytest.raises(PluginError) as told:
        steps.send(Done(0))
    assert str(told.value) == text
    assert (told.value.plugin, told.value.point, told.value.error) == ("Mine", "preBind", raised)
    assert closed == [True]


def test_a_wait_is_over_when_it_says_so() -> None:
    state: list[Any] = []
    steps = driven((effect for effect in [WaitFor(ready=lambda: state, timeout_s=1.0)]), "M", "p")  # type: ignore[arg-type,return-value]
    wait = next(steps)
    assert isinstance(wait, WaitFor)
    assert wait.ready() is False
    state.append(1)
    assert wait.ready() is True


class Steps(Generator[Any, Any, Any]):
    """Steps by hand, as a plugin may write them."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, value: Any) -> Effect:
        self.sent.append(value)
        if len(self.sent) > 1:
            raise StopIteration("done")
        return ASK

    def throw(self, *_: Any) -> Any:
        raise StopIteration


def test_steps_need_not_be_those_of_a_function() -> None:
    made = Steps()
    steps = driven(made, "Mine", "preBind")
    assert isinstance(next(steps), WaitFor)
    with pytest.raises(StopIteration) as end:
        steps.send(Done(0))
    assert (end.value.value, made.sent) == ("done", [None, Done(0)])


def test_what_is_no_generator_is_named() -> None:
    with pytest.raises(PluginError, match=r"answered 7 \(int\) where a generator of effects"):
        next(driven(7, "Mine", "preBind"))


def test_a_long_answer_is_shown_in_part() -> None:
    whole = "x" * (SHOWN_MAX - 2)
    assert f"answered '{whole}' (str)" in str(nonsense("Mine", "filter", whole, "x"))
    cut = str(nonsense("Mine", "filter", whole + "y", "x"))
    assert f"answered '{whole}y… (str)" in cut
