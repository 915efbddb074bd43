"""The filter half of an attempt: where one pod fits, with regard to promised room.

    Runner.fitting(pod) ─> Fitting    rows on which the pod fits in the current or supposed state
                                      one row filtered from scratch, within a supposition about it

Cached results are updated, so that a following attempt can use them. Nothing is scored, reserved or
written, and extenders are not called. A Fitting is valid until the cluster changes.

Rejections say why a class fits nowhere. Equal pods that fail one after the other without a change
in between share one: the rejection of a thousand replicas is found by one pass over the nodes.

Bounds  the latest rejection is cached.
"""

from collections.abc import Hashable, Mapping

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.attempt import Rejection
from asched.core.framework.placements import Mask, Placement, narrowed
from asched.core.framework.profile import Profile
from asched.core.framework.results.active_plugins import up_to
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import (
    NONE_REFUSED,
    NominatedPods,
    RefusedRows,
    first_rejection,
)
from asched.core.framework.results.pre_filter import not_satisfying
from asched.core.framework.status import Status
from asched.core.framework.trial import Trial
from asched.core.model.derived import derived


class Fitting:
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
        return self._nominated_pods.judge(self.pod, self.state)

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

    def status_on(self, row: int, *, heeds_promises: bool = True) -> Status | None:
        """Why the pod does not fit on this row, filtered again; None if it fits."""
        outcome = self.state.outcome
        if outcome.rejection is not None:
            return outcome.rejection
        if outcome.rows is not None and row not in outcome.rows:
            return outcome.absent
        if heeds_promises:
            return self._nominated_pods.status_with(self.pod, self.state, row)
        return first_rejection(self.pod, self.state, self._cluster, row)


class CachedTrial(Trial, frozen=True, kw_only=True):
    """`state`: the verdicts of the pod's class."""

    state: ClassState
    nominated_pods: NominatedPods

    def status_of(self, pod: PodInfo, row: int) -> Status | None:
        return self.nominated_pods.status_with(pod, self.state, row)


def cached(trial: Trial) -> CachedTrial:
    """The trial as the framework made it; it makes no other kind."""
    assert isinstance(trial, CachedTrial)
    return trial


class Rejections:
    """The rejections of one profile."""

    def __init__(self, profile: Profile, cluster: Cluster, nominated_pods: NominatedPods) -> None:
        self._profile = profile
        self._cluster = cluster
        self._nominated_pods = nominated_pods
        self._pre_filter_names = frozenset(plugin.name for plugin in profile.pre_filters)
        self._latest: tuple[Hashable, Rejection] | None = None

    def of(
        self,
        pod: PodInfo,
        state: ClassState,
        nominated_node: str,
        refused: Mapping[int, Status],
        blamed: frozenset[str],
        within: Mask | None,
    ) -> Rejection:
        """As `Runner.rejection`; the state is up to date."""
        if state.outcome.rejection is not None:  # changed while an extender was called
            return self.of_pre_filter(pod, state, within)
        cluster, nodes = self._cluster, self._cluster.nodes
        key = None
        is_special = refused or blamed or nominated_node or self._nominated_pods.are_any
        if not is_special and within is None and state.holds:
            moved = cluster.epoch, cluster.counts, nodes.log.end, nodes.generation
            key = pod.cls.number, state.number, moved
            if self._latest is not None and self._latest[0] == key:
                return self._latest[1]
        judge, codes, plugins = state.judges()
        all_speak = self._profile.always_check_all_filters
        explain = self._nominated_pods.explain
        explained = explain(pod, state, judge, codes, in_place=not all_speak)
        looked_at = None
        outcome = state.outcome
        absent, overrides = outcome.absent, {**explained, **refused}
        if outcome.rows is not None:
            looked_at = np.zeros(nodes.height, dtype=np.bool_)
            looked_at[list(outcome.rows)] = True
            row = nodes.row_of.get(nominated_node)
            if row is not None:  # it is tried before PreFilter's node names apply
                looked_at[row] = True
                by = plugins[judge[row] - 1].name if judge[row] else ""
                by = overrides[row].plugin if row in overrides else by
                absent = not_satisfying({*outcome.plugins, by} - {""})
        made = Rejection(
            pod,
            plugins=plugins,
            judge=judge,
            codes=codes,
            live=Placement("", within).mask(nodes),
            looked_at=looked_at,
            absent=absent,
            pre_filter_ran=self._pre_filter_names,
            pre_filter_plugins=outcome.plugins | blamed,
            overrides=overrides,
            all_codes=[verdict.codes for verdict in state.active] if all_speak else None,
        )
        if key is not None:
            self._latest = key, made
        return made

    def of_pre_filter(self, pod: PodInfo, state: ClassState, within: Mask | None) -> Rejection:
        """PreFilter's rejection of all nodes."""
        nodes = self._cluster.nodes
        empty = np.zeros(nodes.height, dtype=np.int32)
        return Rejection(
            pod,
            plugins=(),
            judge=empty,
            codes=empty,
            live=Placement("", within).mask(nodes),
            pre_filter=state.outcome.rejection,
            pre_filter_ran=up_to(self._profile.pre_filters, state.outcome.stopped_by),
            pre_filter_plugins=state.outcome.plugins,
        )
