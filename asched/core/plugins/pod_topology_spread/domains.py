"""Which nodes a constraint counts, and which domains there are: sums per domain from stored counts.

Rules   a constraint counts nodes that carry the topology keys asked for and that its policies
        include: those the pod's node selector and affinity admit (nodeAffinityPolicy Honor), those
        without hard taints the pod does not tolerate (nodeTaintsPolicy Honor).
        A domain exists if a counted node is in it, with no pods too.
Cost    linear in the constraints, however many: which rows a pod may go to and which carry all keys
        is found once for all of them.
        Where every node with the key is counted, the tally's own sums per domain serve as they are;
        else one pass over the rows. Which nodes count is found anew only when labels, taints or the
        nodes themselves changed.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/common.go
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import PodCounter
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass
from asched.core.cluster.pools import Pools
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Mask
from asched.core.model.arrays import I32
from asched.core.model.selector import NodeSelector, compile_node_selector
from asched.core.model.taint import Tolerations, without_comparisons
from asched.core.plugins.term_match import match_any, match_labels

#: Aspects of a row on which the set of counted nodes depends.
LAYOUT: Final = Aspect.LABELS | Aspect.TAINTS | Aspect.LIVE
_LAYOUT: Final = int(LAYOUT)

#: Memory for the sets of counted nodes, of each kind; a full cache is emptied ...
BYTES_MAX: Final = 32 << 20
#: ... bytes per row for domains, and for a mask ...
DOMAINS_BYTES, MASK_BYTES = 5, 1
#: ... and the minimum for each, however few rows there are.
OWN_BYTES: Final = 8 << 10


#: Rows per step of the budget to build the column of a new label.
ROWS_PER_STEP: Final = 20
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")


class Admission:
    """What of a pod decides which nodes are counted. None: no such restriction.

    It is part of keys, so that its hash is cached.
    """

    __slots__ = ("_hash", "_written", "labels", "terms", "tolerations")

    def __init__(
        self,
        labels: tuple[tuple[str, str], ...] | None,
        terms: NodeSelector | None,
        tolerations: Tolerations | None,
    ) -> None:
        self.labels = labels
        self._written = b"" if terms is None else _encoder.encode(terms)
        self.terms = compile_node_selector(terms)
        self.tolerations = tolerations
        self._hash = hash((labels, self._written, tolerations))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Admission) and self._parts == other._parts

    @property
    def _parts(self) -> tuple[Hashable, ...]:
        return self._hash, self.labels, self._written, self.tolerations


class DomainsKey(NamedTuple):
    """Nodes that carry all of `required`, that the pod may go to, seen by one topology key."""

    topology_key: str
    required: frozenset[str]
    admission: Admission


class Domains:
    """The counted nodes of a key: `ids` int32[H] is the value id of each row, 0 if not counted.

    Where nodes without the topology key count too (it is not among `required`), they are in the
    domain of the empty value, if there is such a value: upstream reads a missing label as empty.
    """

    def __init__(self, nodes: NodeView, key: DomainsKey, counted: Mask) -> None:
        """`counted` bool[H]: the rows that the pod may go to and that carry all of `required`."""
        self._key = key.topology_key
        ids, column = nodes.label(key.topology_key)
        self.size = len(column.values)
        #: whether every row that has the key is counted
        self.is_whole = not bool(ids[~counted].any())
        empty = 0 if key.topology_key in key.required else column.values.find("")
        if empty:
            self.is_whole = False
            ids = np.where(ids == 0, empty, ids)
        self.ids: I32 = np.where(counted, ids, 0).astype(np.int32)
        seen = np.bincount(self.ids, minlength=self.size) > 0
        seen[0] = False
        #: how many domains there are
        self.count = int(np.count_nonzero(seen))
        # Domains with adjacent ids are a slice, which is faster to read than a list of ids.
        present: Any = np.flatnonzero(seen)
        if self.count and int(present[-1]) - int(present[0]) + 1 == self.count:
            present = slice(int(present[0]), int(present[-1]) + 1)
        self._present = present

    def counts(self, counter: PodCounter | None) -> I64:
        """int64[D] pods on counted nodes for each value id; index 0 has no meaning.

        A live array: do not change or store it.
        """
        if counter is None:
            return np.zeros(self.size, dtype=np.int64)
        if self.is_whole:
            return counter.domain(self._key)
        sums = np.bincount(self.ids, weights=counter.rows(), minlength=self.size)
        return sums.astype(np.int64)

    def least(self, counts: I64) -> int:
        """The smallest count of a domain that exists; there must be one."""
        return int(counts[self._present].min())


class DomainsMemory:
    """Domains by key, made anew once the layout of the nodes has changed."""

    def __init__(self, cluster: Cluster, pools: Pools | None = None) -> None:
        self._cluster, self._pools = cluster, pools
        self._cursor = self._epoch = self._namespaces = -1
        self._layout = 0
        self._known: dict[Hashable, Domains] = {}
        self._complete: dict[frozenset[str], Mask] = {}
        self._admitted: dict[Admission, Mask] = {}

    def layout(self) -> int:
        """A number that changes when labels or taints of a node change, a node is added or
        deleted, or a namespace may have come to another pool.
        """
        log = self._cluster.nodes.log
        if self._pools is not None and self._epoch != self._cluster.epoch:
            self._epoch, before = self._cluster.epoch, self._namespaces
            self._namespaces = self._pools.version
            if self._namespaces != before:
                self._cursor = -1
        if self._cursor != log.end:
            touched = log.touched(self._cursor)
            self._cursor = log.end
            if touched is None or touched & _LAYOUT:
                self._layout += 1
                self._known.clear()
                self._complete.clear()
                self._admitted.clear()
        return self._layout

    def get(self, key: DomainsKey, namespace: str) -> Domains:
        """The current domains for pods of a namespace; `layout` has been read in this attempt."""
        known_as = key if self._pools is None else (key, namespace)
        domains = self._known.get(known_as)
        if domains is None:
            nodes = self._cluster.nodes
            if not nodes.has_column(key.topology_key):
                self._cluster.budget.charge(nodes.height / ROWS_PER_STEP)
                nodes.label_column(key.topology_key)  # created now: later it would be charged again
            self._make_room(self._known, DOMAINS_BYTES)
            counted = self._admits(key.admission) & self.complete(key.required)
            if self._pools is not None:
                counted &= self._pools.of_rows() == self._pools.of_namespace(namespace)
            domains = self._known[known_as] = Domains(self._cluster.view(), key, counted)
        return domains

    def _admits(self, admission: Admission) -> Mask:
        """bool[H]: rows to which the pod may go, as far as its policies consider."""
        admitted = self._admitted.get(admission)
        if admitted is not None:
            return admitted
        nodes = self._cluster.view()
        admitted = nodes.live.copy()
        if admission.labels is not None:
            admitted &= match_labels(nodes, admission.labels)
        if admission.terms is not None:
            admitted &= match_any(nodes, admission.terms)
        if admission.tolerations is not None:
            open_sets = [
                all(not t.is_hard or admission.tolerations.tolerate(t) for t in taints)
                for taints in nodes.table.taint_sets.values
            ]
            admitted &= np.array(open_sets, dtype=np.bool_)[nodes.taint_set]
        self._make_room(self._admitted, MASK_BYTES)
        self._admitted[admission] = admitted
        return admitted

    def complete(self, keys: frozenset[str]) -> Mask:
        """bool[H]: rows that carry every one of the label keys."""
        mask = self._complete.get(keys)
        if mask is None:
            nodes = self._cluster.view()
            mask = nodes.live.copy()
            if all(map(nodes.table.is_carried, keys)):
                for key in keys:
                    mask &= nodes.label(key)[0] > 0
            else:
                mask[:] = False
            self._make_room(self._complete, MASK_BYTES)
            self._complete[keys] = mask
        return mask

    def _make_room(self, memory: dict[Any, Any], row_bytes: int) -> None:
        each = row_bytes * self._cluster.nodes.height + OWN_BYTES
        if len(memory) * each >= BYTES_MAX:
            memory.clear()


def admission_of(
    cls: PodClass,
    honors_affinity: bool,
    honors_taints: bool,
    compares_taints: bool,
) -> Admission:
    """What a constraint with these policies requires of the nodes it counts."""
    spec = cls.example.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    tolerations = spec.tolerations or ()
    if not compares_taints:
        tolerations = without_comparisons(tolerations)
    return Admission(
        tuple(sorted(spec.node_selector.items()))
        if honors_affinity and spec.node_selector
        else None,
        affinity.required if honors_affinity and affinity is not None else None,
        Tolerations(tolerations) if honors_taints else None,
    )
