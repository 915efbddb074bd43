"""The election's hands: requests about the lease, pauses, and the news of who leads.

`core/leader/election.py` decides; this file performs, on whatever event loop runs it
(`lease_thread.py` has one). A request of the leader ends at the fence at the latest, so that a
frozen API server is not believed in; the fence itself is also looked at by the serial loop before
each turn and by the dispatcher before each write (`may_act`, from any thread), so that a process
which was stopped and continued does not act on a lease that ran out meanwhile.

Bounds  one request at a time; EVENT_S for the event that tells of a new leader; HAND_ON_S for
        handing on a lease that was lost.
"""

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from asched.core.cycle.orders import LeaderDied
from asched.core.leader.election import (
    Act,
    CreateLease,
    Election,
    LeaseTimes,
    Lost,
    Read,
    Wait,
    WriteLease,
)
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
from asched.kube.leases import LeaseClient
from asched.kube.session import Session
from asched.ops.doctor.permissions import GRANT
from asched.serve.telemetry.component_metrics import LeaderMetrics

log = logging.getLogger("asched.leader")

EVENT_S: Final = 1.0
#: Who lost the lease because nobody answered tries for so long to give it back. A guess: whoever
#: starts after a longer silence has to see the lease unchanged for as long as it lasts.
HAND_ON_S: Final = 60.0
#: The lock's client gives up after half the renew deadline, but not before this.
REQUEST_S_MIN: Final = 1.0
#: As long past the lease's end the health check still believes in a leader.
HEALTH_GRACE_S: Final = 20.0


def identity() -> str:
    """`<hostname>_<uuid>`, new at each start."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Stand(msgspec.Struct, frozen=True):
    """What is stood for: a lease, by its rules. `component` is named in events."""

    rules: LeaseTimes
    namespace: str
    name: str
    component: str

    def client(self, session: Session) -> LeaseClient:
        timeout_s = max(REQUEST_S_MIN, self.rules.renew_s / 2)
        return LeaseClient(session, self.namespace, self.name, timeout_s=timeout_s)


class Campaign:
    """One process's part in the election of one lease. `began` is called when it leads."""

    def __init__(
        self,
        stand: Stand,
        metrics: LeaderMetrics,
        began: Callable[[], None],
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.election = Election(stand.rules, draw)
        self._stand = stand
        self._metrics = metrics
        self._began = began
        self._clock = clock or Clock()
        self._label = f"{stand.namespace}/{stand.name}"
        self._qualified = asyncio.Event()
        self._qualified.set()
        self._leader_told = ""
        #: Which act failed last, and why.
        self._complained: tuple[type[Act], str] | tuple[()] = ()
        metrics.leads(stand.name, is_leader=False)

    def may_act(self) -> bool:
        """Whether we lead, and the lease cannot have run out."""
        return self.election.is_leader and self._clock.now_s() < self.election.fence_s

    def trouble(self) -> str:
        """The health check: a leader whose lease should long be somebody else's is not well."""
        election = self.election
        if not election.is_leader:
            return ""
        limit_s = election.rules.lease_s + HEALTH_GRACE_S
        if self._clock.now_s() - election.renewed_s > limit_s:
            return "failed election to renew leadership on lease " + self._label
        return ""

    def predecessor(self) -> LeaderDied | None:
        """The death of the leader before us, if it did not hand the lease on."""
        election = self.election
        if not election.dead_leaders:
            return None
        return LeaderDied(election.dead_leaders, election.died_young)

    def hold_back(self) -> None:
        """Watch the lease, and leave it alone until `qualify`; before `run`."""
        self.election.is_fit = False
        self._qualified.clear()

    def qualify(self) -> None:
        """It may lead from now on. To be called on the loop that runs it."""
        self.election.is_fit = True
        self._qualified.set()

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
                self._tell()
        self._metrics.leads(self._stand.name, is_leader=False)
        log.error("Leaderelection lost", extra={"lock": self._label})
        await self._emit(client, "stopped leading")

    async def release(self, client: LeaseClient, *, is_dying: bool = False) -> None:
        """Hand the lease on if it is ours, and lead no more; `run` must not run any more.

        `is_dying`: of something that the next leader had better be wary of.
        """
        if not self.election.is_leader:
            return
        self.election.resign()
        try:
            await self._give_back(client, is_dying=is_dying)
        except ClientError as error:
            log.warning("Failed to release lock", extra={"lock": self._label, "err": error})
        self._metrics.leads(self._stand.name, is_leader=False)

    async def hand_on(self, client: LeaseClient, *, is_settled: bool) -> None:
        """Lead no more, and give back what was lost because nobody answered, once somebody does;
        `run` must not run any more.

        Whoever was cut off, too, would see a record that is new to them, and wait for its whole
        length. Unless `is_settled` something of ours may still be carried out: then the lease ends
        by itself first, as for whoever saw all of it.
        """
        self.election.resign()
        self._metrics.leads(self._stand.name, is_leader=False)
        if not is_settled:
            await asyncio.sleep(max(self.election.ends_s - self._now_s(), 0.0))
        until_s = self._now_s() + HAND_ON_S
        while self._now_s() < until_s:
            try:
                await self._give_back(client)
            except (TransportError, ServerFailed, TooManyRequests, Conflict):
                await asyncio.sleep(self._stand.rules.retry_s)
            except ClientError as error:
                log.warning("Failed to release lock", extra={"lock": self._label, "err": error})
                return
            else:
                return

    async def _give_back(self, client: LeaseClient, *, is_dying: bool = False) -> None:
        """If it is ours. Raises ClientError."""
        lease = await client.get()
        if lease is None:
            return
        write = self.election.release(lease, self._now_s(), is_dying=is_dying)
        if write is not None:
            await client.update(write.lease, write.record.spec())

    # --- inside ----------------------------------------------------------------------------------

    def _now_s(self) -> float:
        """Now, after telling the election what the lease's own times are to say."""
        self.election.wall_ahead_s = self._clock.ahead_s()
        return self._clock.now_s()

    async def _perform(self, client: LeaseClient, act: Act) -> Act:
        election = self.election
        if isinstance(act, Wait):
            await self._pause(max(act.until_s - self._now_s(), 0.0))
            return election.woke(self._now_s())
        is_renewal = election.is_leader
        left_s = max(election.fence_s - self._now_s(), 0.0) if is_renewal else None
        slow = election.slow_renewals
        try:
            async with asyncio.timeout(left_s):
                answer = await _ask(client, act)
        except (ApiError, TransportError, TimeoutError) as error:
            self._complain(act, error)
            return election.failed(self._now_s())
        if self._complained[:1] == (type(act),):
            self._complained = ()
        if isinstance(act, Read):
            following = election.found(answer, self._now_s())
            if is_renewal and election.slow_renewals > slow:
                self._metrics.took_slow_path(self._stand.name)
            return following
        assert answer is not None
        following = election.written(answer, self._now_s())
        if not is_renewal:
            log.info("Successfully acquired lease", extra={"lock": self._label})
            self._metrics.leads(self._stand.name, is_leader=True)
            self._began()
        return following

    async def _pause(self, seconds: float) -> None:
        """Whoever qualifies meanwhile waits no longer."""
        if self._qualified.is_set():
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._qualified.wait()

    def _complain(self, act: Act, error: Exception) -> None:
        """Once for each thing that is wrong, until the same succeeds."""
        why = str(error) or "no answer in time"
        if self._complained == (type(act), why):
            return
        self._complained = (type(act), why)
        extra = {"lock": self._label, "err": why}
        if isinstance(error, Forbidden):
            log.error("The lease may not be used", extra={**extra, "cure": GRANT})
        else:
            log.info("Failed to reach the lease", extra=extra)

    def _tell(self) -> None:
        holder = self.election.holder
        if holder and holder != self._leader_told:
            self._leader_told = holder
            log.info("new leader elected", extra={"v": 1, "identity": holder})

    async def _emit(self, client: LeaseClient, what: str) -> None:
        """A core/v1 event about the lease. A failure is logged, no more."""
        lease = self.election.lease
        if lease is None:
            return
        now_ns = int((self._clock.now_s() + self._clock.ahead_s()) * 1e9)
        message = f"{self.election.rules.identity} {what}"
        try:
            async with asyncio.timeout(EVENT_S):
                await client.announce(
                    lease, message, component=self._stand.component, now_ns=now_ns
                )
        except (ApiError, TransportError, TimeoutError) as error:
            log.info("The event was not sent", extra={"v": 2, "err": error})


class LeaderCandidate:
    """Leads as `loops.Leadership` asks, on the loop that decides; `session` writes the lease.

    `lease_thread.py` leads beside that loop.
    """

    def __init__(
        self,
        session: Session,
        stand: Stand,
        metrics: LeaderMetrics,
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.is_leading = asyncio.Event()
        self.campaign = Campaign(stand, metrics, self._began, clock=clock, draw=draw)
        self.may_act = self.campaign.may_act
        self.trouble = self.campaign.trouble
        self.hold_back = self.campaign.hold_back
        self._session = session
        self._stand = stand

    def beat(self) -> None:
        """A sign of life of the loop that decides: here it is the one that renews."""

    def predecessor(self) -> LeaderDied | None:
        return self.campaign.predecessor()

    def qualify(self) -> None:
        """It knows the cluster and may lead."""
        self.campaign.qualify()

    async def run(self) -> None:
        """Campaign and lead; returns when leadership is lost."""
        try:
            await self.campaign.run(self._stand.client(self._session))
        finally:
            self.is_leading.clear()

    async def release(self) -> None:
        """Hand the lease on at an orderly end; `run` must not run any more."""
        await self.campaign.release(self._stand.client(self._session))

    async def hand_on(self, stop: asyncio.Event, *, is_settled: bool) -> None:
        """Give back what was or shall be lost, as soon as that can be done."""
        client = self._stand.client(self._session)
        giving = asyncio.ensure_future(self.campaign.hand_on(client, is_settled=is_settled))
        told = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((giving, told), return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving.cancel()
            told.cancel()
            await asyncio.gather(giving, told, return_exceptions=True)

    def _began(self) -> None:
        self.is_leading.set()


def _ask(client: LeaseClient, act: Act) -> Awaitable[dict[str, Any] | None]:
    match act:
        case CreateLease(record):
            return client.create(record.spec())
        case WriteLease(lease, record):
            return client.update(lease, record.spec())
    return client.get()
