"""Leadership as the loops see it; `election.py` and `lease_thread.py` implement it."""

import asyncio
from typing import Protocol

from asched.core.cycle.orders import LeaderDied


class LostLeadershipError(Exception):
    """Another replica may lead from now on: this process has to end."""


class Leadership(Protocol):
    """The part of an election that the loops need."""

    is_leading: asyncio.Event

    def may_act(self) -> bool:
        """Whether this process leads and no other can."""

    def beat(self) -> None:
        """Called by the scheduling loop; if it stops, the lease must be released."""

    def hold_back(self) -> None:
        """Before `run`: only watch the lease, until `qualify`."""

    def qualify(self) -> None:
        """The cluster has been read: leading is allowed."""

    def predecessor(self) -> LeaderDied | None:
        """Before the first attempt: whether the previous leader died, and perhaps of which pod."""

    async def run(self) -> None:
        """Campaign and lead; returns when leadership is lost."""

    async def release(self) -> None:
        """Release the lease."""

    async def hand_on(self, stop: asyncio.Event, *, is_settled: bool) -> None:
        """After `run`: stop leading, and release the lease as soon as that is possible, or until
        `stop` is set. `is_settled`: no requested write can still be carried out.
        """
