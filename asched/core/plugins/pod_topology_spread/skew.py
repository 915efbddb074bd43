"""The filter half: reject nodes where a pod would exceed maxSkew.

Rule    in each constraint, skew = pods in the node's domain + 1 if the pod itself would count
        - the smallest number in any domain; it must not exceed maxSkew. With fewer domains than
        minDomains the smallest number is 0. A node that is not counted has a domain of 0 pods,
        unless counted nodes share it. Constraints are checked in order; the first that fails
        decides.
Cost    each domain is judged once, then one gather over the rows; a single constraint with few
        domains needs no gather.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodClass
from asched.core.cluster.view import NodeView
from asched.core.framework.points import DOMAINS_MAX, I64, Codes, DomainCodes
from asched.core.framework.status import Reason
from asched.core.plugins.moved_rows import difference
from asched.core.plugins.pod_topology_spread.constraints import Constraints
from asched.core.plugins.pod_topology_spread.domains import Domains, DomainsMemory
from asched.core.plugins.pod_topology_spread.sides import Side

NO_LABEL: Final = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    resolvable=False,
)
SKEWED: Final = Reason("node(s) didn't match pod topology spread constraints", resolvable=True)

CODE_NO_LABEL: Final = 1
CODE_SKEWED: Final = 2


class HardSide(Side):
    """The hard constraints of a class of pods, with a verdict on each domain for the newest
    counts.
    """

    def __init__(
        self, cluster: Cluster, memory: DomainsMemory, cls: PodClass, constraints: Constraints
    ) -> None:
        required = frozenset(constraint.topology_key for constraint in constraints)
        super().__init__(cluster, memory, cls, constraints, required)
        self._labels = cls.label_set.labels
        self._self_matches: dict[int, int] = {}
        self._judged: list[Codes] = []
        #: of each constraint: the smallest number of its last verdicts
        self._least: list[int] = []
        self._judged_at = -1  # a layout of the nodes
        self._judged_version = -1  # of its only counter, where there are few domains
        self.by_domain = DomainCodes()

    def find_reach(self) -> int:
        """Up to the first key that no node has: no node passes that constraint."""
        is_carried = self._cluster.nodes.is_carried
        for index, constraint in enumerate(self.constraints):
            if not is_carried(constraint.topology_key):
                return index + 1
        return len(self.constraints)

    def stamp(self) -> Hashable:
        """None: `moved` has the rows in domains with changed verdicts."""
        self.keep()
        self._judge_anew()
        return None

    def codes(self, nodes: NodeView) -> Codes:
        """int32[M]: 0 fits, else the code of the first constraint that refuses the row."""
        self._judge_anew()
        codes: Codes | None = None
        reached = self.constraints[: self.reach]
        for constraint, judged in zip(reached, self._judged, strict=True):
            row_codes = judged.take(nodes.label(constraint.topology_key)[0])
            codes = row_codes if codes is None else np.where(codes, codes, row_codes)
        assert codes is not None, "a filter without hard constraints is skipped"
        return codes

    def code_of(self, row: int) -> int:
        """The same for one row."""
        self._judge_anew()
        label = self._cluster.nodes.label_column
        for constraint, judged in zip(self.constraints, self._judged, strict=False):
            code: int = judged.item(label(constraint.topology_key).ids.item(row))
            if code:
                return code
        return 0

    def _judge_anew(self) -> None:
        """Judge the domains again whose counts have changed; or all domains if these are unknown,
        if the smallest number changed, or if other nodes count.
        """
        layout = self._memory.layout()
        if layout == self._judged_at and self.by_domain.column is not None:
            self._judge_few()
            return
        rows = self.moved_rows()
        if layout == self._judged_at and rows is not None and all(map(self._judge_row, rows)):
            return
        for index in range(self.reach):
            self.domains(index)  # may raise OutOfTurn
        old, self._judged, self._least = self._judged, [], []
        for index in range(self.reach):
            self._judge(index)
        self._judged_at = layout
        if self._publish_domains():
            return
        if len(old) != len(self._judged):
            self.moved.turn_all()
            return
        for constraint, before, after in zip(self.constraints, old, self._judged, strict=False):
            turned = difference(before, after)
            if len(turned):
                column = self._cluster.nodes.label_column(constraint.topology_key)
                self.moved.turn(column, turned.tolist())

    def _judge_few(self) -> None:
        """A single constraint with few domains: judge all of them, if any count changed."""
        version = self._version()
        if version == self._judged_version:
            return
        counts, least = self._counts(0)
        allowed = self._allowed(0, least)
        codes = [CODE_SKEWED if number > allowed else 0 for number in counts.tolist()]
        codes[0] = CODE_NO_LABEL
        self._judged_version, self._least[0] = version, least
        if codes != self._judged[0].tolist():
            self._judged[0] = np.array(codes, dtype=np.int32)
            self.by_domain.tell(self.by_domain.column, self._judged[0])

    def _version(self) -> int:
        counter = self.counter(0)
        return 0 if counter is None else counter.version

    def _judge_row(self, row: int) -> bool:
        """Judge the domains of a row again. False if all domains have to be."""
        for index, judged in enumerate(self._judged):
            column = self._cluster.nodes.label_column(self.constraints[index].topology_key)
            id_ = column.ids.item(row)
            counts, least = self._counts(index)
            if least != self._least[index]:
                return False
            code = CODE_SKEWED if id_ and counts.item(id_) > self._allowed(index, least) else 0
            if id_ and code != judged.item(id_):
                judged[id_] = code
                self.moved.turn_row(row, column, id_)
        return True

    def _publish_domains(self) -> bool:
        """Publish the verdicts of a single constraint with few domains."""
        by_domain = self.by_domain
        if len(self._judged) == 1 and len(self._judged[0]) <= 1 + DOMAINS_MAX:
            key, self._judged_version = self.constraints[0].topology_key, self._version()
            by_domain.tell(self._cluster.nodes.label_column(key), self._judged[0])
            return True
        by_domain.column = None
        return False

    def _judge(self, index: int) -> None:
        """int32[D]: the code of each domain."""
        counts, least = self._counts(index)
        codes = (counts > self._allowed(index, least)).astype(np.int32) * CODE_SKEWED
        codes[0] = CODE_NO_LABEL
        self._judged.append(codes)
        self._least.append(least)

    def _counts(self, index: int) -> tuple[I64, int]:
        """int64[D] pods by domain, and the number they are compared with."""
        domains: Domains = self.domains(index)
        counts = domains.counts(self.counter(index))
        is_enough = domains.count >= max(self.constraints[index].min_domains, 1)
        return counts, domains.least(counts) if is_enough else 0

    def _allowed(self, index: int, least: int) -> int:
        constraint, own = self.constraints[index], self._self_matches.get(index)
        if own is None:
            own = self._self_matches[index] = int(constraint.matches(self._labels))
        return constraint.max_skew + least - own
