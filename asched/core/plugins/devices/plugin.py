"""DynamicResources: a pod goes where devices can be allocated for its resource claims.

Waits     while a claim is missing, being deleted, in use by too many or in flight for another pod.
Rejects   nodes on which the unallocated claims cannot all be allocated, and nodes outside the place
          of an allocated one; evicting pods cannot help, deallocating an unused claim can.
Prefers   nodes on which earlier alternatives of a request are available.
Retry     a claim loses its allocation; the pod's own claims change; nodes, slices, classes appear.
Cost      one search per distinct view of the pools; after an allocation only the nodes concerned.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import DynamicResourcesArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra import allocator, answers, plan, result
from asched.core.dra.devices import ReadyDevice
from asched.core.dra.extended_requests import is_delegable
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.normalization import ScaledByLargest
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    FilterPlugin,
    Late,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Scope,
)
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.rejection import Rejection
from asched.core.framework.status import SKIP, SUCCESS, Status, failure, unresolvable, unschedulable
from asched.core.model.claim import PARAMETER_LEVELS_MAX, ResourceClaim
from asched.core.model.kinds import DEVICE_TAINT_RULE
from asched.core.model.lru import Lru
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.devices import claims
from asched.core.plugins.devices.binding import ClaimBinding, Reserved
from asched.core.plugins.devices.claims import ClaimError, as_handed_on, claims_of
from asched.core.plugins.devices.hints import ClaimHints
from asched.core.plugins.devices.places import DevicePlaces


class ClaimDemand(NamedTuple):
    """Result of PreFilter: all claims of the pod, the one for extended resources last."""

    claims: tuple[ResourceClaim, ...]
    demand: plan.DeviceDemand


def allocated(
    ledger: DeviceLedger, book: "answers.AnswerBook", prepared: ClaimDemand, node: Node
) -> Reserved | Status:
    """Devices for the claims, or why there are none."""
    wanted = prepared.demand
    try:
        plans, solution = book.solve(wanted, node)
    except (plan.AllocationError, allocator.NodeRejected) as error:
        return failure(str(error))
    except allocator.OutOfSteps:
        return failure(f"node {node.name}: {allocator.TIMED_OUT_TEXT}")
    if solution is None:
        return failure("claim allocation not found for node")
    results = result.allocation_results(plans, solution, node.name, ledger.rules)
    served = wanted.served(node) or frozenset()
    requests = wanted.variant(served)[1] if wanted.extended is not None and served else None
    allocations = tuple((p.claim, r) for p, r in zip(plans, results, strict=True))
    allocations += tuple(
        (claim, claim.status.allocation)
        for claim in prepared.claims
        if claim.status.allocation is not None and claim.uid in ledger.in_flight
    )
    return Reserved(prepared.claims, allocations, wanted.extended, requests)


#: Devices a search may visit, for each second of `filterTimeout`: the core reads no clock. A
#: device takes about 2 us; this stays well below the configured time. A timeout of zero is none.
STEPS_PER_SECOND: Final = 100_000
#: Pods whose PreFilter result is kept for Reserve, in case the same attempt is repeated. A
#: guess: rarely more pods with claims wait for the same change.
PREPARED_MAX: Final = 1024
#: Where no timeout is configured because its gates are off: devices that bind under conditions are
#: waited for all the same (docs/parity.md).
BINDING_TIMEOUT_S: Final = 600.0
#: Upstream's message where PreFilter left nothing for the points that follow.
NOT_FOUND: Final = "not found"
NO_CLAIMS: Final = "no new claims to deallocate"
UNWRITABLE: Final = (
    f"opaque parameters of more than {PARAMETER_LEVELS_MAX} levels, or with a number beyond 64"
    " bits, are not copied into an allocation"
)


class DynamicResources(
    ClaimHints,
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScaledByLargest,
    ReservePlugin,
    PreBindPlugin,
):
    """Under DRAPrioritizedList, requests may have alternatives."""

    name = names.DYNAMIC_RESOURCES
    scope = Scope.CLUSTER
    evicts_only_lower = True
    without_pre_filter = NOT_FOUND
    depends_on = allocator.NODE_ASPECTS
    errors_from = allocator.TIMED_OUT

    def __init__(
        self,
        args: DynamicResourcesArgs | None,
        cluster: Cluster,
        gates: Mapping[str, bool] = DEFAULT_GATES,
    ) -> None:
        args = args or DynamicResourcesArgs()
        self._knows_alternatives = gates["DRAPrioritizedList"]
        self._ledger = cluster.singleton(DeviceLedger)
        self._ledger.follow(gates)
        self._steps_max = -(-(args.filter_timeout_ns or 0) * STEPS_PER_SECOND // 10**9)
        binding_ns = args.binding_timeout_ns
        binding_s = BINDING_TIMEOUT_S if binding_ns is None else binding_ns / 1e9
        self._places = DevicePlaces(cluster, binding_s)
        self._binding = ClaimBinding(cluster, self._ledger, binding_s)
        uses_taint_rules = gates["DRADeviceTaintRules"]
        super().__init__(cluster, uses_taint_rules=uses_taint_rules)
        if uses_taint_rules:
            self.kinds = (*type(self).kinds, DEVICE_TAINT_RULE)  # type: ignore[misc]
        #: pod uid -> of its last attempt
        self._prepared: Lru[str, ClaimDemand] = Lru(PREPARED_MAX)
        self._reserved: dict[str, Reserved] = {}  # pod uid -> what PreBind has to write
        #: shape of a demand -> of `reach`, for a generation of the inventory
        self._given: Lru[Hashable, tuple[int, bool]] = Lru(PREPARED_MAX)

    @cached_property
    def _book(self) -> "answers.AnswerBook":
        return answers.AnswerBook(self._ledger, self._cluster.nodes, self._steps_max)

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            claims_of(pod, self._cluster)
        except ClaimError as error:
            return unresolvable(str(error))
        return SUCCESS

    # --- the lifetime of answers -----------------------------------------------------------------

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.cls.number if _may_need_devices(pod) else IDLE

    def reach(self, pod: PodInfo) -> Collection[str] | None:
        """Pods of any namespace, if it could be given a device that concerns several nodes."""
        if not _may_need_devices(pod):
            return ()
        self._ledger.catch_up(in_slices=True)
        devices = self._ledger.inventory.shared_devices()
        return None if devices and self._could_be_given(pod, devices) else ()

    def _could_be_given(self, pod: PodInfo, devices: Sequence[ReadyDevice]) -> bool:
        try:
            claims = claims_of(pod.pod, self._cluster)
        except ClaimError:
            return False  # it waits for them
        unallocated = tuple(claim for claim in claims if claim.status.allocation is None)
        extended = self._extended_claim(pod)
        if extended is not None and extended.status.allocation is not None:
            extended = None
        demand = plan.DeviceDemand(pod, unallocated, extended, bool(claims), self._ledger)
        served = frozenset(pod.cls.requests.keys() & self._ledger.by_resource)
        if extended is None:
            served = frozenset()
        try:
            shape, plans = demand.shape(served), demand.plans(served)
        except plan.AllocationError:
            return False  # no node can satisfy it
        generation = self._ledger.inventory.generation
        known = self._given.get(shape)
        if known is None or known[0] != generation:
            requests = [one for made in plans for some in made.requests for one in some]
            is_selected = any(_may_select(one, device) for one in requests for device in devices)
            self._given.put(shape, known := (generation, is_selected))
        return known[1]

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        """Claims belong to pods, and devices are taken with every Reserve: the answer is never
        reused.
        """
        return object() if _may_need_devices(pod) else 0

    # --- PreFilter -------------------------------------------------------------------------------

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        self._prepared.pop(pod.pod.uid)
        if not _may_need_devices(pod):
            return PreFilterResult(SKIP)
        self._ledger.catch_up(in_slices=True)
        try:
            found = claims_of(pod.pod, self._cluster)
        except ClaimError as error:
            return PreFilterResult(unresolvable(str(error)))
        claims = tuple(as_handed_on(pod.pod, claim, self._ledger) for claim in found)
        extended = self._extended_claim(pod)
        everything = claims if extended is None else (*claims, extended)
        if not everything:
            return PreFilterResult(SKIP)
        for claim in everything:
            status = self._check(pod.pod, claim, is_extended=claim is extended)
            if status is not None:
                return PreFilterResult(status)
        unallocated = tuple(c for c in claims if c.status.allocation is None)
        demand = plan.DeviceDemand(pod, unallocated, extended, bool(claims), self._ledger)
        prepared = ClaimDemand(everything, demand)
        self._prepared.put(pod.pod.uid, prepared)
        return PreFilterResult(data=prepared)

    def _extended_claim(self, pod: PodInfo) -> ResourceClaim | None:
        """The claim for extended resources that device classes stand for, existing or to be
        created.
        """
        served = self._ledger.by_resource
        if not any(a and is_delegable(n) and n in served for n, a in pod.cls.requests.items()):
            return None
        return self._ledger.extended_claim_of(pod.pod.uid) or plan.in_memory_claim(pod.pod)

    def _check(self, pod: Pod, claim: ResourceClaim, *, is_extended: bool) -> Status | None:
        if claim.status.allocation is not None:
            if claim.is_reservable or claim.is_reserved_for(pod.uid):
                return None
            return unresolvable("resourceclaim in use")
        key = claim.metadata.key
        if claim.uid in self._ledger.in_flight:
            return unresolvable(f"resource claim {key} is in the process of being allocated")
        if is_extended:
            return None
        if not claim.is_whole:
            return unresolvable(f"resource claim {key}: {UNWRITABLE}")
        for request in claim.spec.devices.requests or ():
            if request.exactly is not None:
                status = self._check_class(request.exactly.device_class_name, request.name)
            elif request.first_available and not self._knows_alternatives:
                status = unresolvable(
                    f"resource claim {key}, request {request.name}: has subrequests,"
                    " but the DRAPrioritizedList feature is disabled"
                )
            elif request.first_available:
                checks = (
                    self._check_class(sub.device_class_name, f"{request.name}/{sub.name}")
                    for sub in request.first_available
                )
                status = next((s for s in checks if s is not None), None)
            else:
                status = unresolvable(
                    f"resource claim {key}, request {request.name}: unknown request type"
                )
            if status is not None:
                return status
        return None

    def _check_class(self, device_class: str, request: str) -> Status | None:
        if not device_class:
            return failure(f"request {request}: unsupported request type")
        known = self._ledger.device_class(device_class)
        if known is None:
            return unresolvable(f"request {request}: device class {device_class} does not exist")
        if not known.is_whole:
            return unresolvable(f"request {request}: device class {device_class}: {UNWRITABLE}")
        return None

    # --- Filter ----------------------------------------------------------------------------------

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        if not isinstance(data, ClaimDemand):  # only where PreFilter is switched off
            code = allocator.FAILED if self._has_claims(pod.pod) else allocator.FITS
            return np.full(nodes.size, code, dtype=np.int32)
        prepared = data
        self._ledger.catch_up()
        codes = nodes.gather(self._book.answers(prepared.demand).codes)
        for claim in prepared.claims:
            if claim.status.allocation is not None:
                outside = nodes.gather(self._places.outside(claim))
                codes = np.where(outside & (codes == allocator.FITS), allocator.UNAVAILABLE, codes)
        return codes.astype(np.int32)

    def explain(self, pod: PodInfo, code: int) -> Status:
        if code < allocator.TIMED_OUT:
            return unresolvable(allocator.TEXTS[code])
        return failure(self._error_of(pod, code))

    def _error_of(self, pod: PodInfo, code: int) -> str:
        """Message of an error, which names the pod's own claims: that of the first such row."""
        prepared = self._prepared.get(pod.pod.uid)
        if prepared is None:
            return NOT_FOUND
        codes = self._book.answers(prepared.demand).codes
        for row in np.flatnonzero(codes == code):
            node = self._cluster.nodes.node_at[row]
            if node is None:
                continue
            if code == allocator.TIMED_OUT:
                return f"node {node.name}: {allocator.TIMED_OUT_TEXT}"
            if known := self._book.text_of(prepared.demand, int(row)):
                return known
            try:
                self._book.solve(prepared.demand, node)
            except (plan.AllocationError, allocator.NodeRejected) as error:
                return str(error)
        return NOT_FOUND

    def _has_claims(self, pod: Pod) -> bool:
        try:
            return bool(claims_of(pod, self._cluster))
        except ClaimError:
            return True

    # --- PostFilter ------------------------------------------------------------------------------

    def may_make_room(self, pod: PodInfo, why: Callable[[], Rejection], trial: Trial) -> bool:
        prepared = self._prepared.get(pod.pod.uid)
        if prepared is None:
            return False
        if prepared.demand.extended is not None and prepared.demand.is_stale:
            return True
        return any(self._is_stored_allocated(claim) for claim in prepared.claims)

    def may_evict(self, pod: PodInfo, trial: Trial) -> bool:
        """It deallocates claims and evicts no pod."""
        return False

    def post_filter(self, pod: PodInfo, rejection: Rejection, trial: Trial) -> PostFilterResult:
        if not rejection.pre_filter_ran(self.name):
            return PostFilterResult(failure(NOT_FOUND))
        prepared = self._prepared.get(pod.pod.uid)
        if prepared is None:
            return PostFilterResult(unschedulable(NO_CLAIMS))
        for claim in self._unavailable(prepared, rejection):
            holders = claim.status.reserved_for or ()
            if not holders or (len(holders) == 1 and holders[0].uid == pod.pod.uid):
                return PostFilterResult(
                    unschedulable("deallocation of ResourceClaim completed"),
                    background=claims.deallocate(claim),
                )
        extended = prepared.demand.extended
        if extended is not None and prepared.demand.is_stale:
            return PostFilterResult(
                unschedulable("deletion of ResourceClaim completed"),
                background=claims.delete_extended(extended),
            )
        return PostFilterResult(unschedulable("still not schedulable"))

    def _unavailable(
        self, prepared: "ClaimDemand", rejection: Rejection
    ) -> Iterable[ResourceClaim]:
        """Allocated claims that ruled out a node which no other plugin rejected."""
        if rejection.pre_filter is not None:
            return
        positions = [i for i, p in enumerate(rejection.plugins) if p is self]
        if not positions:
            return
        is_outside = (rejection.first_rejector == positions[0] + 1) & (
            rejection.codes == allocator.UNAVAILABLE
        )
        rows = np.flatnonzero(is_outside & rejection.live)
        for claim in prepared.claims:
            if not self._is_stored_allocated(claim) or claim is prepared.demand.extended:
                continue
            if self._places.outside(claim)[rows].any():
                yield claim

    def _is_stored_allocated(self, claim: ResourceClaim) -> bool:
        """Whether the API has its allocation."""
        is_allocated = claim.status.allocation is not None
        return is_allocated and claim.uid not in self._ledger.in_flight

    # --- Score -----------------------------------------------------------------------------------

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        prepared = self._prepared.get(pod.pod.uid)
        if prepared is None or prepared.demand.is_empty or not self._knows_alternatives:
            return np.zeros(nodes.size, dtype=np.int64)
        self._ledger.catch_up()
        raw = nodes.gather(self._book.answers(prepared.demand).scores)
        return raw + sum(map(answers.score_allocated, prepared.claims))

    # --- Reserve and PreBind ---------------------------------------------------------------------

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        prepared = self._prepared.get(pod.pod.uid)
        if prepared is None:
            return failure(NOT_FOUND) if self._has_claims(pod.pod) else SUCCESS
        self._ledger.catch_up()
        target = self._cluster.node_of(node)
        if target is None:
            return failure(f"node {node} is gone")
        reserved = allocated(self._ledger, self._book, prepared, target)
        if isinstance(reserved, Status):
            return reserved
        for claim, given in reserved.allocations:
            self._ledger.reserve(claim.uid, given, pod.pod)
        self._reserved[pod.pod.uid] = reserved
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> Late | None:
        reserved = self._reserved.pop(pod.pod.uid, None)
        if reserved is not None:
            for claim, _ in reserved.allocations:
                self._ledger.release(claim.uid, claim.metadata.key, pod.pod.uid)
        if not _may_need_devices(pod):
            return None
        return claims.unreserve(self._cluster, self._ledger, pod.pod)

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS if pod.pod.uid in self._reserved else SKIP

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        reserved = self._reserved.get(pod.pod.uid)
        if reserved is None:
            return SUCCESS
        status = yield from self._binding.bind(pod.pod, node, reserved)
        if status.is_success:
            del self._reserved[pod.pod.uid]
        return status


def _may_select(request: plan.PlannedRequest, device: ReadyDevice) -> bool:
    """Whether a request could be given a device; also if that is unknown."""
    try:
        return request.selects(device)[0]
    except plan.AllocationError:
        return True


def _may_need_devices(pod: PodInfo) -> bool:
    """Whether a pod names claims, or requests a resource that a device class could stand for."""
    if pod.pod.spec.resource_claims:
        return True
    return any(amount and is_delegable(name) for name, amount in pod.cls.requests.items())
