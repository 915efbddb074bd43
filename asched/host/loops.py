"""The loops of a running scheduler: watch streams, one serial loop, binding tasks.

    reflectors (one per kind) ──facts──┐
    dispatcher (lanes)  ──answers──────┴─> inbox ──> [machine.handle] ──effects──> dispatcher
                                                     one at a time                  many at a time

`Scheduler.run` lists everything, stands by until it leads, schedules until stopped, drains, and
releases the lease. A standby processes facts as a leader does, so its columns are current. The
serial loop is `_turns`: it alone calls the machine, and between two calls it waits for facts or for
the machine's next deadline. Effects become requests only here and in `plugin_calls.py`.

Bounds  DRAIN_S for a shutdown; SYNC_WARN_S after which a waiting start-up logs the reason;
        BEAT_S between two beats to the election, and two checks of the wall clock.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from math import inf
from typing import TYPE_CHECKING, Any, Final

from asched.core.cluster.facts import Answer, Fact, WallClock
from asched.core.config.pools import DEFAULT_POOL
from asched.core.cycle.machine import Machine
from asched.core.cycle.orders import Reconfigured
from asched.core.framework.effects import CallPlugin, CancelCall, Effect
from asched.core.framework.waiting import Stage
from asched.core.leader.election import Predecessor
from asched.core.model.kinds import KINDS, POD, Kind
from asched.host.election import LeaderCandidate, LostLeadershipError
from asched.host.memory import Collector, own_process
from asched.host.plugin_calls import PluginCalls
from asched.host.pool_leases import PoolCandidate
from asched.host.pools import PoolKeeper
from asched.host.seal import Seal
from asched.kube.clock import Clock
from asched.kube.dispatch import Dispatcher
from asched.kube.errors import ClientError, HistoryChanged
from asched.kube.history import History
from asched.kube.inbox import Inbox, Listener
from asched.kube.pace import ListPacer, ReflectorOptions
from asched.kube.polling import Poller
from asched.kube.raw_objects import RawObjects
from asched.kube.session import Session
from asched.kube.tasks import Tasks
from asched.kube.watch import POD_FIELD_SELECTOR, Reflector
from asched.kube.watchdog import ReflectorWatchdog, SilentWatchError, StartOverError

if TYPE_CHECKING:  # imported only for a recording
    from asched.ops.recording.recorder import Recorder

log = logging.getLogger("asched.host")

#: From the signal to the end: bindings in flight are finished or cancelled within this time.
DRAIN_S: Final = 8.0
#: A start-up that takes longer logs the kinds it waits for. A guess.
SYNC_WARN_S: Final = 10.0
BEAT_S: Final = 1.0
#: The machine is notified when the wall clock is set by this much; objects have whole seconds.
WALL_CLOCK_S: Final = 0.5


class CannotStartError(Exception):
    """The scheduler cannot start; the message is one line with the fix."""


class Scheduler:
    """A machine with its connections. Create it inside the loop that runs it."""

    def __init__(
        self,
        session: Session,
        machine: Machine,
        *,
        make_dispatcher: Callable[[Session, Callable[[Answer], None]], Dispatcher] = Dispatcher,
        kinds: Iterable[Kind] = KINDS,
        clock: Clock | None = None,
        leadership: LeaderCandidate | None = None,
        delay_cache: bool = False,
        raw_objects: RawObjects | None = None,
        listeners: Mapping[Kind, Listener] | None = None,
        memory: AbstractContextManager[Collector] | None = None,
        rng: random.Random | None = None,
        recorder: "Recorder | None" = None,
    ) -> None:
        """`memory` yields a collector that is called after the first lists and after turns; `rng`
        spreads the pauses of streams. `listeners` get the facts of a kind and run in parallel with
        the machine.
        """
        self.session = session
        self.machine = machine
        self._handler: Machine | Recorder = recorder or machine
        self.clock = clock or Clock()
        self.inbox = Inbox(self._wake)
        self.tasks = Tasks()
        self._calls = PluginCalls(self.tasks, self.inbox.put)
        self._is_following = False
        self.dispatcher = make_dispatcher(session, self.inbox.put)
        self._raw_objects = raw_objects
        self._listeners = listeners or {}
        self.reflectors: dict[Kind, Reflector] = {}
        self._pollers: dict[Kind, Poller] = {}
        self.watchdog = ReflectorWatchdog(self.reflectors, self.clock.awake_s)
        self.history, self._pacer = History(session.general), ListPacer(self.clock.awake_s)
        self._memory = memory or own_process()
        self._collector: Collector
        self.rng = rng or random.Random()
        for kind in kinds:
            self.watch(kind)
        self.is_synced = False
        self.begun = asyncio.Event()  # the first turn that may schedule
        self.is_stopping = False
        self.leadership = leadership  # None: always leading
        #: What this process holds where each pool has a Lease; None: all.
        self.pools: PoolKeeper | None = None
        if isinstance(leadership, PoolCandidate):
            self.pools = PoolKeeper(self, leadership)
        self._delay_cache = delay_cache  # list nothing before leading
        self._is_open = False
        #: The state was invalid: no further effect is sent.
        self._is_void = False
        self._waker: asyncio.Future[None] | None = None
        self._cannot_start: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._turn_done = asyncio.get_running_loop().create_future()  # a new one for each turn

    def stop(self) -> None:
        """Request a clean stop: finish or cancel bindings in flight, then return from `run`."""
        self._stop.set()

    def watch(self, kind: Kind) -> None:
        """Follow this kind, too; at once if the other kinds are followed already."""
        if kind in self.reflectors or kind in self._pollers:
            return
        if kind.poll_s:
            self._pollers[kind] = Poller(kind, self.session.general, self.inbox.put, self.rng)
            if self._is_following:
                self._poll(kind)
            return
        raw_objects, listener = self._raw_objects, self._listeners.get(kind)
        put = self.inbox.put if raw_objects is None else self._keeping(raw_objects)
        self.reflectors[kind] = Reflector(
            kind,
            self.session.general,
            put if listener is None else listener.observing(put),
            options=ReflectorOptions(
                field_selector=POD_FIELD_SELECTOR if kind is POD else "",
                rng=self.rng,
                clock=self.clock.awake_s,
            ),
            on_failure=self._on_failure,
            raw_objects=raw_objects,
            history=self.history,
            pacer=self._pacer,
        )
        if kind is POD:
            self.dispatcher.on_bound = self.reflectors[kind].expect
        if self._is_following:
            self._follow(kind)

    def _keeping(self, raw_objects: RawObjects) -> Callable[[Fact], None]:
        """Pass facts to the inbox and drop whole objects that were deleted."""

        def put(fact: Fact) -> None:
            raw_objects.observe(fact)
            self.inbox.put(fact)

        return put

    async def run(self) -> None:
        """Schedule until `stop`. Raises CannotStartError, StartOverError, or a task's error."""
        was_active, self.machine.is_active = self.machine.is_active, False
        if self.pools is not None:
            self.pools.begin()
        with self._memory as self._collector:
            try:
                self.tasks.spawn("dispatcher", self.dispatcher.run())
                turns = self.tasks.spawn("turns", self._turns())
                self.tasks.spawn("beat", self._beat())
                if self.leadership is not None:
                    # Prepare the election while the first lists are read.
                    if not self._delay_cache:
                        self.leadership.hold_back()
                    self.tasks.spawn("election", self._campaign(self.leadership))
                if self._delay_cache:
                    self._collector.settle()  # a standby may wait for months
                    await self._until_leading()
                self._is_following = True
                for kind in self.reflectors:
                    self._follow(kind)
                for kind in self._pollers:
                    self._poll(kind)
                self.tasks.spawn("connection", self.dispatcher.prepare())
                await self._until_synced()
                self._collector.settle()
                if not self._stop.is_set():
                    self.is_synced = True
                    log.info("synced", extra={"nodes": self.machine.context.cluster.nodes.count})
                    if not self._delay_cache:
                        await self._until_leading()
                    if self.leadership is not None:
                        self.tasks.spawn("watchdog", self.watchdog.watch_over(self.may_act))
                    if was_active:
                        # late bindings of the leader before are made to fail first
                        seal = self.tasks.spawn("seal", self._seal())
                        await self._first(seal, self._stop.wait(), self.tasks.failed)
                        await self.tasks.cancel("seal")
                    if was_active and self.pools is not None:
                        self.tasks.spawn("pools", self.pools.run())
                    self._is_open = was_active and not self._stop.is_set()
                    self._wake()
                await self._first(self._stop.wait(), self.tasks.failed)
                await self._drain()
                await self._hand_over()
                turns.cancel()
            except (SilentWatchError, HistoryChanged) as error:
                await self._give_up(error)
            finally:
                await self.tasks.cancel_all()
                await self.session.close()

    # --- the one serial loop ---------------------------------------------------------------------

    async def _turns(self) -> None:
        """Pass facts to the machine and effects to the dispatcher, turn by turn."""
        loop, machine, inbox = asyncio.get_running_loop(), self.machine, self.inbox
        while True:
            machine.is_active = self._is_open and self.may_act()
            facts = [] if machine.is_taking_in else inbox.drain()
            for effect in self._handler.handle(facts, self.clock.now_s()):
                self._perform(effect)
            if facts:
                inbox.took(machine.intake_s)
            if machine.is_active:
                self.begun.set()
            self._turn_done.set_result(None)
            self._turn_done = loop.create_future()
            self._collector.turn_ended()
            deadline_s = machine.next_deadline_s()
            if inbox or (deadline_s is not None and deadline_s <= self.clock.now_s()):
                await asyncio.sleep(0)
                continue
            self._waker = loop.create_future()
            timer = None
            if deadline_s is not None:
                timer = loop.call_later(deadline_s - self.clock.now_s(), self._wake)
            await self._waker
            if timer is not None:
                timer.cancel()

    def may_act(self) -> bool:
        """Whether no other process can be leading."""
        return not self._is_void and (self.leadership is None or self.leadership.may_act())

    def fence_s(self, effect: Effect) -> float:
        """For how long this process may perform an effect; -inf if another one decides about
        it.
        """
        if self.pools is not None:
            return self.pools.fence_s(effect)
        return inf if self.leadership is None else self.leadership.fence_s()

    def keeps_statuses(self) -> bool:
        """Whether this process, if it may act, writes what only one may write: of several that
        share pools the holder of the pool `default` does.
        """
        return self.pools is None or self.pools.holds(DEFAULT_POOL)

    async def _turn(self, timeout_s: float | None = None) -> None:
        """Wait until the machine has had its next turn."""
        await self._first(self._turn_done, self.tasks.failed, timeout_s=timeout_s)

    async def taken_in(self) -> None:
        """Wait until the machine has processed all facts that have arrived."""
        arrived = self.inbox.arrived
        while self.inbox.drained < arrived or self.machine.is_taking_in:
            await self._turn()

    async def _beat(self) -> None:
        """Report progress to the election, and notify the machine of a changed wall clock."""
        reported_s = 0.0
        while True:
            if self.leadership is not None:
                self.leadership.beat()
            ahead_s = self.clock.ahead_s()
            if abs(ahead_s - reported_s) >= WALL_CLOCK_S:
                reported_s = ahead_s
                self.inbox.put(WallClock(ahead_s))
            self._collector.turn_ended()  # for garbage of other tasks while idle
            await asyncio.sleep(BEAT_S)

    async def reconfigure(self, order: Reconfigured) -> None:
        """Use other profiles from the next turn on, and wait for it."""
        self.inbox.put(order)
        await self.taken_in()

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, CallPlugin):
            self._calls.begin(effect)
        elif isinstance(effect, CancelCall):
            self._calls.cancel(effect)
        else:
            self.dispatcher.submit(effect)

    # --- start -----------------------------------------------------------------------------------

    async def _until_synced(self) -> None:
        gate = asyncio.ensure_future(self._all_listed())
        while True:
            cannot, stop = self._cannot_start, self._stop.wait()
            await self._first(gate, stop, cannot, self.tasks.failed, timeout_s=SYNC_WARN_S)
            if self._cannot_start.done():
                gate.cancel()
                raise CannotStartError(self._cannot_start.result())
            if gate.done():
                break
            if self._stop.is_set():
                gate.cancel()
                return
            waiting = [kind for kind, r in self.reflectors.items() if not r.synced.is_set()]
            why = next(filter(None, map(self.watchdog.why, waiting)), "")
            names = ", ".join(kind.plural for kind in waiting)
            log.warning("still waiting for the first list of %s%s", names, why and f": {why}")
        await self.taken_in()

    async def _all_listed(self) -> None:
        for reflector in self.reflectors.values():
            await reflector.synced.wait()

    def _follow(self, kind: Kind, *, newest: bool = False) -> None:
        name = kind.resource
        self.tasks.spawn(f"watch {name}", self.reflectors[kind].run(newest=newest))
        listener = self._listeners.get(kind)
        if listener is not None and not self.tasks.has(f"listener to {name}"):
            self.tasks.spawn(f"listener to {name}", listener.run())

    def _poll(self, kind: Kind) -> None:
        self.tasks.spawn(f"list {kind.name}", self._pollers[kind].run())

    async def list_again(self, kinds: Iterable[Kind]) -> None:
        """Restart the watches of these kinds with lists of the newest state, and wait for them. The
        version of an idle kind in the server's cache may stand still, so a list from there would
        not prove that nothing is missing.

        Kinds whose watch has not begun are skipped: it begins with a list.
        """
        begun = [kind for kind in kinds if self.tasks.has(f"watch {kind.resource}")]
        for kind in begun:
            await self.tasks.cancel(f"watch {kind.resource}")
            self.reflectors[kind].synced.clear()
            self._follow(kind, newest=True)
        for kind in begun:
            await self.reflectors[kind].synced.wait()
        if begun:
            await self.taken_in()

    def _on_failure(self, kind: Kind, error: ClientError) -> None:
        """A list or watch failed. A permanent failure ends the start-up with one line."""
        self.watchdog.failed(kind, error)
        self._is_void |= isinstance(error, HistoryChanged)
        is_starting = not self.is_synced and not self._cannot_start.done()
        if is_starting and (refusal := self.watchdog.refusal(kind, error, self.session.url)):
            self._cannot_start.set_result(refusal)

    async def _until_leading(self) -> None:
        if self.leadership is None:
            return
        self.leadership.qualify()
        await self._first(self.leadership.is_leading.wait(), self._stop.wait(), self.tasks.failed)

    async def _seal(self) -> None:
        """Make sure that nothing of the leader before this one is carried out late."""
        leadership = self.leadership
        if leadership is None:
            await Seal(self, Predecessor()).run()
        else:
            await Seal(self, leadership.predecessor, leadership.seals).run()
            await leadership.decides()
            leadership.sealed()

    async def _campaign(self, leadership: LeaderCandidate) -> None:
        """Lead until leadership is lost; nothing is decided or sent after that."""
        await leadership.run()
        self._is_open = self.machine.is_active = False
        is_settled = self._is_settled
        await self.tasks.cancel("dispatcher", "pools")
        await leadership.hand_on(self._stop, is_settled=is_settled)
        raise LostLeadershipError("another process may lead now")

    # --- end -------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Stop scheduling, wait for the answers of bindings, and empty the lanes."""
        self.is_stopping, self._is_open, self.machine.is_active = True, False, False
        await self.tasks.cancel("pools")
        until_s = self.clock.now_s() + DRAIN_S / 2
        while not self.machine.is_idle and self.clock.now_s() < until_s:
            await self._turn(until_s - self.clock.now_s())
        await self.dispatcher.drain(DRAIN_S / 2)
        if self.inbox:  # answers of unsent bindings
            await self._first(self.taken_in(), self.tasks.failed, timeout_s=DRAIN_S / 2)
        log.info("drained", extra={"bindings_left": self.machine.bindings})

    @property
    def _has_bindings(self) -> bool:
        """Whether bindings may still be carried out."""
        return any(pod.stage is Stage.BINDING for pod in self.machine.context.waiting)

    @property
    def _is_settled(self) -> bool:
        """Whether all writes are answered, so that the next leader knows their results."""
        return not self._has_bindings and self.dispatcher.is_settled

    async def _hand_over(self) -> None:
        """Release the lease. It is left to expire if a binding may still be carried out that the
        next leader cannot know of and might overcommit a node with.
        """
        has_bindings = self._has_bindings
        await self.tasks.cancel("election")
        if self.leadership is not None and not has_bindings:
            await self.leadership.release(is_handed_on=self._is_settled)
        elif has_bindings:
            log.warning("some bindings may still be carried out: the lease is left to expire")

    async def _give_up(self, why: Exception) -> None:
        """Send nothing more, not even queued effects; another process may be leading."""
        self._is_void, self._is_open, self.machine.is_active = True, False, False
        is_settled = self._is_settled
        await self.tasks.cancel("dispatcher", "election", "pools")
        if self.leadership is not None:
            await self.leadership.hand_on(self._stop, is_settled=is_settled)
        if not self._stop.is_set():
            raise StartOverError(str(why)) from why

    async def _first(self, *waits: Awaitable[Any], timeout_s: float | None = None) -> None:
        """Wait for any of these; an error of a task is raised here."""
        futures = [asyncio.ensure_future(wait) for wait in waits]
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for future, wait in zip(futures, waits, strict=True):
            if future is not wait:
                future.cancel()
        if self.tasks.failed.done():
            raise self.tasks.failed.result()
