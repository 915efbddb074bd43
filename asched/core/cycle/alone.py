"""Tasks that paused while their records are incomplete. They go on before facts are taken in or
decisions are made, one slice a turn, as the queue's own long work does (`state/sliced.py`).

    Pause(is_alone=True) ─> the turn ends ─> the next turn begins with it ─> and so on, until the
                                                                             task ends or asks
                                                                             for something else

So no other task sees an incomplete state, and the driver can serve its sockets in between.
"""

from collections import deque
from collections.abc import Callable, Iterator

from asched.core.cycle.context import SchedulerContext
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.facts import Answer, Done


class ExclusiveTasks:
    """`answer` answers a pause."""

    def __init__(self, context: SchedulerContext, answer: Callable[[Answer], None]) -> None:
        self._sliced = context.queue.sliced
        self._budget = context.cluster.budget
        self._answer = answer
        self._asked: deque[int] = deque()
        self._is_going_on = False

    def pause(self, effect_id: int) -> None:
        """Let the paused task go on at the beginning of the next turn."""
        self._sliced.budget.note(SLICE_STEPS)
        self._asked.append(effect_id)
        if not self._is_going_on:
            self._is_going_on = True
            self._sliced.do(self._steps())

    def _steps(self) -> Iterator[None]:
        while self._asked:
            spent = self._budget.spent
            self._answer(Done(self._asked.popleft()))
            self._sliced.budget.note(self._budget.spent - spent)
            yield
        self._is_going_on = False
