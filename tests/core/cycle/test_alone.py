"""Who pauses alone goes on before anything else, a slice a turn."""

from typing import Any

import pytest

from asched.core.cycle.alone import Alone
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.facts import Done
from tests.builders import a_node
from tests.core.cycle.playbook import Play


class Scene:
    """Somebody who pauses `pauses` times, at so many steps in between."""

    def __init__(self, pauses: int, steps: float = SLICE_STEPS) -> None:
        context = Play(a_node("n")).machine.context
        self.sliced, self.budget = context.queue.sliced, context.cluster.budget
        self.answers: list[Any] = []
        self._pauses, self._steps = pauses, steps
        self.alone = Alone(context, self._go_on)

    def _go_on(self, answer: Any) -> None:
        self.answers.append(answer)
        self.budget.note(self._steps)
        if len(self.answers) < self._pauses:
            self.alone.pause(len(self.answers))

    def turn(self) -> None:
        self.sliced.budget.open()
        self.sliced.go_on()


def test_it_goes_on_once_a_turn_until_it_asks_for_no_more() -> None:
    scene = Scene(3)
    scene.turn()
    scene.alone.pause(0)
    for number in range(3):
        assert (len(scene.answers), bool(scene.sliced)) == (number, True)
        scene.turn()
    scene.turn()
    assert scene.answers == [Done(0), Done(1), Done(2)]
    assert not scene.sliced


def test_what_comes_after_it_waits_and_what_was_begun_before_it_is_done_first() -> None:
    scene = Scene(2)
    done: list[str] = []

    def other(name: str) -> Any:
        done.append(f"{name} after {len(scene.answers)}")
        scene.sliced.budget.note(1)
        yield

    scene.sliced.budget.open(0)
    scene.sliced.do(other("before"))
    scene.alone.pause(0)
    scene.sliced.do(other("after"))
    for _ in range(5):
        scene.turn()
    assert done == ["before after 0", "after after 2"]


@pytest.mark.parametrize(("steps", "is_over"), [(SLICE_STEPS, True), (SLICE_STEPS / 2, False)])
def test_its_last_slice_is_paid_for_by_the_turn(steps: float, *, is_over: bool) -> None:
    scene = Scene(1, steps)
    scene.turn()
    scene.alone.pause(0)
    scene.turn()
    assert scene.sliced.budget.is_used_up == is_over


def test_it_goes_on_again_after_its_end() -> None:
    scene = Scene(1)
    scene.turn()
    for number in range(2):
        scene.alone.pause(number)
        scene.turn()
        scene.turn()
        assert not scene.sliced
    assert scene.answers == [Done(0), Done(1)]
