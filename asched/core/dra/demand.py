"""Devices that a pod needs on a node: for its unallocated claims, and for its extended resources.

The need for extended resources differs between nodes: where the node itself offers a resource,
devices do not serve it. Pods with equal signatures get equal answers on every node.
"""

from collections.abc import Hashable, Mapping
from typing import Final

import msgspec

from asched.core.cluster.pods import PodInfo
from asched.core.dra.extended import ExtendedRequests, device_requests, is_delegable
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.plan import ClaimPlan, plan
from asched.core.model.claim import DeviceClaim, DeviceClass, ResourceClaim, ResourceClaimSpec
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import whole

_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")

#: Name of the claim for extended resources before it is created: invalid on purpose.
IN_MEMORY: Final = "<extended-resources>"


class DeviceDemand:
    """`claims`: the claims to be allocated; `extended`: the claim for extended resources,
    if any.
    """

    def __init__(
        self,
        pod: PodInfo,
        claims: tuple[ResourceClaim, ...],
        extended: ResourceClaim | None,
        has_user_claims: bool,
        ledger: DeviceLedger,
    ) -> None:
        self.claims = claims
        self.extended = extended
        self.has_user_claims = has_user_claims
        self._pod = pod.pod
        self._ledger = ledger
        self._plans: tuple[ClaimPlan, ...] | None = None
        self._variants: dict[frozenset[str], tuple[ClaimPlan, ExtendedRequests]] = {}
        self._shapes: dict[frozenset[str], Hashable] = {}
        self._wanted: dict[str, int] = {}
        if extended is not None:
            self._wanted = {n: a for n, a in pod.cls.requests.items() if a and is_delegable(n)}
        self.signature: Hashable = (
            tuple(_encoder.encode(claim.spec) for claim in claims),
            has_user_claims,
            None if extended is None else (pod.cls.number, self.is_stale),
        )

    @property
    def is_stale(self) -> bool:
        """Whether the claim for extended resources is left from an earlier attempt."""
        return self.extended is not None and self.extended.spec.devices.requests is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to allocate on any node."""
        return not self.claims and self.extended is None

    def served(self, node: Node) -> frozenset[str] | None:
        """Extended resources that devices must serve on a node; None if one is not available at
        all.
        """
        offered = node.status.allocatable or {}
        needed = set()
        for name in self._wanted:
            if name in self._ledger.by_resource and not whole(offered.get(name, 0)):
                needed.add(name)
            elif name not in offered:
                return None
        return frozenset(needed)

    def plans(self, served: frozenset[str]) -> tuple[ClaimPlan, ...]:
        """Plans for a node on which devices serve these resources. Raises AllocationError."""
        if self._plans is None:
            self._plans = tuple(plan(claim, self._ledger.device_class) for claim in self.claims)
        if self.extended is None or not (served or self.has_user_claims):
            return self._plans
        return (*self._plans, self.variant(served)[0])

    def shape(self, served: frozenset[str]) -> Hashable:
        """What the search reads of these plans: demands whose classes have equal selectors get the
        same result on every node. Raises AllocationError.
        """
        found = self._shapes.get(served)
        if found is None:
            found = self._shapes[served] = tuple([plan.shape for plan in self.plans(served)])
        return found

    def variant(self, served: frozenset[str]) -> tuple[ClaimPlan, ExtendedRequests]:
        """The claim for extended resources for this set of them. Raises AllocationError."""
        found = self._variants.get(served)
        if found is None:
            classes: Mapping[str, DeviceClass] = self._ledger.by_resource
            requests = device_requests(self._pod, {n: classes[n] for n in served})
            claim = self._claim(requests)
            found = plan(claim, self._ledger.device_class), requests
            self._variants[served] = found
        return found

    def _claim(self, requests: ExtendedRequests) -> ResourceClaim:
        spec = ResourceClaimSpec(DeviceClaim(requests=requests.requests or None))
        own = self.extended or in_memory_claim(self._pod)
        return ResourceClaim(metadata=own.metadata, spec=spec)


def in_memory_claim(pod: Pod) -> ResourceClaim:
    """The claim for a pod's extended resources before any node is considered."""
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY, namespace=pod.metadata.namespace, uid=f"extended/{pod.uid}"
        )
    )
