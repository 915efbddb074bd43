"""A loop in virtual time, on which something runs as long as a test says."""

import asyncio

from asched_lab.sim.clock import START_S, VirtualClock
from asched_lab.sim.loop import VirtualLoop


class OnVirtualLoop:
    """Times count from the start."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.loop = VirtualLoop(self.clock)

    @property
    def s(self) -> float:
        return self.clock.now_s() - START_S

    def until(self, end_s: float) -> None:
        """Let all happen that is due by then."""
        while (next_s := self.loop.next_s()) is not None and next_s <= START_S + end_s + 1e-9:
            self.clock.jump(next_s)
            self.loop.step()
        self.clock.jump(START_S + end_s)

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.until(self.s)
        self.loop.close()
