"""The election's hands: requests about the lease, pauses, and the news of who leads.

`core/leader/election.py` decides; this file performs. A request of the leader ends at the fence at
the latest, so that a frozen API server is not believed in; the fence itself is also looked at by
the serial loop before each turn (`may_act`), so that a process which was stopped and continued does
not act on a lease that ran out meanwhile.

Bounds  one request at a time; EVENT_S for the event that tells of a new leader.
"""

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson

from asched.core.leader.election import Act, Create, Election, Lost, Read, Rules, Wait, Write
from asched.core.model.timestamp import rfc3339
from asched.edge.client.errors import ApiError, ClientError, TransportError
from asched.edge.client.leases import LeaseClient
from asched.edge.client.session import Session
from asched.edge.host.clock import Clock
from asched.edge.telemetry.component_metrics import LeaderMetrics

log = logging.getLogger("asched.leader")

EVENT_S: Final = 1.0
#: The lock's client gives up after half the renew deadline, but not before this.
REQUEST_S_MIN: Final = 1.0
#: As long past the lease's end the health check still believes in a leader.
HEALTH_GRACE_S: Final = 20.0


def identity() -> str:
    """`<hostname>_<uuid>`, new at each start."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Campaign:
    """One process's part in the election of one lease. `component` is named in events."""

    def __init__(
        self,
        session: Session,
        rules: Rules,
        *,
        namespace: str,
        name: str,
        component: str,
        metrics: LeaderMetrics,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.election = Election(rules, draw)
        self.is_leading = asyncio.Event()
        self._session = session
        self._client = LeaseClient(
            session, namespace, name, timeout_s=max(REQUEST_S_MIN, rules.renew_s / 2)
        )
        self._component = component
        self._metrics = metrics
        self._clock = clock or Clock()
        self._label = f"{namespace}/{name}"
        self._leader_told = ""
        metrics.leads(name, is_leader=False)

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

    async def run(self) -> None:
        """Campaign and lead; returns when leadership is lost."""
        log.info("Attempting to acquire leader lease...", extra={"lock": self._label})
        act: Act = self.election.woke(self._clock.now_s())
        async with asyncio.TaskGroup() as group:
            while not isinstance(act, Lost):
                was_leader = self.election.is_leader
                act = await self._perform(act)
                if self.election.is_leader and not was_leader:
                    group.create_task(self._emit("became leader"))
                self._tell()
        self.is_leading.clear()
        self._metrics.leads(self._client.name, is_leader=False)
        log.error("Leaderelection lost", extra={"lock": self._label})
        await self._emit("stopped leading")

    async def release(self) -> None:
        """Hand the lease on at an orderly end; `run` must not run any more."""
        if not self.election.is_leader:
            return
        try:
            lease = await self._client.get()
            write = None if lease is None else self.election.release(lease, self._clock.now_s())
            if write is not None:
                await self._client.update(write.lease, write.record.spec())
        except ClientError as error:
            log.warning("Failed to release lock", extra={"lock": self._label, "err": str(error)})
        self._metrics.leads(self._client.name, is_leader=False)

    # --- inside ----------------------------------------------------------------------------------

    async def _perform(self, act: Act) -> Act:
        clock, election = self._clock, self.election
        if isinstance(act, Wait):
            await asyncio.sleep(max(act.until_s - clock.now_s(), 0.0))
            return election.woke(clock.now_s())
        is_renewal = election.is_leader
        left_s = max(election.fence_s - clock.now_s(), 0.0) if is_renewal else None
        slow = election.slow_renewals
        try:
            async with asyncio.timeout(left_s):
                answer = await self._ask(act)
        except (ApiError, TransportError, TimeoutError) as error:
            log.info(
                "Failed to reach the lease",
                extra={"lock": self._label, "err": str(error) or "no answer in time"},
            )
            return election.failed(clock.now_s())
        if isinstance(act, Read):
            following = election.found(answer, clock.now_s())
            if is_renewal and election.slow_renewals > slow:
                self._metrics.took_slow_path(self._client.name)
            return following
        assert answer is not None
        following = election.written(answer, clock.now_s())
        if not is_renewal:
            self._began_to_lead()
        return following

    def _ask(self, act: Act) -> Awaitable[dict[str, Any] | None]:
        client = self._client
        match act:
            case Create(record):
                return client.create(record.spec())
            case Write(lease, record):
                return client.update(lease, record.spec())
        return client.get()

    def _began_to_lead(self) -> None:
        log.info("Successfully acquired lease", extra={"lock": self._label})
        self._metrics.leads(self._client.name, is_leader=True)
        self.is_leading.set()

    def _tell(self) -> None:
        holder = self.election.holder
        if holder and holder != self._leader_told:
            self._leader_told = holder
            log.info("new leader elected", extra={"v": 1, "identity": holder})

    async def _emit(self, what: str) -> None:
        """A core/v1 event about the lease. A failure is logged, no more."""
        lease = self.election.lease
        if lease is None:
            return
        path = f"/api/v1/namespaces/{self._client.namespace}/events"
        body = orjson.dumps(self._event(lease["metadata"], what))
        try:
            async with asyncio.timeout(EVENT_S):
                reply = await self._session.general.request("POST", path, body)
            if reply.status >= 300:
                log.info("The event was refused", extra={"v": 2, "code": reply.status})
        except (TransportError, TimeoutError) as error:
            log.info("The event was not sent", extra={"v": 2, "err": str(error)})

    def _event(self, metadata: Mapping[str, Any], what: str) -> dict[str, Any]:
        now_s = self._clock.now_s()
        stamp = rfc3339(now_s)
        name, namespace = self._client.name, self._client.namespace
        return {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{name}.{int(now_s * 1e9):016x}", "namespace": namespace},
            "involvedObject": {
                "kind": "Lease",
                "namespace": namespace,
                "name": name,
                "uid": metadata.get("uid", ""),
                "apiVersion": "coordination.k8s.io/v1",
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "reason": "LeaderElection",
            "message": f"{self.election.rules.identity} {what}",
            "source": {"component": self._component},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
