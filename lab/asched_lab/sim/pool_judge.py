"""Checks who holds the pools, where each has a Lease: never two processes, and not no one for long.

A pool is held while a process may act for it. From the moment that no process does, and that its
Lease was written last (a request of a dead holder may be late), it is taken by another within the
duration of the Lease and TAKEN_S, if one process ran and reached the server for all of that time
(`Process.able_since_s`).
"""

from math import inf
from typing import TYPE_CHECKING, Final

from asched.core.config.layout import leases_of
from asched.core.leader.pools import lease_of_pool
from asched.core.model.timestamp import NS_PER_SECOND
from asched_lab.sim.faults import ClockRates
from asched_lab.sim.process import LEASE_NAME, Process

if TYPE_CHECKING:
    from asched_lab.sim.world import World

#: From the end of the Lease until the pool is held again.
TAKEN_S: Final = 3.0
EVERY_S: Final = 0.5


class PoolJudge:
    """Complains to the ledger. It is called after each step of a process: only then a process
    begins or ceases to hold a pool, but for the passing of time.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        rates = world.active_faults.find(ClockRates)
        rate = 1.0 - (rates.share if rates else 0.0)
        #: By pool the longest time without a holder: a clock may be slow.
        self.gap_s = {
            pool: lease.lease_ns / NS_PER_SECOND / rate + TAKEN_S
            for pool, lease in leases_of(world.setup.configuration).items()
        }
        #: By pool and process: until when it is held, without another renewal.
        self._until_s: dict[str, dict[Process, float]] = {pool: {} for pool in world.pools}
        #: The same by each process's own clock, one for each pool: they move when it renews.
        self._fences: dict[Process, tuple[float, ...]] = {}
        #: When it was held last, by processes that have ended, or do not hold it any more.
        self._last_s = dict.fromkeys(world.pools, world.clock.now_s())
        world.clock.after(EVERY_S, self._check_gaps)

    def stepped(self, process: Process) -> None:
        """A process has done something."""
        world = self._world
        fences = process.pool_fences()
        if fences == self._fences.get(process) or process not in world.processes:
            return
        self._fences[process] = fences
        now_s = world.clock.now_s()
        for pool, until_s in self._until_s.items():
            before_s = until_s.get(process, -inf)
            until_s[process] = process.held_until_s(pool)
            self._last_s[pool] = max(self._last_s[pool], min(before_s, now_s))
            if before_s <= now_s < until_s[process]:
                holders = [known.name for known, end_s in until_s.items() if end_s > now_s]
                if len(holders) > 1:
                    world.ledger.complain(f"two processes hold {pool}: {', '.join(holders)}")

    def ended(self, process: Process) -> None:
        """A process has ended."""
        now_s = self._world.clock.now_s()
        self._fences.pop(process, None)
        for pool, until_s in self._until_s.items():
            last_s = min(until_s.pop(process, -inf), now_s)
            self._last_s[pool] = max(self._last_s[pool], last_s)

    def _check_gaps(self) -> None:
        world, now_s = self._world, self._world.clock.now_s()
        for pool, until_s in self._until_s.items():
            written_s = world.leases.written_s.get(lease_of_pool(LEASE_NAME, pool), -inf)
            last_s = max(self._last_s[pool], written_s, *until_s.values())
            for process in world.processes:
                if now_s - max(last_s, process.able_since_s(pool)) > self.gap_s[pool]:
                    self._last_s[pool] = now_s  # reported once
                    text = f"no process holds {pool} for {now_s - last_s:.1f} s"
                    world.ledger.complain(f"{text}, though {process.name} could take it")
                    break
        world.clock.after(EVERY_S, self._check_gaps)
