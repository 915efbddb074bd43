"""What a pod needs: plans of its claims, and the demand on a node.

A plan is a claim prepared for the search: requests with their classes resolved and their selectors
merged. It depends only on the claim's spec and on classes, so that pods whose claims come from one
template can share it. The need for extended resources differs between nodes: where the node itself
offers a resource, devices do not serve it. Pods with equal signatures get equal answers on every
node.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

import msgspec

from asched.core.cluster.pods import PodInfo
from asched.core.dra.cel.values import CelError, CelSyntaxError
from asched.core.dra.devices import ReadyDevice
from asched.core.dra.extended_requests import ExtendedRequests, device_requests, is_delegable
from asched.core.dra.ledger import DeviceLedger
from asched.core.model.claim import (
    ALL,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import Quantity, whole
from asched.core.model.taint import tolerated

#: Of kube-scheduler since 1.37.
KEY_ADVICE: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)

ClassLookup = Callable[[str], DeviceClass | None]


class AllocationError(Exception):
    """An error in a claim or a class: no node can satisfy it, the attempt ends. `cost`: of the
    selectors that were evaluated until then.
    """

    def __init__(self, message: str, cost: int = 0) -> None:
        super().__init__(message)
        self.cost = cost


class DevicePredicate(NamedTuple):
    """One expression, and its location for messages."""

    owner: str  # "class c" or "claim ns/c"
    position: int
    expression: str


class PlannedRequest(msgspec.Struct, frozen=True, eq=False):
    """A single request: a request of the claim, or one of its alternatives (`parent` is then the
    name of the request).
    """

    name: str
    parent: str
    device_class: DeviceClass
    takes_all: bool
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity] | None
    selectors: tuple[DevicePredicate, ...]

    @property
    def full_name(self) -> str:
        """The name in allocation results: `request` or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def shape(self) -> Hashable:
        """See `ClaimPlan`; includes the name, to which constraints refer."""
        expressions = tuple([selector.expression for selector in self.selectors])
        capacity = tuple(sorted(self.capacity.items())) if self.capacity else None
        shape = (self.name, self.parent, self.takes_all, self.count, self.admin)
        return (*shape, self.tolerations, capacity, expressions)

    def selects(self, device: ReadyDevice, *, is_named: bool = False) -> tuple[bool, int]:
        """(whether the selectors of class and request match, their CEL cost). Raises
        AllocationError; `is_named`: a runtime error names the device, and what to do about a key
        that is missing.
        """
        cost = 0
        for selector in self.selectors:
            answer, spent = device.ask(selector.expression)
            cost += spent
            if isinstance(answer, CelError):
                is_runtime = not isinstance(answer, CelSyntaxError)
                stage = "runtime" if is_runtime else "compile"
                where, advice = "", ""
                if is_named and is_runtime:
                    where = f" on device {device.id.text}"
                    advice = KEY_ADVICE if "no such key:" in str(answer) else ""
                raise AllocationError(
                    f"{selector.owner}: selector #{selector.position}{where}:"
                    f" CEL {stage} error: {answer}{advice}",
                    cost,
                )
            if not answer:
                return False, cost
        return True, cost

    def tolerates(self, device: ReadyDevice) -> bool:
        """Whether every taint with an effect on allocation is tolerated."""
        return all(
            tolerated(taint, self.tolerations)
            for taint in device.record.taints or ()
            if taint.is_hard
        )


class ClaimPlan(NamedTuple):
    """`requests[r]` are the alternatives of request r."""

    claim: ResourceClaim
    requests: tuple[tuple[PlannedRequest, ...], ...]

    @property
    def shape(self) -> Hashable:
        """Everything that the search reads, except texts of errors: names of classes and claims are
        not part of it.
        """
        shapes = tuple([tuple([request.shape for request in some]) for some in self.requests])
        return shapes, self.claim.spec.devices.constraints


def plan(claim: ResourceClaim, class_of: ClassLookup) -> ClaimPlan:
    """Resolve classes and check the requests. Raises AllocationError."""
    key, requests = claim.metadata.key, claim.spec.devices.requests or ()
    return ClaimPlan(claim, tuple(_alternatives(key, request, class_of) for request in requests))


def _alternatives(
    claim: str, request: DeviceRequest, class_of: ClassLookup
) -> tuple[PlannedRequest, ...]:
    if request.first_available:
        return tuple(
            _request(claim, sub.name, request.name, sub, class_of)
            for sub in request.first_available
        )
    if request.exactly is None:
        raise AllocationError(
            f"claim {claim}, request {request.name}: missing device class name "
            "(unsupported request type?)"
        )
    return (_request(claim, request.name, "", request.exactly, class_of),)


def _request(
    claim: str,
    name: str,
    parent: str,
    request: ExactDeviceRequest | DeviceSubRequest,
    class_of: ClassLookup,
) -> PlannedRequest:
    where = f"claim {claim}, request {name}"
    for index, selector in enumerate(request.selectors or ()):
        if selector.cel is None:
            raise AllocationError(
                f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
    if not request.device_class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = class_of(request.device_class_name)
    if device_class is None:
        raise AllocationError(
            f"{where}: could not retrieve device class {request.device_class_name}: "
            f'deviceclass.resource.k8s.io "{request.device_class_name}" not found'
        )
    if request.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{where}: unsupported count mode {request.allocation_mode}")
    return PlannedRequest(
        name,
        parent,
        device_class,
        takes_all=request.allocation_mode == ALL,
        count=request.count,
        admin=isinstance(request, ExactDeviceRequest) and bool(request.admin_access),
        tolerations=request.tolerations or (),
        capacity=request.capacity.requests if request.capacity is not None else None,
        selectors=(
            *_selectors(f"class {device_class.metadata.name}", device_class.spec.selectors),
            *_selectors(f"claim {claim}", request.selectors),
        ),
    )


def _selectors(
    owner: str, selectors: tuple[DeviceSelector, ...] | None
) -> tuple[DevicePredicate, ...]:
    return tuple(
        DevicePredicate(owner, index, selector.cel.expression)
        for index, selector in enumerate(selectors or ())
        if selector.cel is not None
    )


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
        plans = self._variants.get(served)
        if plans is None:
            classes: Mapping[str, DeviceClass] = self._ledger.by_resource
            requests = device_requests(self._pod, {n: classes[n] for n in served})
            spec = ResourceClaimSpec(DeviceClaim(requests=requests.requests or None))
            own = self.extended or in_memory_claim(self._pod)
            claim = ResourceClaim(metadata=own.metadata, spec=spec)
            plans = plan(claim, self._ledger.device_class), requests
            self._variants[served] = plans
        return plans


def in_memory_claim(pod: Pod) -> ResourceClaim:
    """The claim for a pod's extended resources before any node is considered."""
    namespace, uid = pod.metadata.namespace, f"extended/{pod.uid}"
    return ResourceClaim(metadata=ObjectMeta(name=IN_MEMORY, namespace=namespace, uid=uid))
