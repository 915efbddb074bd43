"""Constraints between the devices of one claim: equal in an attribute, or different in it.

A device is added on trial and removed in reverse order. A constraint that rejects a device is left
unchanged.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping

from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.devices import ReadyDevice
from asched.core.model.claim import DeviceAttribute, DeviceConstraint


class AllocationConstraint(ABC):
    """All devices have the attribute, and each new device must be compatible with those added
    before.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        self._requests = frozenset(requests)
        self._attribute = attribute

    def add(self, request: str, parent: str, device: ReadyDevice) -> bool:
        """Add a device, or return False. `parent` is empty for a request without alternatives."""
        if not self._concerns(request, parent):
            return True
        attribute = device.attribute(self._attribute)
        value = _value(attribute) if attribute is not None else None
        return value is not None and self._admit(parent or request, value)

    def remove(self, request: str, parent: str) -> None:
        """Remove the device added last."""
        if self._concerns(request, parent):
            self._dismiss(parent or request)

    @abstractmethod
    def _admit(self, request: str, value: Hashable) -> bool: ...

    @abstractmethod
    def _dismiss(self, request: str) -> None: ...

    def _concerns(self, request: str, parent: str) -> bool:
        """A constraint names a request, with all its alternatives, or one alternative of it."""
        if not self._requests:
            return True
        if not parent:
            return request in self._requests
        return parent in self._requests or f"{parent}/{request}" in self._requests


class _Equal(AllocationConstraint):
    """One value of one type."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: list[Hashable] = []

    def _admit(self, request: str, value: Hashable) -> bool:  # noqa: ARG002
        if self._values and value not in self._values:
            return False
        self._values.append(value)
        return True

    def _dismiss(self, request: str) -> None:  # noqa: ARG002
        self._values.pop()


class _DistinctByRequest(AllocationConstraint):
    """No two requests with the same value. Of each request only the device added last is stored,
    and none once it is removed, as in kube-scheduler 1.36.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._value_of: dict[str, Hashable] = {}

    def _admit(self, request: str, value: Hashable) -> bool:
        if value in self._value_of.values():
            return False
        self._value_of[request] = value
        return True

    def _dismiss(self, request: str) -> None:
        self._value_of.pop(request, None)


class _Distinct(AllocationConstraint):
    """No two devices with the same value."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: list[Hashable] = []

    def _admit(self, request: str, value: Hashable) -> bool:  # noqa: ARG002
        if value in self._values:
            return False
        self._values.append(value)
        return True

    def _dismiss(self, request: str) -> None:  # noqa: ARG002
        self._values.pop()


def _value(attribute: DeviceAttribute) -> Hashable | None:
    """The value with its type, so that 1, true and "1" differ; None if there is none."""
    if attribute.string_value is not None:
        return ("string", attribute.string_value)
    if attribute.int_value is not None:
        return ("int", attribute.int_value)
    if attribute.bool_value is not None:
        return ("bool", attribute.bool_value)
    if attribute.version_value is not None:
        return ("version", attribute.version_value)
    return None


def build(
    constraint: DeviceConstraint, rules: Mapping[str, bool] = DEFAULT_GATES
) -> AllocationConstraint | None:
    """None for a kind of constraint of a later version of the API."""
    requests = constraint.requests or ()
    if constraint.match_attribute is not None:
        return _Equal(requests, constraint.match_attribute)
    if constraint.distinct_attribute is not None:
        kind = _Distinct if rules["distinct-attribute-per-device"] else _DistinctByRequest
        return kind(requests, constraint.distinct_attribute)
    return None
