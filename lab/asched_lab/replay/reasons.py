"""Why a replayed decision chose another node than the recorded one."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cycle.attempt import Attempt
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.runner import Decision


class Why(NamedTuple):
    """`is_tie`: both nodes score the same, and the tie was drawn."""

    is_tie: bool
    text: str


class Reasons:
    """Observes each decision. `recorded`: the nodes that pods were bound to, by uid."""

    def __init__(self, cluster: Cluster, recorded: Mapping[str, Collection[str]]) -> None:
        self._cluster = cluster
        self._recorded = recorded
        self._found: dict[tuple[str, str], Why] = {}

    def of(self, uid: str, node: str) -> Why | None:
        """Why the last decision for a pod chose another node than this one."""
        return self._found.get((uid, node))

    def observe(self, attempt: Attempt, decision: Decision) -> None:
        uid = attempt.pod.uid
        for node in self._recorded.get(uid, ()):
            if node != decision.node:
                self._found[uid, node] = self._why(attempt, decision, node)

    def _why(self, attempt: Attempt, decision: Decision, node: str) -> Why:
        state = decision.state
        row = self._cluster.nodes.row_of.get(node)
        if row is None:
            return Why(False, f"there is no node {node}")
        if not state.mask.has(row):
            owners, codes, plugins = state.rejectors()
            if owners[row]:
                plugin = plugins[owners[row] - 1]
                status = plugin.explain(attempt.info, int(codes[row]))
                return Why(False, f"{node} is refused by {plugin.name}: {status.message}")
            return Why(False, f"{node} is not among the nodes that were filtered")
        if decision.score is None:
            return Why(False, f"{decision.node} was the only node left")
        totals = state.ranking.totals
        if row >= len(totals) or totals[row] == NOT_FEASIBLE:
            return Why(False, f"{node} was not ranked")
        theirs, ours = int(totals[row]), decision.score
        if theirs == ours:
            return Why(True, f"both score {ours}")
        names, mine = state.ranking.points_of(decision.row)
        _, other = state.ranking.points_of(row)
        weighted = np.asarray(mine)[1::2] - np.asarray(other)[1::2]
        parts = [
            f"{plugin} {mine[2 * at + 1]} against {other[2 * at + 1]}"
            for at, (plugin, _) in enumerate(names)
            if weighted[at]
        ]
        text = f"{decision.node} scores {ours}, {node} {theirs}"
        return Why(False, f"{text} ({', '.join(parts)})" if parts else text)
