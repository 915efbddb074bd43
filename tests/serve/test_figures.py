"""Figures read off a running scheduler: each operation shows from when there was some of it."""

from types import SimpleNamespace
from typing import Any

from asched.serve.figures import Figures
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics


def figures(bindings: int, evicting: int | None, prioritizing: int | None) -> tuple[Any, Metrics]:
    dispatcher = MeasuredDispatcher.__new__(MeasuredDispatcher)
    dispatcher.evicting = evicting
    extenders: Any = SimpleNamespace(prioritizing=prioritizing)
    dispatcher._extenders = extenders
    machine = SimpleNamespace(context=None, bindings=bindings)
    metrics = Metrics()
    scheduler: Any = SimpleNamespace(machine=machine, dispatcher=dispatcher)
    return Figures(scheduler, metrics), metrics


def test_nothing_is_shown_before_anything_happened() -> None:
    made, _ = figures(0, None, None)

    assert made.routines() == {}


def test_bindings_evictions_and_questions_for_priorities_are_operations() -> None:
    made, metrics = figures(3, 2, 0)
    metrics.scheduler.attempt_ended("scheduled", "p", 0.1)

    assert made.routines() == {
        ("binding",): 3,
        ("DefaultPreemption",): 2,
        ("prioritizing_extender",): 0,
    }
