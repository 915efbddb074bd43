"""The filter half: how far a pod would tip the balance between domains.

Rule    in each constraint, skew = pods in the node's domain + 1 if the pod itself would count
        - the smallest number in any domain; it must not exceed maxSkew. With fewer domains than
        minDomains the smallest number is 0. A node that is not counted has a domain of 0 pods,
        unless counted nodes share it. Constraints are asked in order, the first refusal tells.
Cost    each domain is judged once, then one gather over the rows.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from asched.core.framework.points import Codes
from asched.core.framework.status import Reason
from asched.core.plugins.pod_topology_spread.constraints import Constraints
from asched.core.plugins.pod_topology_spread.domains import Domains, DomainsMemory
from asched.core.plugins.pod_topology_spread.sides import Side
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodClass
from asched.core.state.view import NodeView

NO_LABEL: Final = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    resolvable=False,
)
SKEWED: Final = Reason("node(s) didn't match pod topology spread constraints", resolvable=True)

CODE_NO_LABEL: Final = 1
CODE_SKEWED: Final = 2


class HardSide(Side):
    """The hard constraints of a class of pods, with each domain judged for the newest counts."""

    __slots__ = ("_judged", "_judged_at", "_self_matches", "_told")

    def __init__(
        self, cluster: Cluster, memory: DomainsMemory, cls: PodClass, constraints: Constraints
    ) -> None:
        required = frozenset(constraint.topology_key for constraint in constraints)
        super().__init__(cluster, memory, cls, constraints, required)
        labels = cls.label_set.labels
        self._self_matches = [int(constraint.matches(labels)) for constraint in constraints]
        self._judged: list[Codes] = []
        self._judged_at: Hashable = None
        self._told: Hashable = None

    def find_reach(self) -> int:
        """Up to the first key that no node has: none gets past that."""
        is_carried = self._cluster.nodes.is_carried
        for index, constraint in enumerate(self.constraints):
            if not is_carried(constraint.topology_key):
                return index + 1
        return len(self.constraints)

    def stamp(self) -> Hashable:
        """The verdicts on all domains: counts may move and change none of them."""
        self._judge_anew()
        if self._told is None:
            self._told = tuple(judged.tobytes() for judged in self._judged)
        return self._told

    def codes(self, nodes: NodeView) -> Codes:
        """int32[M]: 0 fits, else the code of the first constraint that refuses the row."""
        self._judge_anew()
        codes: Codes | None = None
        reached = self.constraints[: self.reach]
        for constraint, judged in zip(reached, self._judged, strict=True):
            told = judged[nodes.label(constraint.topology_key)[0]]
            codes = told if codes is None else np.where(codes, codes, told)
        assert codes is not None, "a filter without hard constraints is skipped"
        return codes

    def _judge_anew(self) -> None:
        """Judge every domain again if counts or nodes have moved."""
        moved = self.moved()
        if moved != self._judged_at:
            self._judged = [self._judge(index) for index in range(self.reach)]
            self._judged_at = moved
            self._told = None

    def _judge(self, index: int) -> Codes:
        """int32[D]: the code of each domain."""
        constraint = self.constraints[index]
        domains: Domains = self.domains(index)
        counts = domains.counts(self.counter(index))
        least = domains.least(counts) if domains.count >= max(constraint.min_domains, 1) else 0
        allowed = constraint.max_skew + least - self._self_matches[index]
        codes = (counts > allowed).astype(np.int32) * CODE_SKEWED
        codes[0] = CODE_NO_LABEL
        return codes
