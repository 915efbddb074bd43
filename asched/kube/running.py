"""Protocol of a running scheduler, for pages, figures and audits; `asched.host` implements it."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Protocol

from asched.core.cycle.machine import Machine
from asched.core.model.kinds import Kind
from asched.kube.clock import Clock
from asched.kube.dispatch import Dispatcher
from asched.kube.history import History
from asched.kube.inbox import Inbox
from asched.kube.session import Session
from asched.kube.tasks import Tasks
from asched.kube.watch import Reflector
from asched.kube.watchdog import ReflectorWatchdog


class PoolHolders(Protocol):
    """Who holds the pools, where each has a Lease."""

    def holder(self, pool: str) -> str:
        """The replica that holds a pool; empty if none does."""

    def gap_s(self, pool: str) -> float | None:
        """How long no replica decided for a pool that this one holds, when it took it; None for a
        pool that it does not hold, or that had no holder before.
        """


class Running(Protocol):
    """The parts of a scheduler that other packages read, and requests they may make."""

    session: Session
    machine: Machine
    clock: Clock
    inbox: Inbox
    tasks: Tasks
    dispatcher: Dispatcher
    watchdog: ReflectorWatchdog
    history: History
    rng: Random
    is_synced: bool

    @property
    def pools(self) -> PoolHolders | None: ...

    @property
    def reflectors(self) -> Mapping[Kind, Reflector]: ...

    def may_act(self) -> bool:
        """Whether no other process can be the leader."""

    async def taken_in(self) -> None:
        """Wait until the machine has processed all facts that have arrived."""

    async def list_again(self, kinds: Iterable[Kind]) -> None:
        """List these kinds again, and wait until the lists are processed."""
