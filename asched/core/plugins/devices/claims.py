"""The claims of a pod: found by name, and checked.

A claim is named by the pod, or created from a template; the pod's status then has its name. A pod
waits while one of its claims is missing, is being deleted or is owned by another object.

PostFilter deallocates claims, so that a pod may be placed elsewhere. Unreserve removes the
reservations of a pod that was not bound. Its claims stay allocated, so that the next attempt, or
another pod, may use the devices; a claim that was created for its extended resources is deleted.
What cannot be undone now is found again, and undone or used, by the next attempt.

Source   kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources (Unreserve)
"""

from contextlib import suppress
from typing import Any

from msgspec import structs

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Done, Refused, Unknown
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.effects import STRATEGIC_MERGE, Delete, Patch
from asched.core.framework.points import Late
from asched.core.framework.status import SUCCESS, failure
from asched.core.model.claim import FINALIZER, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.pod import Pod, PodResourceClaim


class ClaimError(Exception):
    """Why the pod's claims cannot be used; the message is upstream's."""


def claim_of(pod: Pod, reference: PodResourceClaim, cluster: Cluster) -> ResourceClaim | None:
    """One claim; None if none was generated for the reference, which is valid.

    Raises ClaimError.
    """
    must_own = reference.resource_claim_name is None
    name = reference.resource_claim_name if not must_own else _generated_name(pod, reference)
    if name is None:
        return None
    key = f"{pod.metadata.namespace}/{name}"
    claim = cluster.get(RESOURCE_CLAIM, key)
    if not isinstance(claim, ResourceClaim):
        raise ClaimError(f'could not find ResourceClaim "{key}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimError(f'resourceclaim "{name}" is being deleted')
    owner = claim.metadata.controller
    if must_own and (owner is None or owner.uid != pod.uid):
        raise ClaimError(
            f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
        )
    return claim


def claims_of(pod: Pod, cluster: Cluster) -> tuple[ResourceClaim, ...]:
    """All claims of a pod, in its order; a claim that it names twice counts once. Raises
    ClaimError.
    """
    if not pod.spec.resource_claims:
        return ()
    found = (claim_of(pod, r, cluster) for r in pod.spec.resource_claims)
    return tuple({claim.uid: claim for claim in found if claim is not None}.values())


def as_handed_on(pod: Pod, claim: ResourceClaim, ledger: DeviceLedger) -> ResourceClaim:
    """The claim with the allocation that another pod of the group reserved for it, if there
    is one.
    """
    if claim.status.allocation is not None:
        return claim
    allocation = ledger.handed_on(claim, pod)
    if allocation is None:
        return claim
    return structs.replace(claim, status=structs.replace(claim.status, allocation=allocation))


def _generated_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    if reference.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": '
            "none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses or ():
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


NOT_FOUND = 404


def deallocate(claim: ResourceClaim) -> Late:
    """Clear allocation and reservation, if the stored claim is still the version in the cache."""
    answer = yield patch(
        claim, {"allocation": None, "reservedFor": None, "devices": None}, subresource="status"
    )
    if isinstance(answer, Done):
        return SUCCESS
    return failure(_words(answer))


def cancel_reservation(claim: ResourceClaim, pod_uid: str) -> Patch:
    """Remove one pod from `reservedFor`, whatever else has changed in the claim meanwhile."""
    return Patch(
        kind=RESOURCE_CLAIM,
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        body={
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod_uid}]},
        },
        subresource="status",
        content_type=STRATEGIC_MERGE,
    )


def delete_extended(claim: ResourceClaim) -> Late:
    """Delete a claim made for extended resources, past the finalizer that protects it."""
    finalizers = claim.metadata.finalizers or ()
    if FINALIZER in finalizers:
        rest = [name for name in finalizers if name != FINALIZER]
        answer = yield patch(claim, {"finalizers": rest or None})
        if not isinstance(answer, Done) and not _is_gone(answer):
            return failure(f"update resourceclaim {claim.metadata.key}: {_words(answer)}")
    meta = claim.metadata
    answer = yield Delete(
        kind=RESOURCE_CLAIM, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
    if isinstance(answer, Done) or _is_gone(answer):
        return SUCCESS
    return failure(_words(answer))


def patch(claim: ResourceClaim, changes: dict[str, Any], subresource: str = "") -> Patch:
    """A patch of the metadata, or of the status, that fails if the claim has a newer version."""
    known = {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
    if subresource:
        body: dict[str, Any] = {"metadata": known, "status": changes}
    else:
        body = {"metadata": {**known, **changes}}
    return Patch(
        kind=RESOURCE_CLAIM,
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        body=body,
        subresource=subresource,
    )


def _is_gone(answer: object) -> bool:
    return isinstance(answer, Refused) and answer.code == NOT_FOUND


def _words(answer: object) -> str:
    return answer.message if isinstance(answer, (Refused, Unknown)) else type(answer).__name__


def unreserve(cluster: Cluster, ledger: DeviceLedger, pod: Pod) -> Late | None:
    """Effects that undo a pod's reservations in the API; None if the API has none.

    A pod that another scheduler has placed meanwhile keeps them.
    """
    seen = cluster.pods_seen.get(pod.key)
    if seen is not None and seen.uid == pod.uid and seen.spec.node_name:
        return None
    ledger.catch_up_with_claims()
    reserved = []
    for reference in pod.spec.resource_claims or ():
        with suppress(ClaimError):
            claim = claim_of(pod, reference, cluster)
            is_allocated = claim is not None and claim.status.allocation is not None
            if claim is not None and is_allocated and claim.is_reserved_for(pod.uid):
                reserved.append(claim)
    extended = ledger.extended_claim_of(pod.uid)
    if not reserved and extended is None:
        return None
    return _undo(cluster, pod, reserved, extended)


def _undo(
    cluster: Cluster, pod: Pod, reserved: list[ResourceClaim], extended: ResourceClaim | None
) -> Late:
    problems = []
    for claim in reserved:
        answer = yield cancel_reservation(claim, pod.uid)
        if isinstance(answer, Done) and answer.obj is not None:
            # Done before the watch event: the next attempt must not treat the claim as reserved.
            cluster.answered(RESOURCE_CLAIM, decode(ResourceClaim, answer.obj))
        elif isinstance(answer, Refused | Unknown):
            problems.append(f"unreserve claim {claim.metadata.key}: {answer.message}")
    if extended is not None:
        status = yield from delete_extended(extended)
        if status.is_success:
            cluster.restore_object(RESOURCE_CLAIM, extended.metadata.key)
        else:
            problems.append(status.message)
    return failure("; ".join(problems)) if problems else SUCCESS
