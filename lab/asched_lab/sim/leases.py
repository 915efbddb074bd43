"""Rules about the lease, judged by what the server holds: it changes hands only when its holder has
given it back or could not have renewed it for as long as it lasts (which it counts from when it
sent the last renewal), nobody gives it back while a binding of its own may still be carried out,
each change is counted, and a process whose time is over does not stand as the leader for ever.
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
    """Complains to the ledger."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._written_s = 0.0  # when the server took the record as it stands
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
            late = sum(one.wire.bindings for one in world.processes if one.name == was)
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

    def look(self) -> None:
        """At processes that lead, or think so."""
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
