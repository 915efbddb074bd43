"""PreBind of DynamicResources: allocations and reservations are written, then devices are awaited.

For each claim of the pod that is not reserved for it yet: the finalizer, then allocation and
reservation together. A claim for extended resources is created first, and recorded in the pod's
status. A write that meets a newer version of the claim is repeated with that version; so is a write
whose outcome is unknown, since the newer version shows whether it was carried out.

While it is unknown whether an allocation was written its devices are not free: such a binding does
not end before a newer version, or a second write, shows it, or LANDS_WITHIN_S after the last write
without an answer, if later ones are refused. A write is tied to the version it was made for, so
once there is a newer one it cannot be carried out any more.

Bounds   ATTEMPTS_MAX writes per step, REFRESH_S_MAX of waiting between two; while in doubt as many
         as it takes, because devices given back on a guess could be given out twice.
Source   kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources
"""

from collections.abc import Generator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done, Refused, TimedOut, Unknown
from asched.core.cluster.pools import Pools, deciding_profile
from asched.core.dra import plan
from asched.core.dra.extended_requests import ExtendedRequests
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.effects import LANDS_WITHIN_S, Create, Effect, EmitEvent, Patch, WaitFor
from asched.core.framework.meter import PluginReports
from asched.core.framework.points import Late
from asched.core.framework.status import SUCCESS, Status, failure
from asched.core.model.claim import (
    EXTENDED_RESOURCE_CLAIM,
    FINALIZER,
    AllocationResult,
    ResourceClaim,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, RESOURCE_CLAIM
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339
from asched.core.plugins.devices import claims
from asched.core.plugins.devices.conditions import (
    BindingFailed,
    is_ready,
    results_of,
    unmet_conditions,
)
from asched.core.plugins.devices.writers import Writers

#: Devices that are described.
DESCRIBED_MAX: Final = 5
#: Upstream retries a conflict as often (client-go's DefaultRetry).
ATTEMPTS_MAX: Final = 5
#: How long a newer version of a claim is awaited after a conflict. The watch delivers within
#: milliseconds; the rest allows for a busy API server (a guess).
REFRESH_S_MAX: Final = 5.0
CONFLICT: Final = 409
TIMED_OUT: Final = "device binding timeout: context deadline exceeded"


class Failed(NamedTuple):
    """Why a claim could not be written, and its last known version."""

    message: str
    claim: ResourceClaim


#: Sequential writes: yields effects, is sent their answers, returns the claim as stored or why
#: it could not be written.
Writing = Generator[Effect, Answer, ResourceClaim | Failed]


class Reserved(NamedTuple):
    """What Reserve left for PreBind to write: all claims of the pod, and the allocations in
    flight.
    """

    claims: tuple[ResourceClaim, ...]
    allocations: tuple[tuple[ResourceClaim, AllocationResult], ...]
    extended: ResourceClaim | None
    #: requests of the claim to be created for extended resources, if devices serve any
    requests: ExtendedRequests | None

    def allocation_of(self, claim: ResourceClaim) -> AllocationResult | None:
        return next((a for c, a in self.allocations if c.uid == claim.uid), None)


class WaitVerdict(NamedTuple):
    """How a wait for devices ended; `label` as `scheduler_dra_bindingconditions_*` has it."""

    label: str
    status: Status


BOUND: Final = WaitVerdict("success", SUCCESS)


class ClaimBinding:
    def __init__(self, cluster: Cluster, ledger: DeviceLedger, timeout_s: float) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._timeout_s = timeout_s
        self._writers = Writers(cluster)
        self._reports = cluster.singleton(PluginReports)

    def bind(self, pod: Pod, node: str, reserved: Reserved) -> Late:
        """Write everything and wait for the devices."""
        written: list[ResourceClaim] = []
        for claim in reserved.claims:
            if claim.is_reserved_for(pod.uid):
                written.append(claim)
            elif claim is reserved.extended:
                if reserved.requests is None:
                    continue  # the node offers the resources itself
                outcome = yield from self._bind_extended(pod, node, claim, reserved)
                if isinstance(outcome, Failed):
                    return failure(outcome.message)
                written.append(outcome)
            else:
                try:
                    yield from self._writers.begin(claim, pod)
                    outcome = yield from self._write(pod, claim, reserved.allocation_of(claim))
                finally:
                    self._writers.end(claim, pod)
                if isinstance(outcome, Failed):
                    return failure(outcome.message)
                written.append(outcome)
        return (yield from self._await_devices(pod, node, written))

    # --- one claim -------------------------------------------------------------------------------

    def _write(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> Writing:
        """Write finalizer, allocation and reservation, with retries where they can succeed."""
        key = claim.metadata.key
        claim = self._current(key, claim.uid) or claim
        attempts, problem = 0, ""
        doubt_s = 0.0  # how long a write without an answer may still be carried out
        while attempts < ATTEMPTS_MAX:
            attempts += 1
            if claim.metadata.deletion_timestamp is not None:
                return Failed(f"claim {key} got deleted in the meantime", claim)
            stored = claim.status.allocation
            if (
                allocation is not None
                and stored is not None
                and stored.devices != allocation.devices
            ):
                return Failed(f"claim {key} got allocated elsewhere in the meantime", claim)
            if allocation is None and stored is None:
                return Failed(f"claim {key} got deallocated elsewhere in the meantime", claim)
            if claim.is_reserved_for(pod.uid) and stored is not None:
                return self._settle(claim)
            wanted = allocation if stored is None else None
            step = "add finalizer"
            protected = yield from self._protect(claim, wanted)
            if isinstance(protected, ResourceClaim):
                claim = protected
                # A controller that deletes the claim must see the finalizer.
                self._cluster.assume_object(RESOURCE_CLAIM, claim)
                step = "add allocation and reservation" if allocation else "add reservation"
                status = self._status(pod, claim, wanted)
                outcome = _stored((yield claims.patch(claim, status, subresource="status")))
                if isinstance(outcome, ResourceClaim):
                    return self._settle(outcome)
                if wanted is not None and isinstance(outcome, Unknown):
                    doubt_s = LANDS_WITHIN_S
            else:
                outcome = protected
            problem = f"{step} to claim {key}: {outcome.message}"
            if _is_final(outcome, in_doubt=doubt_s > 0.0):
                break
            newer = yield from self._newer(claim)
            if newer is not None:
                claim, doubt_s = newer, 0.0
            elif doubt_s > 0.0 and self._current(key, claim.uid) is not None:
                attempts, doubt_s = 0, doubt_s - REFRESH_S_MAX
            else:
                problem = f"get updated claim {key} after conflict: {outcome.message}"
                break
        return Failed(problem, claim)

    def _protect(
        self, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> Generator[Effect, Answer, ResourceClaim | Refused | Unknown]:
        """Add the finalizer to a claim before it is allocated."""
        finalizers = claim.metadata.finalizers or ()
        if allocation is None or FINALIZER in finalizers:
            return claim
        return _stored((yield claims.patch(claim, {"finalizers": [*finalizers, FINALIZER]})))

    def _status(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> dict[str, Any]:
        consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.uid}
        status: dict[str, Any] = {
            "reservedFor": [*msgspec.to_builtins(claim.status.reserved_for or ()), consumer]
        }
        if allocation is not None:
            status["allocation"] = msgspec.to_builtins(allocation)
            if self._cluster.wall_clock_s:
                status["allocation"]["allocationTimestamp"] = rfc3339(self._cluster.wall_clock_s)
        return status

    def _newer(self, claim: ResourceClaim) -> Generator[Effect, Answer, ResourceClaim | None]:
        """Next version of a claim from the watch; None if none arrives in time, or if the claim is
        gone.
        """
        key, uid, version = claim.metadata.key, claim.uid, claim.metadata.resource_version

        def moved() -> bool:
            known = self._current(key, uid)
            return known is None or _is_newer(known.metadata.resource_version, version)

        if not moved():
            on = ((RESOURCE_CLAIM.resource, key),)
            answer = yield WaitFor(ready=moved, timeout_s=REFRESH_S_MAX, on=on, in_doubt=True)
            if isinstance(answer, TimedOut):
                return None
        return self._current(key, uid)

    def _current(self, key: str, uid: str) -> ResourceClaim | None:
        """Newest version of the claim with this uid, from the watch or from an answer."""
        known = self._cluster.get(RESOURCE_CLAIM, key)
        return known if isinstance(known, ResourceClaim) and known.uid == uid else None

    def _settle(self, claim: ResourceClaim) -> ResourceClaim:
        """Record that the API has the claim, and notify pods that share it and wait for that."""
        self._cluster.answered(RESOURCE_CLAIM, claim)
        self._ledger.catch_up_with_claims()
        self._ledger.release(claim.uid, claim.metadata.key)
        return claim

    # --- the claim for extended resources --------------------------------------------------------

    def _bind_extended(
        self, pod: Pod, node: str, claim: ResourceClaim, reserved: Reserved
    ) -> Writing:
        allocation = reserved.allocation_of(claim)
        requests = reserved.requests
        if allocation is None or requests is None or claim.metadata.name != plan.IN_MEMORY:
            return Failed(f"extended resource claim not found for node {node}", claim)
        answer = yield Create(
            kind=RESOURCE_CLAIM,
            namespace=pod.metadata.namespace,
            body=extended_claim_body(pod, requests),
        )
        if not isinstance(answer, Done) or answer.obj is None:
            text = f"create claim for extended resources {claim.metadata.key}"
            return Failed(f"{text}: {_no(answer).message}", claim)
        created = decode(ResourceClaim, answer.obj)
        self._ledger.reserve(created.uid, allocation)
        self._ledger.release(claim.uid)
        # Keeps the claim from counting as deleted until the watch has delivered it.
        self._cluster.assume_object(RESOURCE_CLAIM, created)
        outcome = yield from self._write(pod, created, allocation)
        if isinstance(outcome, ResourceClaim):
            problem = yield from self._tell_pod(pod, outcome, requests)
            if problem:
                outcome = Failed(problem, outcome)
        if isinstance(outcome, Failed):
            self._ledger.release(created.uid, created.metadata.key)
        return outcome

    def _tell_pod(
        self, pod: Pod, claim: ResourceClaim, requests: ExtendedRequests
    ) -> Generator[Effect, Answer, str]:
        """Write to the pod's status which claim and requests serve its containers; return the
        error.
        """
        mappings = [
            {"containerName": m.container, "resourceName": m.resource, "requestName": m.request}
            for m in requests.mappings
        ]
        claim_status = {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}
        answer = yield Patch(
            kind=POD,
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            body={
                "metadata": {"uid": pod.uid},
                "status": {"extendedResourceClaimStatus": claim_status},
            },
            subresource="status",
        )
        if isinstance(answer, Done):
            return ""
        return f"update pod {pod.key} ExtendedResourceClaimStatus: {_no(answer).message}"

    # --- waiting ---------------------------------------------------------------------------------

    def _await_devices(self, pod: Pod, node: str, claims: list[ResourceClaim]) -> Late:
        """Wait until every device that binds under conditions is bound."""
        waiting = [claim for claim in claims if _binds(claim)]
        if not waiting:
            return SUCCESS
        yield EmitEvent(
            regarding=POD.reference(pod.metadata),
            type="Normal",
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node}",
            reporting_controller=pod.spec.scheduler_name,
        )
        since_s = self._cluster.steady_s
        answer = yield WaitFor(
            ready=lambda: self._verdict(waiting) is not None,
            timeout_s=self._timeout_s,
            on=tuple((RESOURCE_CLAIM.resource, claim.metadata.key) for claim in waiting),
            why=lambda: self._describe(waiting),
        )
        verdict = self._verdict(waiting) or BOUND
        if isinstance(answer, TimedOut):
            verdict = WaitVerdict("timeout", failure(TIMED_OUT))
        self._report(pod, claims, verdict.label, self._cluster.steady_s - since_s)
        return verdict.status

    def _describe(self, claims: list[ResourceClaim]) -> str:
        """The devices that are awaited, and their missing conditions."""
        awaited = []
        for claim in claims:
            known = self._current(claim.metadata.key, claim.uid)
            for result, missing in islice(unmet_conditions(known), DESCRIBED_MAX) if known else ():
                device = f"device {result.device} of driver {result.driver}"
                awaited.append(
                    f"ResourceClaim {claim.metadata.key} waits for condition"
                    f"{'s' if len(missing) > 1 else ''} {', '.join(missing)} of {device}"
                )
        return "; ".join(awaited[:DESCRIBED_MAX])

    def _verdict(self, claims: list[ResourceClaim]) -> WaitVerdict | None:
        """BOUND once all devices are bound, a failure once a device cannot be bound, else None."""
        for claim in claims:
            known = self._current(claim.metadata.key, claim.uid)
            if known is None:
                lost = failure(f'could not find ResourceClaim "{claim.metadata.key}"')
                return WaitVerdict("error", lost)
            try:
                if not is_ready(known):
                    return None
            except BindingFailed as error:
                return WaitVerdict("failure", failure(str(error)))
        return BOUND

    def _report(self, pod: Pod, claims: list[ResourceClaim], label: str, waited_s: float) -> None:
        """Count all devices of the pod; upstream counts those without binding conditions, too."""
        observer = self._reports.observer
        profile = deciding_profile(pod, Pools.of_cluster(self._cluster))
        for result in (result for claim in claims for result in results_of(claim)):
            observer.device_awaited(profile, result.driver, label, waited_s)
            if result.binding_conditions:
                observer.device_bound(profile, result.driver, label)


def extended_claim_body(pod: Pod, requests: ExtendedRequests) -> dict[str, Any]:
    """Body of the claim that the scheduler creates for a pod's extended resources, owned by the
    pod.
    """
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.uid,
        "controller": True,
    }
    return {
        "apiVersion": RESOURCE_CLAIM.group_version,
        "kind": RESOURCE_CLAIM.name,
        "metadata": {
            "generateName": f"{pod.metadata.name}-extended-resources-",
            "namespace": pod.metadata.namespace,
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": msgspec.to_builtins(requests.requests)}},
    }


def _binds(claim: ResourceClaim) -> bool:
    return any(result.binding_conditions for result in results_of(claim))


def _is_newer(version: str, other: str) -> bool:
    """Whether a resource version is newer than another. Versions that are not numbers can only be
    compared for equality.
    """
    if version.isdecimal() and other.isdecimal():
        return int(version) > int(other)
    return version != other


def _is_final(outcome: Refused | Unknown, *, in_doubt: bool) -> bool:
    """Whether an answer ends the attempts to write. While an earlier write is in doubt, only an
    answer that settles that write does, too.
    """
    if not isinstance(outcome, Refused) or outcome.code == CONFLICT:
        return False
    return not in_doubt or outcome.code == claims.NOT_FOUND


def _stored(answer: Answer) -> ResourceClaim | Refused | Unknown:
    """The claim that a patch returned, or the answer as a refusal."""
    if isinstance(answer, Done) and answer.obj is not None:
        return decode(ResourceClaim, answer.obj)
    return _no(answer)


def _no(answer: Answer) -> Refused | Unknown:
    """The answer as a refusal."""
    if isinstance(answer, (Refused, Unknown)):
        return answer
    return Unknown(answer.effect_id, f"unexpected answer {type(answer).__name__}")
