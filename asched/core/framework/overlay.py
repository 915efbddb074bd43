"""Nominated pods: a node must fit both with and without the pods that wait for it.

A pod that preempted others waits for its nominated node; until it is placed, pods of the same or
lower priority see it there already. So a row with such nominations is judged a second time with
them added (pass 1; the kept answers are pass 2), and pass 1 comes first: if it rejects, its words
count.

Only rows that are feasible without them need that for a decision; the others are judged again only
when a rejection must be explained. Many rows with ordinary nominated pods are judged in one go.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
        (RunFilterPluginsWithNominatedPods)
"""

from collections.abc import Mapping

import numpy as np

from asched.core.framework.classes import ClassState
from asched.core.framework.status import Status
from asched.core.state.cluster import Cluster
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView


class Overlay:
    """Judges rows with their nominated pods added, by trial."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator

    def judge(self, pod: PodInfo, state: ClassState) -> dict[int, Status]:
        """Feasible rows that are not feasible with their nominated pods: row to status."""
        rows = {
            row: infos
            for row, infos in self._rows(pod).items()
            if row < len(state.feasible) and state.feasible[row]
        }
        return self._try(pod, state, rows) if rows else {}

    def explain(self, pod: PodInfo, state: ClassState) -> dict[int, Status]:
        """What pass 1 says of every row with nominated pods, feasible or not."""
        rows = self._rows(pod)
        if state.outcome.rows is not None:
            rows = {row: infos for row, infos in rows.items() if row in state.outcome.rows}
        return self._try(pod, state, rows) if rows else {}

    def status_with(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """Both passes for one row, from scratch: under a trial, kept answers say nothing.

        None if it fits. Used where pods were taken away on trial (preemption).
        """
        added = self._rows(pod, only_row=row).get(row)
        if added:
            with self._cluster.with_pods(added, row):
                status = first_rejection(pod, state, self._cluster, row)
            if status is not None:
                return status
        return first_rejection(pod, state, self._cluster, row)

    def _rows(self, pod: PodInfo, only_row: int | None = None) -> Mapping[int, list[PodInfo]]:
        """Row to the nominated pods that count for this pod there."""
        found: dict[int, list[PodInfo]] = {}
        row_of = self._cluster.nodes.row_of
        for node, pods in self._nominator.nodes().items():
            row = row_of.get(node)
            if row is None or (only_row is not None and row != only_row):
                continue
            infos = [
                self._cluster.classes.info_of(other)
                for other in pods.values()
                if other.uid != pod.pod.uid
                and other.priority >= pod.pod.priority
                and other.uid not in self._cluster.placed
            ]
            if infos:
                found[row] = infos
        return found

    def _try(
        self, pod: PodInfo, state: ClassState, rows: Mapping[int, list[PodInfo]]
    ) -> dict[int, Status]:
        refused: dict[int, Status] = {}
        for row, infos in rows.items():
            with self._cluster.with_pods(infos, row):
                status = first_rejection(pod, state, self._cluster, row)
            if status is not None:
                refused[row] = status
        return refused


def first_rejection(pod: PodInfo, state: ClassState, cluster: Cluster, row: int) -> Status | None:
    """The first filter's rejection of a row as the columns stand now; None if all agree."""
    view = NodeView(cluster.nodes, np.array((row,), dtype=np.int32))
    for verdict in state.active:
        code = int(verdict.plugin.filter(pod, view, verdict.result.data)[0])
        if code:
            return verdict.plugin.explain(pod, code).by(verdict.plugin.name)
    return None
