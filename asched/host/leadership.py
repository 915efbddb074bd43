"""Who leads, as the loops see it; `election.py` and `lease_thread.py` are such."""

import asyncio
from typing import Protocol

from asched.core.cycle.orders import LeaderDied


class LostLeadershipError(Exception):
    """Somebody else may lead from now on: this process has to end."""


class Leadership(Protocol):
    """The part of an election that the loops need."""

    is_leading: asyncio.Event

    def may_act(self) -> bool:
        """Whether we lead, and nobody else can."""

    def beat(self) -> None:
        """A sign of life of the loop that decides; without any it must not lead for ever."""

    def hold_back(self) -> None:
        """Before `run`: only watch who leads, until `qualify`."""

    def qualify(self) -> None:
        """The cluster is known: we may lead."""

    def predecessor(self) -> LeaderDied | None:
        """Before the first attempt: whether the leader before us died, and maybe of a pod."""

    async def run(self) -> None:
        """Campaign and lead; returns when leadership is lost."""

    async def release(self) -> None:
        """Hand the lease on."""

    async def hand_on(self, stop: asyncio.Event, *, is_settled: bool) -> None:
        """After `run`: lead no more, and hand the lease on as soon as that can be done, or until
        told to stop. `is_settled`: nothing that was asked for can still be carried out.
        """
