"""PodGroupPodsCount: prefer placements that take more pods of a group.

Prefers   the placement that takes the most; pods that have places already count everywhere alike,
          so that differences shrink as a group fills.
Retry     nothing: it rejects no pod.
Cost      one lookup per placement.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podgrouppodscount
"""

from collections.abc import Sequence
from typing import Final

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.framework.placements import (
    MAX_SCORE,
    Assignments,
    PlacementScorePlugin,
    RepeatedPlacements,
)
from asched.core.framework.registrations import Registration
from asched.core.framework.status import Status, failure

NO_PODS_ASSIGNED: Final = failure(
    "no pods from pod group are assigned to any of the candidate placements"
)


class PodGroupPodsCount(PlacementScorePlugin):
    name = names.POD_GROUP_PODS_COUNT
    ignores_nodes = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registrations(self) -> Sequence[Registration]:
        return ()

    def score_placement(self, group: str, assignments: Assignments) -> int:
        return self._placed(group) + len(assignments.pods)

    def score_placements(self, group: str, candidates: Sequence[Assignments]) -> Sequence[int]:
        placed = self._placed(group)
        if isinstance(candidates, RepeatedPlacements):
            return [placed + len(candidates.pods)] * len(candidates)
        return [placed + len(assignments.pods) for assignments in candidates]

    def _placed(self, group: str) -> int:
        groups = self._cluster.pod_groups
        return sum([len(groups.get(leaf).placed) for leaf in groups.leaves_below(group)])

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        """Scale to the largest count, rounded down."""
        most = max(scores)
        return [score * MAX_SCORE // most for score in scores] if most else NO_PODS_ASSIGNED
