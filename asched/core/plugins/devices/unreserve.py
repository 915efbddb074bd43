"""Unreserve of DynamicResources: remove the reservations of a pod that was not bound.

Its claims stay allocated, so that the next attempt, or another pod, may use the devices; a claim
that was created for its extended resources is deleted. What cannot be undone now is found again,
and undone or used, by the next attempt.

Source   kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources (Unreserve)
"""

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Done, Refused, Unknown
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.points import Late
from asched.core.framework.status import SUCCESS, failure
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.pod import Pod, PodResourceClaim
from asched.core.plugins.devices.claims import ClaimError, claim_of
from asched.core.plugins.devices.deallocation import cancel_reservation, delete_extended


def unreserve(cluster: Cluster, ledger: DeviceLedger, pod: Pod) -> Late | None:
    """Effects that undo a pod's reservations in the API; None if the API has none.

    A pod that another scheduler has placed meanwhile keeps them.
    """
    seen = cluster.pods_seen.get(pod.key)
    if seen is not None and seen.uid == pod.uid and seen.spec.node_name:
        return None
    ledger.catch_up_with_claims()
    found = (_known(cluster, pod, reference) for reference in pod.spec.resource_claims or ())
    reserved = [claim for claim in found if claim is not None and _is_held(claim, pod)]
    extended = ledger.extended_claim_of(pod.uid)
    if not reserved and extended is None:
        return None
    return _undo(cluster, pod, reserved, extended)


def _known(cluster: Cluster, pod: Pod, reference: PodResourceClaim) -> ResourceClaim | None:
    try:
        return claim_of(pod, reference, cluster)
    except ClaimError:
        return None


def _is_held(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.status.allocation is not None and claim.is_reserved_for(pod.uid)


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
