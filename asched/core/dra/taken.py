"""Allocated devices: those held by claims, and the capacity taken of shared devices.

A device held with admin access does not count. A claim is entered under its uid and can be replaced
or removed; `log` has the touched devices, so that only the nodes of their pools are searched again.
"""

from fractions import Fraction

from asched.core.cluster.changes import ChangeLog
from asched.core.dra.devices import DeviceId
from asched.core.model.claim import AllocationResult
from asched.core.model.quantity import parse

Capacity = dict[str, Fraction]


class Taken:
    """Devices and capacity held by claims."""

    def __init__(self) -> None:
        self.devices: dict[DeviceId, int] = {}  # exclusive devices; number of claims that hold them
        self.shared: dict[DeviceId, int] = {}  # number of shares
        self.capacity: dict[DeviceId, Capacity] = {}
        self.log: ChangeLog[DeviceId] = ChangeLog()
        self._claims: dict[str, AllocationResult] = {}

    def put(self, uid: str, allocation: AllocationResult | None) -> None:
        """Record the devices that a claim holds now; None: nothing."""
        old = self._claims.get(uid)
        if old == allocation:
            return
        if old is not None:
            self._move(old, -1)
            del self._claims[uid]
        if allocation is not None:
            self._claims[uid] = allocation
            self._move(allocation, 1)

    def is_used(self, device: DeviceId) -> bool:
        """Whether any claim holds it or a share of it."""
        return device in self.devices or device in self.shared

    def _move(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            counts = self.devices if result.share_id is None else self.shared
            counts[device] = counts.get(device, 0) + sign
            if not counts[device]:
                del counts[device]
            if result.share_id is not None:
                self._move_capacity(device, result.consumed_capacity or {}, sign)
            self.log.append(device)

    def _move_capacity(
        self, device: DeviceId, used: dict[str, str | int | float], sign: int
    ) -> None:
        held = self.capacity.setdefault(device, {})
        for name, amount in used.items():
            held[name] = held.get(name, Fraction(0)) + sign * parse(amount)
            if not held[name]:
                del held[name]
        if not held:
            del self.capacity[device]
