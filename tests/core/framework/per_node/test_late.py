"""Late points, driven: effects go out, answers come in, and nonsense stops there."""

from collections.abc import Generator
from typing import Any

import pytest

from asched.core.framework.effects import Bind, DeletePod, Effect, EmitEvent, WaitFor
from asched.core.framework.per_node.late import SHOWN_MAX, driven, nonsense
from asched.core.framework.status import PluginError

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


def test_what_is_no_generator_is_named() -> None:
    with pytest.raises(PluginError, match=r"answered 7 \(int\) where a generator of effects"):
        next(driven(7, "Mine", "preBind"))


def test_a_long_answer_is_shown_in_part() -> None:
    whole = "x" * (SHOWN_MAX - 2)
    assert f"answered '{whole}' (str)" in str(nonsense("Mine", "filter", whole, "x"))
    cut = str(nonsense("Mine", "filter", whole + "y", "x"))
    assert f"answered '{whole}y… (str)" in cut
