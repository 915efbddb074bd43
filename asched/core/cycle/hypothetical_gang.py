"""The gang that the hypothetical pods of a ProvisioningRequest form."""

from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.framework.status import SUCCESS, Code, Status

WAITS: Final = Status(Code.WAIT, ("waiting for the rest of the hypothetical pods",))


class HypotheticalGang:
    """The hypothetical pods of a ProvisioningRequest; `needed` of them must be placed. They go
    through the trial and the search of a gang (`batch/groups/trial.py`), and are never bound.
    """

    def __init__(self, cluster: Cluster, needed: int) -> None:
        self._cluster = cluster
        self.needed = needed
        self._placed: set[str] = set()

    def permit(self, uid: str) -> Status:
        """Record that a pod has its place; SUCCESS if it is the last of `needed`."""
        self._placed.add(uid)
        if len(self._placed) >= self.needed:
            self._placed = {uid for uid in self._placed if self._cluster.is_assumed(uid)}
        return SUCCESS if len(self._placed) >= self.needed else WAITS
