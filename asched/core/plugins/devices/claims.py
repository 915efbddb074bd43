"""The claims of a pod: found by name, and checked.

A claim is named by the pod, or created from a template; the pod's status then has its name. A pod
waits while one of its claims is missing, is being deleted or is owned by another object.
"""

from msgspec import structs

from asched.core.cluster.cluster import Cluster
from asched.core.dra.ledger import DeviceLedger
from asched.core.model.claim import ResourceClaim
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
