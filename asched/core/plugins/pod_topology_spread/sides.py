"""Common part of the hard and the soft constraints of a class: their counters and domains."""

from collections.abc import Iterable

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import PodCounter
from asched.core.cluster.pods import PodClass
from asched.core.plugins.moved_rows import CountsSeen, MovedRows
from asched.core.plugins.pod_topology_spread.constraints import Constraints
from asched.core.plugins.pod_topology_spread.domains import (
    Domains,
    DomainsKey,
    DomainsMemory,
    admission_of,
)


class Side:
    """Constraints of one action, for one class of pods. Nodes without `required` do not count.

    Only the first `reach` constraints are evaluated: those after them cannot change the result.
    """

    def __init__(
        self,
        cluster: Cluster,
        memory: DomainsMemory,
        cls: PodClass,
        constraints: Constraints,
        required: frozenset[str],
    ) -> None:
        self._cluster = cluster
        self._memory = memory
        self.constraints = constraints
        self._reach, self._reached_at = 0, -1
        self._seen = CountsSeen()
        #: rows with a changed verdict or score, since counts changed
        self.moved = MovedRows(cluster.nodes)
        self._namespace = cls.label_set.namespace
        self._counters: list[PodCounter | None] = [None] * len(constraints)
        policies = {(c.honors_affinity, c.honors_taints, c.compares_taints) for c in constraints}
        self._admissions = {
            (affinity, taints, compares): admission_of(
                cls,
                honors_affinity=affinity,
                honors_taints=taints,
                compares_taints=compares,
            )
            for affinity, taints, compares in policies
        }
        self._required = required
        self._domain_keys: dict[int, DomainsKey] = {}

    def find_reach(self) -> int:
        """How many constraints matter on the current nodes."""
        return len(self.constraints)

    @property
    def reach(self) -> int:
        layout = self._memory.layout()
        if layout != self._reached_at:
            self._reach, self._reached_at = self.find_reach(), layout
        return self._reach

    def counter(self, index: int) -> PodCounter | None:
        """The counter of a constraint; None if its selector matches nothing."""
        counter = self._counters[index]
        if counter is None or counter.is_dropped:
            key = self.constraints[index].counter_key(self._namespace)
            counter = self._counters[index] = None if key is None else self._cluster.counter(key)
        return counter

    def domains(self, index: int) -> Domains:
        key = self._domain_keys.get(index)
        if key is None:
            constraint = self.constraints[index]
            policies = (
                constraint.honors_affinity,
                constraint.honors_taints,
                constraint.compares_taints,
            )
            key = DomainsKey(constraint.topology_key, self._required, self._admissions[policies])
            self._domain_keys[index] = key
        return self._memory.get(key)

    def moved_rows(self) -> Iterable[int] | None:
        """Rows whose counts changed since the last call; None if unknown. Marks the counters as
        used.
        """
        return self._seen.rows(self.keep())

    def keep(self) -> list[PodCounter]:
        """Mark the counters as used; create them before any trial begins."""
        kept, keep = list[PodCounter](), self._cluster.topology.keep
        for index in range(self.reach):
            counter = self.counter(index)
            if counter is not None:
                keep(counter)
                kept.append(counter)
        return kept
