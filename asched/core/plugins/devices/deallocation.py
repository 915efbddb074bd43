"""Deallocation, so that a pod may be placed elsewhere: what PostFilter and Unreserve ask of the
API.
"""

from typing import Any

from asched.core.cluster.facts import Done, Refused, Unknown
from asched.core.framework.effects import STRATEGIC_MERGE, Delete, Patch
from asched.core.framework.points import Late
from asched.core.framework.status import SUCCESS, failure
from asched.core.model.claim import FINALIZER, ResourceClaim
from asched.core.model.kinds import RESOURCE_CLAIM

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
