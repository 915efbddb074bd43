"""Why a class fits nowhere. Equal pods that fail one after the other without a change in between
share one rejection: that of a thousand replicas is found by one pass over the nodes. A pod of
`asched_lab.measure.unfit` that no node has room for makes 328 calls; without, 372.

Bounds  the latest rejection is cached.
"""

from collections.abc import Hashable, Mapping

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.placements import Mask, Placement
from asched.core.framework.profile import Profile
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.active_plugins import up_to
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import NominatedPods
from asched.core.framework.results.pre_filter import not_satisfying
from asched.core.framework.status import Status


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
        first_rejector, codes, plugins = state.rejectors()
        all_speak = self._profile.always_check_all_filters
        explain = self._nominated_pods.explain
        explained = explain(pod, state, first_rejector, codes, in_place=not all_speak)
        looked_at = None
        outcome = state.outcome
        absent, overrides = outcome.absent, {**explained, **refused}
        if outcome.rows is not None:
            looked_at = np.zeros(nodes.height, dtype=np.bool_)
            looked_at[list(outcome.rows)] = True
            row = nodes.row_of.get(nominated_node)
            if row is not None:  # it is tried before PreFilter's node names apply
                looked_at[row] = True
                by = plugins[first_rejector[row] - 1].name if first_rejector[row] else ""
                by = overrides[row].plugin if row in overrides else by
                absent = not_satisfying({*outcome.plugins, by} - {""})
        made = Rejection(
            pod,
            plugins=plugins,
            first_rejector=first_rejector,
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
            first_rejector=empty,
            codes=empty,
            live=Placement("", within).mask(nodes),
            pre_filter=state.outcome.rejection,
            pre_filter_ran=up_to(self._profile.pre_filters, state.outcome.stopped_by),
            pre_filter_plugins=state.outcome.plugins,
        )
