"""Devices that a pod needs on a node: for its unallocated claims, and for its extended resources.

The need for extended resources differs between nodes: where the node itself offers a resource,
devices do not serve it. Pods with equal signatures get equal answers on every node.
"""

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from asched.core.cluster.pods import PodInfo
from asched.core.dra.ledger import IMPLICIT_PREFIX, DeviceLedger
from asched.core.dra.plan import ClaimPlan, plan
from asched.core.model.claim import (
    ALLOCATION_RESULTS_MAX,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import whole
from asched.core.model.requests import is_extended

# Extended resources that device classes stand for: which class, and which devices a pod requests.
#
# A class names one with `spec.extendedResourceName`; besides, every class stands for
# `deviceclass.resource.kubernetes.io/<its name>`. A pod's containers are turned into requests of
# one claim; an init container that ends before others start uses their devices first.
#
# Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extended


class RequestMapping(NamedTuple):
    """The request of the claim that serves a container's resource."""

    container: str
    resource: str
    request: str


class ExtendedRequests(NamedTuple):
    """The requests of one claim for a pod's extended resources, by name."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[RequestMapping, ...]


def is_delegable(resource: str) -> bool:
    """Whether a device class may stand for a resource of this name."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended(resource)


class _ExtendedNeed:
    """One container's need of one resource: its request, unless earlier ones cover it."""

    def __init__(self, name: str, count: int, device_class: str) -> None:
        self.name = name
        self.count = count
        self.request = DeviceRequest(
            name=name,
            exactly=ExactDeviceRequest(
                device_class_name=device_class, allocation_mode=EXACT_COUNT, count=count
            ),
        )


def device_requests(pod: Pod, resources: Mapping[str, DeviceClass]) -> ExtendedRequests:
    """Requests and mappings for the pod's resources that devices serve."""
    inits = pod.spec.init_containers or ()
    containers = (*inits, *(pod.spec.containers or ()))
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        found = _for_resource(containers, len(inits), resource, resources[resource].metadata.name)
        requests += found.requests
        mappings += found.mappings
    return ExtendedRequests(tuple(sorted(requests, key=lambda r: r.name)), tuple(mappings))


def _for_resource(
    containers: tuple[Container, ...], init_count: int, resource: str, device_class: str
) -> ExtendedRequests:
    lasting: dict[int, _ExtendedNeed] = {}
    mappings: list[RequestMapping] = []
    passing: list[int] = []
    for index, container in enumerate(containers):
        if index < init_count and container.restart_policy != "Always":
            passing.append(index)
            continue
        asked = _need(index, container, resource, device_class, (), 0, mappings)
        if asked is not None:
            lasting[index] = asked
    largest: _ExtendedNeed | None = None
    replaced: set[str] = set()
    later: list[RequestMapping] = []
    ahead = deque(lasting)
    usable = deque(lasting.values())
    offered = sum(asked.count for asked in usable)
    for index in passing:
        while ahead and ahead[0] < index:
            ahead.popleft()
            offered -= usable.popleft().count
        asked = _need(index, containers[index], resource, device_class, usable, offered, later)
        if asked is not None:
            replaced.add(asked.name)
            if largest is None or largest.count < asked.count:
                largest = asked
    if largest is not None:
        # They run one after the other: the largest request serves all of them.
        later = [m._replace(request=largest.name) if m.request in replaced else m for m in later]
    chosen = ([largest] if largest is not None else []) + list(lasting.values())
    return ExtendedRequests(tuple(asked.request for asked in chosen), (*mappings, *later))


def _need(
    index: int,
    container: Container,
    resource: str,
    device_class: str,
    usable: Collection[_ExtendedNeed],
    offered: int,
    mappings: list[RequestMapping],
) -> _ExtendedNeed | None:
    """What a container needs beyond the `offered` devices of earlier containers; records what
    serves it.

    A claim of more than ALLOCATION_RESULTS_MAX requests is never allocated, so that the mappings
    beyond that number are not needed.
    """
    amounts = container.resources.requests or {}
    wanted = whole(amounts[resource]) if resource in amounts else 0
    if not wanted:
        return None
    covered = 0
    for other in islice(usable, ALLOCATION_RESULTS_MAX):
        covered += other.count
        mappings.append(RequestMapping(container.name, resource, other.name))
        if covered >= wanted:
            return None
    if offered >= wanted:
        return None
    name = f"container-{index}-request-{sorted(amounts).index(resource)}"
    mappings.append(RequestMapping(container.name, resource, name))
    return _ExtendedNeed(name, wanted - offered, device_class)


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
