"""Dynamic resources (resource.k8s.io/v1): claims, slices of devices, device classes.

Opaque driver parameters are stored unparsed, so that an allocation can copy the configuration; no
rule reads them. An attribute holds exactly one of its four values.

Bounds  PARAMETER_LEVELS_MAX levels in opaque parameters: deeper ones are dropped, and a claim with
        such parameters is not allocated
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from asched.core.model.meta import ApiObject, Record
from asched.core.model.quantity import Quantity, check
from asched.core.model.selector import NodeSelector
from asched.core.model.taint import Taint, Toleration

#: Protects an allocated claim from deletion while pods use it.
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
#: Marks the claim that the scheduler created for a pod's extended resources.
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
#: Upper bound of devices in one allocation, and of consumers of one claim (API limits).
ALLOCATION_RESULTS_MAX: Final = 32
RESERVED_FOR_MAX: Final = 256

#: Parameters of drivers have some five levels. Values written to the API server, to recordings and
#: to keys of caches nest at most this deeply, so that each of their encoders can write them.
PARAMETER_LEVELS_MAX: Final = 64
#: In place of parameters that cannot be encoded. The API server accepts only mappings.
LEFT_OUT: Final = "left out"

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"


# --- what a claim asks for --------------------------------------------------------------------


class CelSelector(Record, frozen=True, gc=False):
    expression: str = ""


class DeviceSelector(Record, frozen=True, gc=False):
    cel: CelSelector | None = None


class DeviceToleration(Toleration, frozen=True, gc=False):
    toleration_seconds: int | None = None


class CapacityRequirements(Record, frozen=True, gc=False):
    requests: dict[str, Quantity] | None = None


class ExactDeviceRequest(Record, frozen=True, gc=False):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Record, frozen=True, gc=False):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Record, frozen=True, gc=False):
    """Either `exactly`, or alternatives in order of preference."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Record, frozen=True, gc=False):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Record, frozen=True, gc=False):
    """`parameters` are LEFT_OUT where they cannot be encoded unchanged."""

    driver: str = ""
    parameters: Any = None

    def __post_init__(self) -> None:
        if not _is_writable(self.parameters):
            msgspec.structs.force_setattr(self, "parameters", LEFT_OUT)

    @property
    def is_whole(self) -> bool:
        return not isinstance(self.parameters, str)


def _is_writable(value: Any) -> bool:
    """Whether all encoders can write it: few levels, and no integer beyond 64 bits."""
    level = [value]
    for _ in range(PARAMETER_LEVELS_MAX):
        if any(isinstance(item, int) and not -(1 << 63) <= item < 1 << 64 for item in level):
            return False
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class DeviceClaimConfiguration(Record, frozen=True, gc=False):
    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Record, frozen=True, gc=False):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceClaimConfiguration, ...] | None = None


class ResourceClaimSpec(Record, frozen=True, gc=False):
    devices: DeviceClaim = DeviceClaim()


# --- what a claim was given -------------------------------------------------------------------


class DeviceRequestAllocationResult(Record, frozen=True, gc=False):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationConfiguration(Record, frozen=True, gc=False):
    source: str = ""
    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Record, frozen=True, gc=False):
    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[DeviceAllocationConfiguration, ...] | None = None


class AllocationResult(Record, frozen=True, gc=False):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Record, frozen=True, gc=False):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Record, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class AllocatedDeviceStatus(Record, frozen=True, gc=False):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: tuple[DeviceCondition, ...] | None = None


class ResourceClaimStatus(Record, frozen=True, gc=False):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(ApiObject, frozen=True, gc=False):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_whole(self) -> bool:
        """Whether an allocation can copy the parameters."""
        return all(c.opaque is None or c.opaque.is_whole for c in self.spec.devices.config or ())

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_reservable(self) -> bool:
        """Whether another consumer may still be added."""
        return len(self.status.reserved_for or ()) < RESERVED_FOR_MAX

    def is_reserved_for(self, uid: str) -> bool:
        return any(consumer.uid == uid for consumer in self.status.reserved_for or ())

    def allocated(self, allocation: AllocationResult) -> "ResourceClaim":
        """The same claim with this allocation written."""
        return msgspec.structs.replace(
            self, status=msgspec.structs.replace(self.status, allocation=allocation)
        )


# --- devices ----------------------------------------------------------------------------------


class DeviceAttribute(Record, frozen=True, gc=False):
    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)
    int_values: tuple[int, ...] | None = msgspec.field(name="ints", default=None)
    bool_values: tuple[bool, ...] | None = msgspec.field(name="bools", default=None)
    string_values: tuple[str, ...] | None = msgspec.field(name="strings", default=None)
    version_values: tuple[str, ...] | None = msgspec.field(name="versions", default=None)


class CapacityRequestPolicyRange(Record, frozen=True, gc=False):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Record, frozen=True, gc=False):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Record, frozen=True, gc=False):
    value: Quantity = "0"

    def __post_init__(self) -> None:
        check((self.value,))

    request_policy: CapacityRequestPolicy | None = None


class Counter(Record, frozen=True, gc=False):
    value: Quantity = "0"

    def __post_init__(self) -> None:
        check((self.value,))


class CounterSet(Record, frozen=True, gc=False):
    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Record, frozen=True, gc=False):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaintSelector(Record, frozen=True, gc=False):
    """Devices that a rule applies to; an absent field matches any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Record, frozen=True, gc=False):
    """Without a selector no device matches, with an empty one every device."""

    device_selector: DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(ApiObject, frozen=True, gc=False):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class Device(Record, frozen=True, gc=False):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Record, frozen=True, gc=False):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Record, frozen=True, gc=False):
    """Exactly one of the four fields about nodes determines which nodes see the devices."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(ApiObject, frozen=True, gc=False):
    spec: ResourceSliceSpec = ResourceSliceSpec()


def is_of_several_nodes(slices: Iterable[ResourceSliceSpec]) -> bool:
    """Whether devices of a pool, given all its slices, concern several nodes: a slice names no
    node, or slices of several nodes share counters.
    """
    specs = tuple(slices)
    nodes = {spec.node_name or "" for spec in specs}
    return "" in nodes or (len(nodes) > 1 and any(spec.shared_counters for spec in specs))


# --- classes ----------------------------------------------------------------------------------


class DeviceClassConfiguration(Record, frozen=True, gc=False):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Record, frozen=True, gc=False):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceClassConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, gc=False):
    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def is_whole(self) -> bool:
        """Whether an allocation can copy the parameters."""
        return all(c.opaque is None or c.opaque.is_whole for c in self.spec.config or ())
