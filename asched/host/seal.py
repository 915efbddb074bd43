"""The seal: before a new leader decides, late bindings of the one before it are made impossible.

    leading ──> catch up ──> touch every pod that a late binding could reach ──> catch up ──> decide

A leader that was killed or cut off may have bindings under way: in a proxy, in the API server, in
etcd. One that arrives after its successor has filled the node would overcommit it, and no time-out
excludes that. But every binding carries the resourceVersion of its pod, and the API server refuses
it (409) once the pod has another version. So the successor changes a condition of every pod that
such a binding could reach: a pod without a node, with a name of the predecessor's schedulers, that
is neither gated nor terminating. The condition's message is a new one each time, since a patch that
changes nothing would not change the version. A binding that arrived before its pod was touched is
seen, since the streams catch up with the last touch before the first decision.

A pod that has changed since the seal began needs no touch. So the lease says from when on a leader
seals, and no longer says so before its first decision: if it ends before that, its successor
continues, and touches only what has not changed since. Leaders that live for less than their seal
takes do not begin anew each time.

A late allocation of a ResourceClaim could give a device away twice in the same way, since nothing
is written to the device. So where there are devices, an annotation of every claim without an
allocation is changed, too.

A leader that handed the lease on, with all its writes answered, needs no seal; its successor only
catches up with them. One that ends before its own seal is complete cannot hand on: its successor
seals both. Without an election nothing says how the last process ended, so its pods are always
sealed. A predecessor that has not said on the lease that its bindings carry versions
(kube-scheduler on the same lease, or an older release) cannot be sealed: this process waits until
none of its requests can be carried out.

With a Lease for each pool the same is done for each pool that is taken, and for what a binding of
its last holder could reach (`host/pools.py`).

What else a predecessor may have sent, and why it needs no seal when it arrives late:

    PersistentVolume, PersistentVolumeClaim, a claim with an allocation: the patch carries the
        object's resourceVersion, and is refused once the successor has written the object, without
        which it gives the volume or the devices to no other pod
    annotations of nodes and pods by plugins for devices: the node's carry its resourceVersion, the
        pod's are written before a binding, which is refused
    eviction of a victim: its uid is a precondition; the pod was chosen when the eviction was right,
        and its room is not given to others twice: the successor sees the pod until it is gone
    conditions, nominations, events: texts; the next attempt, within five minutes, writes them again
    ProvisioningRequests, PodTemplates, statuses of groups and quotas: named by owner and content,
        or written with a resourceVersion, and reconciled by the successor

Bounds  TOUCHES_MAX requests at a time; one that fails is repeated after PAUSE_S, doubling to
        PAUSE_S_MAX, and one that is answered with an error for `effects.LANDS_WITHIN_S` in all; the
        same time for a predecessor that cannot be sealed.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, Protocol

from asched import names
from asched.core.cluster.pool_tenure import number_of
from asched.core.cycle.orders import LeadersEnded
from asched.core.framework.effects import LANDS_WITHIN_S, Effect, Patch, PatchPodStatus, ref_of
from asched.core.leader.election import OpenSeal, Predecessor
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import POD, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from asched.core.model.meta import runs_backwards
from asched.core.model.pod import Pod
from asched.kube.errors import TooManyRequests, TransportError, api_error
from asched.kube.retries import overload_wait_s
from asched.kube.running import Running
from asched.kube.transport import Transport
from asched.kube.writes import request_for, version_of

log = logging.getLogger("asched.leader")

#: As many as bindings: where a real server's writes per second stop growing.
TOUCHES_MAX: Final = 64
#: Timeout of one request, and the pause after a failed one.
REQUEST_S: Final = 10.0
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 1.0
GONE: Final = 404
#: The server gave up on a pod that changes all the time.
CONFLICT: Final = 409
#: In the answer (422) that the pod of this name is another one. A policy refuses with 422, too.
OTHER_UID: Final = b"metadata.uid: "
SERVER_ERROR: Final = 500


class SealError(Exception):
    """The server does not let a pod be touched."""


class Reach(Protocol):
    """What late writes of a predecessor could reach."""

    def pod(self, pod: Pod) -> bool:
        """Whether a binding could."""

    def claim(self, claim: ResourceClaim) -> bool:
        """Whether an allocation could."""


class AllThatIsOpen(Reach):
    """All pods and claims of the predecessor's schedulers, but for what is sealed already."""

    def __init__(self, predecessor: Predecessor) -> None:
        self._predecessor = predecessor

    def pod(self, pod: Pod) -> bool:
        return self._predecessor.may_reach(POD, pod.metadata.resource_version)

    def claim(self, claim: ResourceClaim) -> bool:
        return self._predecessor.may_reach(RESOURCE_CLAIM, claim.metadata.resource_version)


class Seal:
    """Makes sure that nothing of the predecessor can surprise this leader. `kinds` are caught up
    with beside pods and claims; `begins` is called when the first object is about to be touched.
    """

    def __init__(
        self,
        scheduler: Running,
        predecessor: Predecessor | None,
        begins: Callable[[OpenSeal], None] = lambda _: None,
        reach: Reach | None = None,
        kinds: Iterable[Kind] = (),
    ) -> None:
        self._scheduler = scheduler
        self._predecessor = predecessor
        self._begins = begins
        self._reach = reach or AllThatIsOpen(predecessor or Predecessor())
        self._kinds = tuple(kinds)
        self._context = scheduler.machine.context
        #: What was caught up with at first.
        self._read: tuple[Kind, ...] = ()
        #: The versions of the last pod and the last claim that were touched.
        self._touched: dict[Kind, str] = {}
        self._caught_up_s = 0.0

    async def run(self) -> None:
        """Return when this leader may decide."""
        scheduler, predecessor = self._scheduler, self._predecessor
        await self._catch_up()
        if predecessor is None:
            return
        self._caught_up_s = scheduler.clock.now_s()
        if predecessor.sealable is None:
            await self._wait("the last holder of the lease did not say that it can be sealed")
        else:
            history = scheduler.history
            pods, claims = (
                history.received_version(kind) if kind in self._read else ""
                for kind in (POD, RESOURCE_CLAIM)
            )
            self._begins(OpenSeal(number_of(pods), number_of(claims)))
            # The lease's transitions begin anew when it is deleted.
            run = f"{predecessor.transitions}, {uuid.UUID(int=scheduler.rng.getrandbits(128))}"
            owned = {*predecessor.sealable, *self._context.runners}
            await self._touch_all(owned, f"a new scheduler decides about this pod: {run}")
        scheduler.inbox.put(LeadersEnded(predecessor.unclean_ends))

    async def _catch_up(self) -> None:
        """Receive everything that has happened to pods and claims by now, or to the last touch."""
        scheduler = self._scheduler
        if not self._touched:
            has_devices = self._context.cluster.all(RESOURCE_SLICE)
            self._read = POD, *((RESOURCE_CLAIM,) if has_devices else ()), *self._kinds
        kinds = self._touched or dict.fromkeys(self._read, "")
        async with asyncio.TaskGroup() as group:
            for kind, newest in kinds.items():
                again = partial(scheduler.list_again, (kind,))
                group.create_task(scheduler.history.catch_up(kind, again, newest))
        await scheduler.taken_in()

    @property
    def _wait_s(self) -> float:
        """Until no request of the predecessor can be carried out any more, sealed or not."""
        return max(self._caught_up_s + LANDS_WITHIN_S - self._scheduler.clock.now_s(), 0.0)

    async def _wait(self, why: str) -> None:
        wait_s = self._wait_s
        log.warning("Bindings begin after a pause: %s", why, extra={"seconds": round(wait_s, 1)})
        await asyncio.sleep(wait_s)
        self._touched.clear()
        await self._catch_up()

    async def _touch_all(self, owned: Collection[str], message: str) -> None:
        scheduler, cluster = self._scheduler, self._context.cluster
        claims = cluster.all(RESOURCE_CLAIM).values()
        open_ones: list[tuple[Kind, Pod | ResourceClaim]] = [
            *(
                (POD, pod)
                for pod in cluster.pods_seen.values()
                if _is_open(pod, owned) and self._reach.pod(pod)
            ),
            *(
                (RESOURCE_CLAIM, claim)
                for claim in claims
                if claim.status.allocation is None and self._reach.claim(claim)
            ),
        ]
        if not open_ones:
            return
        started_s = scheduler.clock.now_s()
        pool = scheduler.session.pool(TOUCHES_MAX, may_send=scheduler.may_act)
        waiting = iter(open_ones)

        async def touch_some() -> None:
            for kind, obj in waiting:
                await self._touch(pool, kind, obj, message)

        why = ""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(TOUCHES_MAX, len(open_ones))):
                    group.create_task(touch_some())
        except* SealError as refused:
            why = str(refused.exceptions[0])
        if not why:
            await self._catch_up()
        else:
            await self._wait(why)
            return
        took_s = round(scheduler.clock.now_s() - started_s, 3)
        extra = {"objects": len(open_ones), "s": took_s}
        log.info("The pods of the last leader are sealed", extra=extra)

    async def _touch(
        self, pool: Transport, kind: Kind, obj: Pod | ResourceClaim, message: str
    ) -> None:
        """Give the object another version. Raises SealError if that is not possible."""
        request, what = request_for(_touch_of(obj, message)), f"{kind.name} {obj.metadata.key}"
        pause_s = PAUSE_S
        while True:
            wait_s = pause_s = min(2 * pause_s, PAUSE_S_MAX)
            try:
                reply = await pool.request(
                    request.method,
                    request.path,
                    request.body,
                    content_type=request.content_type,
                    timeout_s=REQUEST_S,
                )
            except TransportError as lost:
                why = str(lost)
            else:
                if reply.status < 300:
                    version = version_of(reply)
                    if version == obj.metadata.resource_version:
                        raise SealError(f"a patch of {what} has no effect")
                    if version and not runs_backwards(self._touched.get(kind, ""), version):
                        self._touched[kind] = version
                    return
                if reply.status == GONE or OTHER_UID in reply.body:
                    return
                error = api_error(reply.status, reply.body)
                why, wait_s = error.message, overload_wait_s(reply) or pause_s
                may_pass = reply.status >= SERVER_ERROR or reply.status == CONFLICT
                is_final = not may_pass and not isinstance(error, TooManyRequests)
                if is_final or not self._wait_s:
                    raise SealError(f"{what} cannot be patched: {why}")
            log.info("An object could not be touched yet", extra={"object": what, "err": why})
            await asyncio.sleep(wait_s)


def _touch_of(obj: Pod | ResourceClaim, message: str) -> Effect:
    if isinstance(obj, Pod):
        condition = {
            "type": names.TAKEN_OVER,
            "status": "True",
            "reason": names.REASON_LEADER_CHANGED,
            "message": message,
        }
        return PatchPodStatus(pod=ref_of(obj), condition=condition)
    known = obj.metadata
    metadata = {"uid": known.uid, "annotations": {names.TAKEN_OVER: message}}
    body = {"metadata": metadata}
    return Patch(kind=RESOURCE_CLAIM, namespace=known.namespace, name=known.name, body=body)


def _is_open(pod: Pod, owned: Collection[str]) -> bool:
    """Whether a binding of a scheduler with one of these names could still reach the pod."""
    spec = pod.spec
    is_bindable = not (spec.node_name or spec.scheduling_gates or pod.is_terminating)
    return is_bindable and spec.scheduler_name in owned
