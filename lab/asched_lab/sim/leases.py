"""Checks who holds the lease of a simulation.

The lease changes hands only after its holder has released it or could not renew it for its duration
(counted from the last renewal request, by the clock of the process that takes it), its holder does
not claim that all writes are answered while a binding of it may still be carried out, each change
is counted, and a process whose lease has expired does not stay leader.
"""

from typing import TYPE_CHECKING, Final

from asched.core.leader.election import Term
from asched.core.leader.pools import TERM_SEPARATOR
from asched_lab.apiserver.context import Change
from asched_lab.apiserver.resources import BY_PATH
from asched_lab.sim.process import Process

if TYPE_CHECKING:
    from asched_lab.sim.world import World

LEASE: Final = BY_PATH["coordination.k8s.io", "v1", "leases"]


class Leases:
    """Checks the leases and complains to the ledger."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.written_s: dict[str, float] = {}  # when the server stored the current records
        self._over_s: dict[Process, float] = {}  # until when a leader may act, or might
        world.server.store.table(LEASE.storage).listeners.append(self._hear)

    def _hear(self, change: Change) -> None:
        now_s, world = self._world.clock.now_s(), self._world
        name = change.new.obj["metadata"]["name"]
        before = {} if change.old is None else change.old.obj["spec"]
        after = change.new.obj["spec"]
        was, now = before.get("holderIdentity") or "", after.get("holderIdentity") or ""
        lasts_s = before.get("leaseDurationSeconds", 0)
        if was and not now and (term := Term.of(change.new.obj)) and term.is_handed_on:
            late = sum(
                world.concerns(name, process, bind)
                for process in world.processes
                if process.name == process_of(was)
                for bind in process.wire.open_bindings()
            )
            if late:
                world.ledger.complain(f"{was} hands {name} on, {late} bindings are on their way")
        if now and now != was and before:
            takers = [process for process in world.processes if process.name == process_of(now)]
            rate = takers[0].clock_rate if takers else 1.0
            early_s = self.written_s[name] + lasts_s / rate - now_s
            if was and early_s > 0.0:
                world.ledger.complain(f"{now} took the lease {early_s:.1f} s before its end")
            if after["leaseTransitions"] <= before["leaseTransitions"]:
                world.ledger.complain(f"{now} took the lease of {was!r} as if it were its own")
        self.written_s[name] = now_s

    def check(self) -> None:
        """Check the processes that lead."""
        now_s = self._world.clock.now_s()
        for process in self._world.processes:
            candidate = process.candidate
            if candidate is None or self._over_s.get(process, now_s) > now_s:
                continue
            if not candidate.campaign.election.is_leader:
                continue
            if process.may_act:
                self._over_s[process] = now_s + candidate.fence_s() / process.clock_rate
            elif process.is_paused:
                self._over_s[process] = now_s
            elif now_s - self._over_s.setdefault(process, now_s) > self._world.lease_s:
                self._over_s[process] = now_s
                self._world.ledger.complain(f"{process.name} stands as leader, its time is over")


def process_of(holder: str) -> str:
    """The process that holds a lease; a pool's lease names its term, too."""
    return holder.partition(TERM_SEPARATOR)[0]
