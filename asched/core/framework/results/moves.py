"""What of the cluster has moved since somebody last looked, as bits.

The bits of a row's aspects say what changed of some row. Four more stand for what no row tells of.
Whoever keeps several results visits those alone that read something which moved.
"""

from typing import Final

from asched.core.state.cluster import Cluster
from asched.core.state.nodes import ALL_ASPECTS, START_TIMES, Aspect

#: An object that is neither pod nor node, ...
OBJECTS: Final = 1 << 20
#: ... counts of pods by selector or term, ports and claims in use, ...
COUNTS: Final = 1 << 21
#: ... the rows on which a class fits, ...
FEASIBLE: Final = 1 << 22
#: ... and what is to be asked about every time.
ALWAYS: Final = 1 << 23

#: Of nodes themselves, and of what runs there alike: first halves of plugins look at both.
OF_NODES: Final = int(Aspect.NODE)
#: What placed pods move, and waiting ones.
PLACEMENTS: Final = int(Aspect.PODS) | START_TIMES | COUNTS | FEASIBLE | ALWAYS
EVERYTHING: Final = ALL_ASPECTS | START_TIMES | OBJECTS | COUNTS | FEASIBLE | ALWAYS


class Moves:
    """One reader's. A look that led nowhere, since something failed, is repeated."""

    __slots__ = ("_cluster", "_found", "_seen")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen = self._found = (-2, -1, -1)

    def look(self) -> int:
        """What moved since the look before the last `settle`."""
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

    def settle(self) -> None:
        """All that moved until the last look has been followed."""
        self._seen = self._found
