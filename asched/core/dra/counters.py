"""Shared counters of partitionable devices: a device may be taken while each of its counters
suffices.

Counters belong to a pool. Allocated devices of the pool have used some, whether or not this node
sees them; devices chosen during a search use more. A negative counter, which only contradictory
claims cause, rules out every device that uses counters of the pool.
"""

from fractions import Fraction

from asched.core.dra.devices import Amounts, PoolId, ReadyDevice
from asched.core.dra.pools import Pool
from asched.core.dra.taken import Taken

_ZERO = Fraction(0)


class CounterLedger:
    """Remaining counters of some pools during one search."""

    def __init__(self, pools: tuple[Pool, ...], taken: Taken) -> None:
        self._pools = {pool.id: pool for pool in pools}
        self._taken = taken
        self._remaining: dict[PoolId, Amounts] = {}

    def suffice(self, device: ReadyDevice) -> bool:
        """Whether the counters suffice for a device."""
        remaining = self._remaining.get(device.pool_id)
        if remaining is None:
            remaining = self._remaining[device.pool_id] = self._available(device.pool_id)
        if any(amount < 0 for amount in remaining.values()):
            return False
        return all(remaining[counter] >= amount for counter, amount in device.consumes.items())

    def take(self, device: ReadyDevice) -> None:
        """Take the counters of a device; they suffice."""
        remaining = self._remaining[device.pool_id]
        for counter, amount in device.consumes.items():
            remaining[counter] -= amount

    def give_back(self, device: ReadyDevice) -> None:
        remaining = self._remaining[device.pool_id]
        for counter, amount in device.consumes.items():
            remaining[counter] += amount

    def _available(self, pool_id: PoolId) -> Amounts:
        pool = self._pools[pool_id]
        remaining = dict(pool.counters)
        for device in pool.consumers:
            if self._taken.is_used(device.id):
                for counter, amount in device.consumes.items():
                    remaining[counter] = remaining.get(counter, _ZERO) - amount
        return remaining
