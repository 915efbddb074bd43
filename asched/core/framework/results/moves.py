"""Changes of the cluster since the last read, as bits.

The bits of a row's aspects say what changed in any row. Four more are for changes without a row. A
reader with several results visits only those that depend on a change.
"""

from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, START_TIMES, Aspect

#: An object other than pods and nodes, ...
OBJECTS: Final = 1 << 20
#: ... counts of pods by selector or term, ports and claims in use, ...
COUNTS: Final = 1 << 21
#: ... the rows on which a class fits, ...
FEASIBLE: Final = 1 << 22
#: ... and inputs that must be read every time.
ALWAYS: Final = 1 << 23

#: Changes of nodes and of their pods: PreFilter and PreScore read both.
OF_NODES: Final = int(Aspect.NODE)
#: Changes caused by placed pods, and by waiting ones.
PLACEMENTS: Final = int(Aspect.PODS) | START_TIMES | COUNTS | FEASIBLE | ALWAYS
EVERYTHING: Final = ALL_ASPECTS | START_TIMES | OBJECTS | COUNTS | FEASIBLE | ALWAYS


class Moves:
    """The changes for one reader, which marks them when it has processed them: if it failed before,
    they are read again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen = self._found = (-2, -1, -1)

    def read(self) -> int:
        """The changes since the read before the last `mark_processed`."""
        cluster = self._cluster
        log = cluster.nodes.log
        self._found = found = (log.end, cluster.epoch, cluster.counts)
        seen = self._seen
        if found == seen:
            return ALWAYS
        moved = ALWAYS
        if found[0] == seen[0] + 1:
            moved |= log.last[1]
        elif found[0] != seen[0]:
            touched = log.touched(seen[0])
            if touched is None:
                return EVERYTHING
            moved |= touched
        if found[1] != seen[1]:
            moved |= OBJECTS
        if found[2] != seen[2]:
            moved |= COUNTS
        return moved

    def mark_processed(self) -> None:
        """All changes up to the last read have been processed."""
        self._seen = self._found
