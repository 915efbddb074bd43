"""A process's part in a simulated election: production's state machine, and requests that may fail.

`core/leader/election.py` decides. Requests about the lease travel, get lost and are refused as all
others are; one of the leader ends at its fence. A process that stands still looks at its lease
when it goes on, one that is cut off from the server reaches nothing.

Source  edge/host/election.py, which does the same with sockets
"""

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from asched.core.leader.election import (
    Act,
    CreateLease,
    Election,
    Lost,
    Read,
    Rules,
    Wait,
    WriteLease,
)
from asched.edge.client.writes import Request
from asched.lab.sim.faults import LostAnswers, Overload, SlowAnswers, Unreachable
from asched.lab.sim.wire import WAY_S_MAX, send

if TYPE_CHECKING:
    from asched.lab.sim.process import Process
    from asched.lab.sim.world import World

Json = dict[str, Any]

#: kube-scheduler's times (s), divided by three: more elections in a life.
LEASE_S: Final = 5.0
RENEW_S: Final = 10 / 3
RETRY_S: Final = 2 / 3
NAMESPACE: Final = "kube-system"
NAME: Final = "asched"
COLLECTION: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class Candidate:
    """It campaigns until it loses; then the world is told (`world.lost_lease`)."""

    def __init__(self, world: "World", process: "Process") -> None:
        self.is_over = False
        self._world = world
        self._process = process
        self._clock = world.clock
        self._rng = random.Random(world.troubles.rng.random())
        rules = Rules(process.name, LEASE_S, RENEW_S, RETRY_S)
        self.election = Election(rules, self._rng.random)
        self._clock.after(self._rng.uniform(0.0, 1.0), self._begin)

    def may_act(self) -> bool:
        """Whether we lead, and the lease cannot have run out."""
        is_leader = self.election.is_leader and not self.is_over
        return is_leader and self._clock.now_s() < self.election.fence_s

    # --- what the election asks for --------------------------------------------------------------

    def _begin(self) -> None:
        self._go_on(lambda: self.election.woke(self._clock.now_s()))

    def _go_on(self, step: Callable[[], Act]) -> None:
        def awake() -> None:
            if self.is_over:
                return
            was_leader = self.election.is_leader
            act = step()
            if self.election.is_leader and not was_leader:
                self._process.wake()
            self._perform(act)

        self._process.when_awake(awake)

    def _perform(self, act: Act) -> None:
        match act:
            case Lost():
                self._world.lost_lease(self._process)
            case Wait():
                self._clock.after(act.until_s - self._clock.now_s(), self._begin)
            case CreateLease():
                body = _body({"name": NAME, "namespace": NAMESPACE}, act.record.spec())
                self._ask(Request("POST", COLLECTION, body))
            case WriteLease():
                body = _body(act.lease["metadata"], act.record.spec())
                self._ask(Request("PUT", f"{COLLECTION}/{NAME}", body))
            case Read():
                self._ask(Request("GET", f"{COLLECTION}/{NAME}", None))

    def _ask(self, request: Request) -> None:
        """Send, and hear of it in time or not at all."""
        troubles, now_s = self._world.troubles, self._clock.now_s()
        limit_s = max(1.0, RENEW_S / 2)
        if self.election.is_leader:
            limit_s = min(limit_s, max(self.election.fence_s - now_s, 0.0))
        is_answered = False

        def hear(step: Callable[[], Act]) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self._go_on(step)

        def arrive() -> None:
            if troubles.strikes(Overload):
                self._clock.after(self._way_s(), lambda: hear(self._failed))
                return
            step = self._step_after(request)
            if not (troubles.strikes(LostAnswers) or self._process.wire.is_cut_off):
                self._clock.after(self._way_s(), lambda: hear(step))

        if not (troubles.strikes(Unreachable) or self._process.wire.is_cut_off):
            self._clock.after(self._way_s(), arrive)
        self._clock.after(limit_s, lambda: hear(self._failed))

    def _way_s(self) -> float:
        slow_s = self._world.troubles.seconds(SlowAnswers, "seconds_max")
        return self._rng.uniform(0.0, WAY_S_MAX) + slow_s / 2

    def _step_after(self, request: Request) -> Callable[[], Act]:
        """Have the server answer now; the election hears of it later."""
        reply = send(self._world.server.ctx, request)
        lease = orjson.loads(reply.body) if reply.status < 300 else None
        election = self.election
        if request.method == "GET" and (lease is not None or reply.status == 404):
            return lambda: election.found(lease, self._clock.now_s())
        if lease is not None:
            return lambda: election.written(lease, self._clock.now_s())
        return self._failed

    def _failed(self) -> Act:
        return self.election.failed(self._clock.now_s())


def _body(metadata: Mapping[str, Any], spec: Json) -> bytes:
    lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    return orjson.dumps({**lease, "metadata": dict(metadata), "spec": spec})
