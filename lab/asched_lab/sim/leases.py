"""Rules of the lease, checked against the server's object: it changes hands only after its holder
has released it or could not renew it for its duration (counted from the last renewal request), it
is not released while a binding of its holder may still be carried out, each change is counted, and
a process whose lease has expired does not stay leader.
"""

from typing import TYPE_CHECKING, Final

from asched.core.model.timestamp import microseconds
from asched_lab.apiserver.resources import BY_PATH
from asched_lab.apiserver.store import Change
from asched_lab.sim.process import LEASE_S, Process

if TYPE_CHECKING:
    from asched_lab.sim.world import World

LEASE: Final = BY_PATH["coordination.k8s.io", "v1", "leases"]


class Leases:
    """Checks the lease and complains to the ledger."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._written_s = 0.0  # when the server stored the current record
        self._over_s: dict[Process, float] = {}  # since when a leader may not act
        world.server.store.table(LEASE.storage).listeners.append(self._hear)

    def _hear(self, change: Change) -> None:
        now_s, world = self._world.clock.now_s(), self._world
        before = {} if change.old is None else change.old.obj["spec"]
        after = change.new.obj["spec"]
        was, now = before.get("holderIdentity") or "", after.get("holderIdentity") or ""
        lasts_s = before.get("leaseDurationSeconds", 0)
        ends_s = self._written_s + lasts_s
        if was and not now and now_s < microseconds(before["renewTime"]) / 1e6 + lasts_s:
            late = sum(process.wire.bindings for process in world.processes if process.name == was)
            if late:
                world.ledger.complain(
                    f"{was} gives its lease back, {late} bindings are on their way"
                )
        if now and now != was and before:
            if was and now_s < ends_s:
                world.ledger.complain(f"{now} took the lease {ends_s - now_s:.1f} s before its end")
            if after["leaseTransitions"] <= before["leaseTransitions"]:
                world.ledger.complain(f"{now} took the lease of {was!r} as if it were its own")
        self._written_s = now_s

    def check(self) -> None:
        """Check the processes that lead."""
        now_s = self._world.clock.now_s()
        for process in self._world.processes:
            candidate = process.candidate
            if candidate is None or not candidate.campaign.election.is_leader:
                continue
            if process.may_act or process.is_paused:
                self._over_s[process] = now_s
            elif now_s - self._over_s.setdefault(process, now_s) > LEASE_S:
                self._over_s[process] = now_s
                self._world.ledger.complain(f"{process.name} stands as leader, its time is over")
