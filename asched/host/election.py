"""Perform the election for a lease: who leads, pauses, events.

`core/leader/election.py` decides; `Campaign` performs its acts on any event loop. Requests of the
leader end at the fence at the latest, so that a frozen API server cannot extend leadership; the
serial loop checks the fence before each turn and the dispatcher before each write (`may_act`, from
any thread), so that a process that was stopped and continued does not act on an expired lease.

Bounds  one request at a time; EVENT_S for the event about a new leader; HAND_ON_S for releasing a
        lease that was lost.
"""

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from asched.core.leader.election import (
    Act,
    CreateLease,
    Election,
    LeaseTimes,
    Lost,
    OpenSeal,
    Predecessor,
    Read,
    Wait,
    WriteLease,
)
from asched.host.lease_client import LeaseClient
from asched.kube.clock import Clock
from asched.kube.errors import (
    ApiError,
    ClientError,
    Conflict,
    Forbidden,
    ServerFailed,
    TooManyRequests,
    TransportError,
)
from asched.kube.session import Session
from asched.kube.tasks import ended
from asched.ops.doctor.permissions import GRANT
from asched.serve.telemetry.component_metrics import LeaderMetrics

log = logging.getLogger("asched.leader")

EVENT_S: Final = 1.0
#: How often a leader checks whether the lease has its new names.
ANNOUNCED_S: Final = 0.1
#: A leader that lost the lease because the API server did not answer tries for this long to release
#: it. A guess: a replica that starts later has to observe the lease for its whole duration.
HAND_ON_S: Final = 60.0
#: The client of the lease gives up after half the renew deadline, but not before this.
REQUEST_S_MIN: Final = 1.0
#: The health check tolerates a lease that has expired for this long.
HEALTH_GRACE_S: Final = 20.0


class LostLeadershipError(Exception):
    """Another replica may lead from now on: this process has to end."""


def identity() -> str:
    """`<hostname>_<uuid>`, new at each start."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Stand(msgspec.Struct, frozen=True):
    """The contested lease and its rules. `schedulers` are the names that a leader schedules for;
    events name the first.
    """

    rules: LeaseTimes
    namespace: str
    name: str
    schedulers: tuple[str, ...]

    def client(self, session: Session) -> LeaseClient:
        timeout_s = max(REQUEST_S_MIN, self.rules.renew_s / 2)
        return LeaseClient(session, self.namespace, self.name, timeout_s=timeout_s)


class Campaign:
    """One process's part in the election for one lease. `began` is called when it leads."""

    def __init__(
        self,
        stand: Stand,
        metrics: LeaderMetrics,
        began: Callable[[], None],
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        election: Election | None = None,
    ) -> None:
        self.election = election or Election(stand.rules, draw, stand.schedulers)
        self._stand = stand
        self._metrics = metrics
        self._began = began
        self._clock = clock or Clock()
        self._label = f"{stand.namespace}/{stand.name}"
        #: Ends a pause.
        self._urged = asyncio.Event()
        self._leader_logged = ""
        #: Which act failed last, and its error.
        self._complained: tuple[type[Act], str] | tuple[()] = ()
        self._report(is_leader=False)

    def may_act(self) -> bool:
        """Whether this process leads and the lease cannot have expired."""
        return self.fence_s() > 0.0

    def fence_s(self) -> float:
        """For how long this process may act without another renewal; not positive if it may not."""
        election = self.election
        return election.fence_s - self._clock.now_s() if election.is_leader else 0.0

    def health_problem(self) -> str:
        """The health check: fails for a leader whose lease has long expired."""
        election = self.election
        if not election.is_leader:
            return ""
        limit_s = election.rules.lease_s + HEALTH_GRACE_S
        if self._clock.now_s() - election.renewed_s > limit_s:
            return "failed election to renew leadership on lease " + self._label
        return ""

    def hold_back(self) -> None:
        """Watch the lease without acquiring it until `qualify`; call it before `run`."""
        self.election.is_fit = False

    def qualify(self) -> None:
        """Allow leading from now on. Call it on the loop that runs the campaign."""
        self.election.is_fit = True
        self._urged.set()

    def urge(self) -> None:
        """Renew the lease now. Call it on the loop that runs the campaign."""
        self._urged.set()

    async def run(self, client: LeaseClient) -> None:
        """Campaign and lead; returns when leadership is lost."""
        log.info("Attempting to acquire leader lease...", extra={"lock": self._label})
        act: Act = self.election.woke(self._now_s())
        async with asyncio.TaskGroup() as group:
            while not isinstance(act, Lost):
                was_leader = self.election.is_leader
                act = await self._perform(client, act)
                if self.election.is_leader and not was_leader:
                    group.create_task(self._emit(client, "became leader"))
                self._log_leader()
        self._report(is_leader=False)
        log.error("Leaderelection lost", extra={"lock": self._label})
        await self._emit(client, "stopped leading")

    async def release(
        self, client: LeaseClient, *, is_handed_on: bool, is_dying: bool = False
    ) -> None:
        """Release the lease if it is ours, and stop leading; `run` must have ended.

        `is_handed_on`: all our writes are answered. `is_dying`: because of an error that the next
        leader should know of.
        """
        if not self.election.is_leader:
            return
        self.election.resign()
        try:
            await self._give_back(client, is_handed_on=is_handed_on, is_dying=is_dying)
        except ClientError as error:
            log.warning("Failed to release lock", extra={"lock": self._label, "err": error})
        self._report(is_leader=False)

    async def hand_on(self, client: LeaseClient, *, is_settled: bool) -> None:
        """Stop leading, and release a lease that was lost because the server did not answer, once
        it does; `run` must have ended.

        A replica that was also cut off would see a record new to it and wait for its whole
        duration. Unless `is_settled` one of our bindings may still be carried out: then the lease
        expires by itself first, as for a replica that saw all of it.
        """
        self.election.resign()
        self._report(is_leader=False)
        if not is_settled:
            await asyncio.sleep(max(self.election.ends_s - self._now_s(), 0.0))
        until_s = self._now_s() + HAND_ON_S
        while self._now_s() < until_s:
            try:
                await self._give_back(client, is_handed_on=is_settled)
            except (TransportError, ServerFailed, TooManyRequests, Conflict):
                await asyncio.sleep(self._stand.rules.retry_s)
            except ClientError as error:
                log.warning("Failed to release lock", extra={"lock": self._label, "err": error})
                return
            else:
                return

    async def _give_back(
        self, client: LeaseClient, *, is_handed_on: bool, is_dying: bool = False
    ) -> None:
        """Release the lease if it is ours. Raises ClientError."""
        lease = await client.get()
        if lease is None:
            return
        write = self.election.release(
            lease, self._now_s(), is_handed_on=is_handed_on, is_dying=is_dying
        )
        if write is not None:
            await client.update(write)

    def _report(self, *, is_leader: bool) -> None:
        """Report who leads; a lease that several processes hold has no leader."""
        if not self.election.is_shared:
            self._metrics.leads(self._stand.name, is_leader=is_leader)

    def _now_s(self) -> float:
        """The time, after setting the wall clock's offset for the times in the lease."""
        self.election.wall_ahead_s = self._clock.ahead_s()
        return self._clock.now_s()

    async def _perform(self, client: LeaseClient, act: Act) -> Act:
        election = self.election
        if isinstance(act, Wait):
            await self._pause(max(act.until_s - self._now_s(), 0.0))
            return election.woke(self._now_s())
        is_renewal = election.is_leader
        remaining_s = max(election.fence_s - self._now_s(), 0.0) if is_renewal else None
        slow = election.slow_renewals
        try:
            async with asyncio.timeout(remaining_s):
                answer = await _ask(client, act)
        except (ApiError, TransportError, TimeoutError) as error:
            self._complain(act, error)
            return election.failed(self._now_s())
        if self._complained[:1] == (type(act),):
            self._complained = ()
        if isinstance(act, Read):
            following = election.lease_read(answer, self._now_s())
            if is_renewal and election.slow_renewals > slow:
                self._metrics.slow_path.add(self._stand.name)
            return following
        assert answer is not None
        following = election.written(answer, self._now_s())
        if not is_renewal:
            log.info("Successfully acquired lease", extra={"lock": self._label})
            self._report(is_leader=True)
            self._began()
        return following

    async def _pause(self, seconds: float) -> None:
        """Pause; `qualify` and `urge` end the pause."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._urged.wait()
        self._urged.clear()

    def _complain(self, act: Act, error: Exception) -> None:
        """Log each failure once, until the same act succeeds."""
        why = str(error) or "no answer in time"
        if self._complained == (type(act), why):
            return
        self._complained = (type(act), why)
        extra = {"lock": self._label, "err": why}
        if isinstance(error, Forbidden):
            log.error("The lease may not be used", extra={**extra, "cure": GRANT})
        else:
            log.info("Failed to reach the lease", extra=extra)

    def _log_leader(self) -> None:
        holder = self.election.holder
        if holder and holder != self._leader_logged:
            self._leader_logged = holder
            log.info("new leader elected", extra={"v": 1, "identity": holder})

    async def _emit(self, client: LeaseClient, what: str) -> None:
        """Write a core/v1 event about the lease. A failure is only logged."""
        lease = self.election.lease
        if lease is None:
            return
        now_ns = int((self._clock.now_s() + self._clock.ahead_s()) * 1e9)
        message = f"{self.election.rules.identity} {what}"
        try:
            async with asyncio.timeout(EVENT_S):
                await client.announce(
                    lease, message, component=self._stand.schedulers[0], now_ns=now_ns
                )
        except (ApiError, TransportError, TimeoutError) as error:
            log.info("The event was not sent", extra={"v": 2, "err": error})


class LeaderCandidate:
    """Leadership as the loops see it, with the election on the scheduling loop; `session` writes
    the lease. `LeaseThread` runs the election in parallel with that loop.
    """

    def __init__(
        self,
        session: Session,
        stand: Stand,
        metrics: LeaderMetrics,
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        election: Election | None = None,
    ) -> None:
        self.is_leading = asyncio.Event()
        self.campaign = Campaign(
            stand, metrics, self._began, clock=clock, draw=draw, election=election
        )
        self.may_act = self.campaign.may_act
        self.fence_s = self.campaign.fence_s
        self.health_problem = self.campaign.health_problem
        self.hold_back = self.campaign.hold_back
        self._session = session
        self._stand = stand

    def beat(self) -> None:
        """Called by the scheduling loop, which renews the lease itself here."""

    def qualify(self) -> None:
        """The cluster has been read: leading is allowed."""
        self.call(self.campaign.qualify)

    def call(self, call: Callable[[], None]) -> None:
        """Call this on the loop of the campaign."""
        call()

    async def run(self) -> None:
        try:
            await self._compete(self._session)
        finally:
            self.is_leading.clear()

    async def _compete(self, session: Session) -> None:
        """Campaign until leadership is lost."""
        await self.campaign.run(self._stand.client(session))

    @property
    def predecessor(self) -> Predecessor | None:
        """The leader before this one, unless it handed the lease on or is sealed; for a leader
        only.
        """
        return self.campaign.election.predecessor

    def sealed(self) -> None:
        """The leader before this one can do no harm any more."""
        self.campaign.election.sealed()

    def seals(self, begun: OpenSeal) -> None:
        """The lease is to say that this leader seals, and has not decided."""
        self.campaign.election.seals(begun)

    async def decides(self) -> None:
        """Return once the lease does not say, and cannot say later, that this leader has not
        decided, or once it is lost.
        """
        await self._decides(self.campaign)

    async def _decides(self, campaign: Campaign) -> None:
        election = campaign.election
        election.decides()
        if election.may_say_undecided:
            self.call(campaign.urge)
        while election.is_leader and election.may_say_undecided:  # noqa: ASYNC110 - written by another thread
            await asyncio.sleep(ANNOUNCED_S)

    async def announce(self, schedulers: Iterable[str]) -> None:
        """Return once the lease says that a leader also schedules for these names, or, of a
        standby, will say so: a successor must know whose bindings may be under way.
        """
        election, wanted = self.campaign.election, frozenset(schedulers)
        election.schedulers |= wanted
        while self.is_leading.is_set() and not wanted <= election.announced:  # noqa: ASYNC110 - written by another thread
            await asyncio.sleep(ANNOUNCED_S)

    async def release(self, *, is_handed_on: bool) -> None:
        """Release the lease at a clean stop; `run` must have ended. `is_handed_on`: all writes of
        this process are answered.
        """
        await self._release(self._session, is_handed_on=is_handed_on)

    async def _release(
        self, session: Session, *, is_handed_on: bool, is_dying: bool = False
    ) -> None:
        client = self._stand.client(session)
        await self.campaign.release(client, is_handed_on=is_handed_on, is_dying=is_dying)

    async def hand_on(self, stop: asyncio.Event, *, is_settled: bool) -> None:
        """After `run`: stop leading, and release the lease as soon as that is possible, or until
        `stop` is set. `is_settled`: no requested write can still be carried out.
        """
        giving = asyncio.ensure_future(self._hand_on(is_settled=is_settled))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((giving, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended((giving, stopped))

    async def _hand_on(self, *, is_settled: bool) -> None:
        await self.campaign.hand_on(self._stand.client(self._session), is_settled=is_settled)

    def _began(self) -> None:
        self.is_leading.set()


def _ask(client: LeaseClient, act: Act) -> Awaitable[dict[str, Any] | None]:
    match act:
        case CreateLease():
            return client.create(act)
        case WriteLease():
            return client.update(act)
    return client.get()
