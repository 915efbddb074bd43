"""Coroutines of users' plugins in virtual time: they may await `sleep`, and nothing else.

As `edge/host/loops.py` runs them: what they return, raise, or do not finish in time is the answer.
"""

from collections.abc import Callable, Generator
from typing import Any

from asched.core.framework.effects import CallPlugin
from asched.core.state.facts import Answer, Raised, Returned, TimedOut
from asched.lab.sim.clock import VirtualClock


class sleep:  # noqa: N801 - awaited like a function
    """`await sleep(seconds)` of virtual time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator["sleep", None, None]:
        yield self


class Running:
    """One coroutine under way. `hear` gets its answer, once; none after `stop`."""

    def __init__(
        self, effect: CallPlugin, clock: VirtualClock, hear: Callable[[Answer], None]
    ) -> None:
        self.effect = effect
        self._clock = clock
        self._hear = hear
        self.is_over = False
        self._coroutine: Any = effect.call()
        clock.after(effect.timeout_s, self._expire)
        clock.after(0.0, self._step)

    def stop(self) -> None:
        """The process dies, or nobody waits for it any more."""
        self.is_over = True
        self._coroutine.close()

    def _step(self) -> None:
        if self.is_over:
            return
        try:
            pause = self._coroutine.send(None)
        except StopIteration as done:
            self._end(Returned(self.effect.id, done.value))
        except Exception as error:  # noqa: BLE001 - the machine tells the pod and the operator
            self._end(Raised(self.effect.id, error))
        else:
            assert isinstance(pause, sleep), f"a simulated plugin awaits {pause!r}"
            self._clock.after(pause.seconds, self._step)

    def _expire(self) -> None:
        if not self.is_over:
            self._coroutine.close()
            self._end(TimedOut(self.effect.id))

    def _end(self, answer: Answer) -> None:
        self.is_over = True
        self._hear(answer)
