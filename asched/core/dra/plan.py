"""A claim prepared for the search: requests with their classes resolved and their selectors merged.

Plans depend only on the claim's spec and on classes, not on nodes; pods whose claims come from one
template can share them.
"""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from asched.core.dra.cel.values import CelError, CelSyntaxError
from asched.core.dra.devices import ReadyDevice
from asched.core.model.claim import (
    ALL,
    EXACT_COUNT,
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
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


class PlannedRequest:
    """A single request: a request of the claim, or one of its alternatives."""

    __slots__ = (
        "admin",
        "capacity",
        "count",
        "device_class",
        "name",
        "parent",
        "selectors",
        "takes_all",
        "tolerations",
    )

    def __init__(
        self,
        name: str,
        parent: str,
        asked: ExactDeviceRequest | DeviceSubRequest,
        device_class: DeviceClass,
        claim: str,
    ) -> None:
        self.name = name
        self.parent = parent
        self.device_class = device_class
        self.takes_all = asked.allocation_mode == ALL
        self.count = asked.count
        self.admin = bool(asked.admin_access) if isinstance(asked, ExactDeviceRequest) else False
        self.tolerations: tuple[DeviceToleration, ...] = asked.tolerations or ()
        self.capacity = asked.capacity.requests if asked.capacity is not None else None
        self.selectors = (
            *_selectors(f"class {device_class.metadata.name}", device_class.spec.selectors),
            *_selectors(f"claim {claim}", asked.selectors),
        )

    @property
    def full_name(self) -> str:
        """The name in allocation results: `request` or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def shape(self) -> Hashable:
        """See `ClaimPlan`; includes the name, to which constraints refer."""
        expressions = tuple([selector.expression for selector in self.selectors])
        capacity = tuple(sorted(self.capacity.items())) if self.capacity else None
        asked = (self.name, self.parent, self.takes_all, self.count, self.admin)
        return (*asked, self.tolerations, capacity, expressions)

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
    """`requests[r]` are the alternatives of request r; `is_list[r]`: it names alternatives."""

    claim: ResourceClaim
    requests: tuple[tuple[PlannedRequest, ...], ...]
    is_list: tuple[bool, ...]

    @property
    def shape(self) -> Hashable:
        """Everything that the search reads, except texts of errors: names of classes and claims are
        not part of it.
        """
        asked = tuple([tuple([request.shape for request in some]) for some in self.requests])
        return asked, self.is_list, self.claim.spec.devices.constraints


def plan(claim: ResourceClaim, class_of: ClassLookup) -> ClaimPlan:
    """Resolve classes and check the requests. Raises AllocationError."""
    requests: list[tuple[PlannedRequest, ...]] = []
    is_list: list[bool] = []
    for asked in claim.spec.devices.requests or ():
        requests.append(_alternatives(claim.metadata.key, asked, class_of))
        is_list.append(bool(asked.first_available))
    return ClaimPlan(claim, tuple(requests), tuple(is_list))


def _alternatives(
    claim: str, asked: DeviceRequest, class_of: ClassLookup
) -> tuple[PlannedRequest, ...]:
    if asked.first_available:
        return tuple(
            _request(claim, sub.name, asked.name, sub, class_of) for sub in asked.first_available
        )
    if asked.exactly is None:
        raise AllocationError(
            f"claim {claim}, request {asked.name}: missing device class name "
            "(unsupported request type?)"
        )
    return (_request(claim, asked.name, "", asked.exactly, class_of),)


def _request(
    claim: str,
    name: str,
    parent: str,
    asked: ExactDeviceRequest | DeviceSubRequest,
    class_of: ClassLookup,
) -> PlannedRequest:
    where = f"claim {claim}, request {name}"
    for index, selector in enumerate(asked.selectors or ()):
        if selector.cel is None:
            raise AllocationError(
                f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
    if not asked.device_class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = class_of(asked.device_class_name)
    if device_class is None:
        raise AllocationError(
            f"{where}: could not retrieve device class {asked.device_class_name}: "
            f'deviceclass.resource.k8s.io "{asked.device_class_name}" not found'
        )
    if asked.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{where}: unsupported count mode {asked.allocation_mode}")
    return PlannedRequest(name, parent, asked, device_class, claim)


def _selectors(
    owner: str, selectors: tuple[DeviceSelector, ...] | None
) -> tuple[DevicePredicate, ...]:
    return tuple(
        DevicePredicate(owner, index, selector.cel.expression)
        for index, selector in enumerate(selectors or ())
        if selector.cel is not None
    )


def _requested(capacity: CapacityRequirements | None) -> dict[str, str | int | float] | None:
    return capacity.requests if capacity is not None else None
