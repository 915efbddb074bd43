"""Pods that are only supposed, all of which have to find places: those of a ProvisioningRequest.

They go through the trial and the search of a gang (`group_trial.py`, `group_search.py`), and nobody
binds them. None has its place before all have.
"""

from typing import Final

from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.state.cluster import Cluster

WAITS: Final = Status(Code.WAIT, ("waiting for the rest of the pods that are supposed",))


class HypotheticalGang:
    """`needed` pods."""

    def __init__(self, cluster: Cluster, needed: int) -> None:
        self._cluster = cluster
        self.needed = needed
        self._placed: set[str] = set()

    def permit(self, uid: str) -> Status:
        """What a pod is told once it has its place: SUCCESS if it is the last one."""
        self._placed.add(uid)
        if len(self._placed) >= self.needed:
            self._placed = {uid for uid in self._placed if self._cluster.is_assumed(uid)}
        return SUCCESS if len(self._placed) >= self.needed else WAITS
