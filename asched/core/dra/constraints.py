"""Constraints between the devices of one claim: equal in an attribute, or different in it.

A device is added on trial and taken back in reverse order. A constraint that says no stays as it
was.
"""

from collections.abc import Hashable

from asched.core.dra.devices import ReadyDevice
from asched.core.model.claim import DeviceAttribute, DeviceConstraint


class Constraint:
    """All devices have the attribute: with one value of one type, or no two with the same value."""

    def __init__(self, requests: tuple[str, ...], attribute: str, *, distinct: bool) -> None:
        self._requests = frozenset(requests)
        self._attribute = attribute
        self._distinct = distinct
        self._values: list[Hashable] = []

    def add(self, request: str, parent: str, device: ReadyDevice) -> bool:
        """Count a device in, or say no. `parent` is empty for a request without alternatives."""
        if not self._concerns(request, parent):
            return True
        attribute = device.attribute(self._attribute)
        value = _value(attribute) if attribute is not None else None
        if value is None:
            return False
        if self._values and (value in self._values) is self._distinct:
            return False
        self._values.append(value)
        return True

    def remove(self, request: str, parent: str) -> None:
        """Take back the device added last."""
        if self._concerns(request, parent):
            self._values.pop()

    def _concerns(self, request: str, parent: str) -> bool:
        """A constraint names a request, with all its alternatives, or one alternative of it."""
        if not self._requests:
            return True
        if not parent:
            return request in self._requests
        return parent in self._requests or f"{parent}/{request}" in self._requests


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


def build(constraint: DeviceConstraint) -> Constraint | None:
    """None for a kind of constraint of a later version of the API."""
    requests = constraint.requests or ()
    if constraint.match_attribute is not None:
        return Constraint(requests, constraint.match_attribute, distinct=False)
    if constraint.distinct_attribute is not None:
        return Constraint(requests, constraint.distinct_attribute, distinct=True)
    return None
