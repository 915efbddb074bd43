"""Asks a plugin what the cycle would ask it, about any view of a cluster."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import (
    CachedPlugin,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from asched.core.framework.profile import Factory
from asched.core.framework.status import Code
from asched.core.plugins import IN_TREE
from tests.support import plugins_along


def _with_args(make: Factory, needed: Any, args: Any, cluster: Cluster) -> Plugin:
    return make(needed if args is None else args, cluster)


#: Args of those that cannot do without.
ARGS: Mapping[str, Any] = {"NetworkTopology": {"levels": ["zone"]}}
#: Every plugin there is: those in the tree, and those that come along in the form users have.
MAKERS: Mapping[str, Factory] = {
    **IN_TREE,
    **{
        name: partial(_with_args, plugin.make, ARGS.get(name))
        for name, plugin in plugins_along().plugins.items()
    },
}
FILTERS = [n for n, make in MAKERS.items() if isinstance(make(None, Cluster()), FilterPlugin)]
SCORERS = [n for n, make in MAKERS.items() if isinstance(make(None, Cluster()), ScorePlugin)]


@dataclass
class Answer:
    """Codes or scores by row, or what PreFilter or PreScore said in place of them."""

    said: PreFilterResult
    values: npt.NDArray[Any] | None = None
    stamp: Hashable = field(default=0)
    logged: int = field(default=0)  # of `said.moved`, then

    def __post_init__(self) -> None:
        self.logged = 0 if self.said.moved is None else self.said.moved.end

    def moved_rows(self) -> set[int] | None:
        """Rows that are said to have another answer since, whatever happened to them; None: all."""
        if self.said.moved is None:
            return set()
        rows = self.said.moved.rows(self.logged, ALL_ASPECTS)
        return None if rows is None else set(rows)


def codes(plugin: FilterPlugin, pod: PodInfo, view: NodeView) -> Answer:
    """The filter's codes; None if the plugin leaves itself out or rejects the pod as a whole."""
    said = plugin.pre_filter(pod) if isinstance(plugin, PreFilterPlugin) else PreFilterResult()
    if not said.status.is_success:
        return Answer(said, stamp=plugin.stamp(pod, said.data))
    return Answer(said, plugin.filter(pod, view, said.data), plugin.stamp(pod, said.data))


def scores(plugin: ScorePlugin, pod: PodInfo, cluster: Cluster, view: NodeView) -> Answer:
    """Raw scores of the view's rows, with all live nodes feasible."""
    said = PreFilterResult()
    if isinstance(plugin, FilterPlugin) and isinstance(plugin, PreFilterPlugin):
        codes(plugin, pod, NodeView(cluster.nodes))  # as in a cycle, the filter comes first
    if isinstance(plugin, PreScorePlugin):
        whole = NodeView(cluster.nodes)
        said = plugin.pre_score(pod, whole, whole.live)
    stamp = plugin.stamp(pod, said.data)
    if said.status.code is Code.SKIP:
        return Answer(said, stamp=stamp)
    return Answer(said, plugin.score(pod, view, said.data), stamp)


def kinds_epoch(plugin: CachedPlugin, cluster: Cluster) -> int:
    return sum(map(cluster.epoch_of, plugin.kinds))


def live_rows(cluster: Cluster) -> npt.NDArray[np.int32]:
    return np.flatnonzero(NodeView(cluster.nodes).live).astype(np.int32)
