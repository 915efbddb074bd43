"""Where one pod fits now: the filters of an attempt, with regard to promised room.

    Runner.dry_run(pod) ─> FilterDryRun   rows on which the pod fits, really or by supposition;
                                          one row filtered again, within a supposition about it

Cached results are updated, so that a following attempt can use them. Nothing is scored, reserved or
written, and extenders are not called. It is valid until the cluster changes.
"""

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.placements import Mask, narrowed
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import (
    NONE_REFUSED,
    NominatedPods,
    RefusedRows,
    first_rejection,
)
from asched.core.framework.status import Status
from asched.core.model.derived import derived


class FilterDryRun:
    """Where a pod fits. `state` is that of its class, up to date."""

    def __init__(
        self, pod: PodInfo, state: ClassState, cluster: Cluster, nominated_pods: NominatedPods
    ) -> None:
        self.pod = pod
        self.state = state
        self._cluster = cluster
        self._nominated_pods = nominated_pods

    @property
    def rejection(self) -> Status | None:
        """PreFilter's rejection of all nodes."""
        return self.state.outcome.rejection

    @derived
    def refused(self) -> RefusedRows:
        """Rows on which room is promised to other pods."""
        if self.rejection is not None:
            return NONE_REFUSED
        return self._nominated_pods.refused(self.pod, self.state)

    def in_words(self) -> dict[int, Status]:
        """Row -> status of these rows."""
        if self.rejection is not None:
            return {}
        return self._nominated_pods.statuses(self.pod, self.state)

    @property
    def count(self) -> int:
        """The number of rows on which it fits."""
        if self.rejection is not None:
            return 0
        return self.state.feasible_count - len(self.refused.rows)

    def rows(self, within: Mask | None = None) -> Mask:
        """bool[N]: where it fits."""
        if self.rejection is not None:
            return np.zeros(self._cluster.nodes.height, dtype=np.bool_)
        fits = narrowed(self.state.feasible, within)
        fits[self.refused.rows] = False
        return fits

    def status_on(self, row: int, *, counts_nominated: bool = True) -> Status | None:
        """Why the pod does not fit on this row, filtered again; None if it fits."""
        outcome = self.state.outcome
        if outcome.rejection is not None:
            return outcome.rejection
        if outcome.rows is not None and row not in outcome.rows:
            return outcome.absent
        if counts_nominated:
            return self._nominated_pods.status_with(self.pod, self.state, row)
        return first_rejection(self.pod, self.state, self._cluster, row)
