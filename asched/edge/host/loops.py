"""The moving parts of a running scheduler: watch streams, one serial loop, binding tasks.

    reflectors (one per kind) ──facts──┐
    dispatcher (lanes)  ──answers──────┴─> inbox ──> [machine.handle] ──effects──> dispatcher
                                                     one at a time                  many at a time

`Scheduler.run` lives through: connect, list everything, schedule until told to stop, drain. The
serial loop is `_turns`: it is the only caller of the machine, and between two calls it waits for
facts or for the machine's next deadline. This file is the only one that turns an effect into an
await.

Bounds  DRAIN_S for a shutdown; SYNC_WARN_S after which a start-up that waits says for what.
"""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from asched.core.cycle.machine import Machine
from asched.core.framework.effects import CallPlugin, Effect, Lane
from asched.core.model.kinds import KINDS, Kind
from asched.core.state.facts import Answer, Fact, Raised, Returned
from asched.edge.client.dispatch import Dispatcher
from asched.edge.client.errors import ApiError, ClientError
from asched.edge.client.session import Session
from asched.edge.client.watch import Reflector
from asched.edge.host.clock import Clock
from asched.edge.host.inbox import Inbox
from asched.edge.host.tasks import Tasks

log = logging.getLogger("asched.host")

#: From the signal to the end: bindings under way are finished or given back within this.
DRAIN_S: Final = 8.0
#: A start-up that takes longer than this names the kinds it waits for. A guess.
SYNC_WARN_S: Final = 10.0

#: Generation 0 threshold once everything is listed: records are not tracked, so little garbage is
#: cyclic, and a full pass would stop the loop. Measured: pauses fell from 40 ms to under 1 ms.
GC_THRESHOLD: Final = 100_000

UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403


class CannotStartError(Exception):
    """The scheduler cannot begin; the message is one clear line with its cure."""


class Scheduler:
    """One running scheduler: a machine with its connections. Build it inside the loop that runs
    it.
    """

    def __init__(
        self,
        session: Session,
        machine: Machine,
        *,
        make_dispatcher: Callable[[Session, Callable[[Answer], None]], Dispatcher] = Dispatcher,
        kinds: Iterable[Kind] = KINDS,
        clock: Clock | None = None,
    ) -> None:
        self.session = session
        self.machine = machine
        self.clock = clock or Clock()
        self.inbox = Inbox(self._wake)
        self.tasks = Tasks()
        self.dispatcher = make_dispatcher(session, self.inbox.put)
        self.reflectors = {
            kind: Reflector(kind, session.general, self.inbox.put, on_failure=self._on_failure)
            for kind in kinds
        }
        self.is_synced = False
        self.is_stopping = False
        self._waker: asyncio.Future[None] | None = None
        self._cannot_start: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._turned = asyncio.Event()  # pulsed after every turn

    def stop(self) -> None:
        """Ask for an orderly end: finish or give back what is under way, then return from `run`."""
        self._stop.set()

    async def run(self) -> None:
        """Schedule until `stop`. Raises CannotStartError, or whatever killed one of its tasks."""
        was_active, self.machine.is_active = self.machine.is_active, False
        gc.disable()
        try:
            self.tasks.spawn("dispatcher", self.dispatcher.run())
            for kind, reflector in self.reflectors.items():
                self.tasks.spawn(f"watch {kind.plural}", reflector.run())
            turns = self.tasks.spawn("turns", self._turns())
            await self._until_synced()
            self._settle_memory()
            self.machine.is_active = was_active
            self.is_synced = True
            self._wake()
            log.info("synced", extra={"nodes": self.machine.desk.cluster.nodes.count})
            await self._first(self._stop.wait(), self.tasks.failed)
            await self._drain()
            turns.cancel()
        finally:
            gc.enable()
            await self.tasks.cancel_all()
            await self.session.close()

    # --- the one serial loop ---------------------------------------------------------------------

    async def _turns(self) -> None:
        """Hand facts to the machine and effects to the dispatcher, one turn after the other."""
        loop = asyncio.get_running_loop()
        machine, inbox = self.machine, self.inbox
        while True:
            for effect in machine.handle(inbox.drain(), self.clock.now_s()):
                self._perform(effect)
            self._turned.set()
            self._turned.clear()
            if inbox:
                await asyncio.sleep(0)
                continue
            deadline_s = machine.next_deadline_s()
            if deadline_s is not None and deadline_s <= self.clock.now_s():
                await asyncio.sleep(0)
                continue
            self._waker = loop.create_future()
            timer = None
            if deadline_s is not None:
                timer = loop.call_later(deadline_s - self.clock.now_s(), self._wake)
            await self._waker
            if timer is not None:
                timer.cancel()

    async def _turn(self, timeout_s: float | None = None) -> None:
        """Wait until the machine has had its next turn."""
        await self._first(self._turned.wait(), self.tasks.failed, timeout_s=timeout_s)

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, CallPlugin):
            self.tasks.spawn(f"plugin {effect.plugin}", self._call(effect))
        else:
            self.dispatcher.submit(effect)

    async def _call(self, effect: CallPlugin) -> None:
        """Run a coroutine of a user's plugin; whatever it raises becomes its answer."""
        answer: Fact
        try:
            answer = Returned(effect.id, await effect.call())
        except Exception as error:  # noqa: BLE001 - the machine tells the pod and the operator
            answer = Raised(effect.id, error)
        self.inbox.put(answer)

    # --- start -----------------------------------------------------------------------------------

    async def _until_synced(self) -> None:
        gate = asyncio.gather(*(r.synced.wait() for r in self.reflectors.values()))
        while True:
            await self._first(gate, self.tasks.failed, self._cannot_start, timeout_s=SYNC_WARN_S)
            if self._cannot_start.done():
                gate.cancel()
                raise CannotStartError(self._cannot_start.result())
            if gate.done():
                break
            if self._stop.is_set():
                gate.cancel()
                return
            waiting = [k.plural for k, r in self.reflectors.items() if not r.synced.is_set()]
            log.warning("still waiting for the first list of %s", ", ".join(waiting))
        while self.inbox:  # the machine has to have seen what was listed
            await self._turn()

    def _on_failure(self, kind: Kind, error: ClientError) -> None:
        """A list or watch failed. What no waiting cures ends the start-up with one line."""
        if not isinstance(error, ApiError) or self.is_synced or self._cannot_start.done():
            return
        if error.code == UNAUTHORIZED:
            self._cannot_start.set_result(
                f"{self.session.url} does not accept the credentials ({error.message});"
                " renew the token or certificate in the kubeconfig"
            )
        elif error.code == FORBIDDEN:
            group = kind.group_version.rpartition("/")[0] or "core"
            self._cannot_start.set_result(
                f'may not list or watch {kind.plural} (API group "{group}"): {error.message};'
                " grant the verbs list and watch, as deploy/base/rbac.yaml does"
            )

    def _settle_memory(self) -> None:
        """What the first lists made stays for good: take it out of the collector's sight."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 50, 1000)
        gc.enable()

    # --- end -------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """No pod is popped any more; bindings under way get their answer, then the lanes empty."""
        self.is_stopping = True
        self.machine.is_active = False
        until_s = self.clock.now_s() + DRAIN_S / 2
        while not self.machine.is_idle and self.clock.now_s() < until_s:
            await self._turn(until_s - self.clock.now_s())
        await self.dispatcher.drain(DRAIN_S / 2)
        log.info("drained", extra={"bindings_left": self.machine.bindings})

    async def _first(self, *waits: Awaitable[Any], timeout_s: float | None = None) -> None:
        """Wait for any of these; a task's death is raised here."""
        futures = [asyncio.ensure_future(wait) for wait in waits]
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for future, wait in zip(futures, waits, strict=True):
            if future is not wait:
                future.cancel()
        if self.tasks.failed.done():
            raise self.tasks.failed.result()


def lanes_in_use(scheduler: Scheduler) -> dict[str, int]:
    """Effects queued per lane, for those who look from outside."""
    return {lane.name.lower(): scheduler.dispatcher.queued_count(lane) for lane in Lane}
