"""Filters and scorers whose PreFilter or PreScore is disabled: most fail the attempt.

A configuration may disable a plugin at preFilter or preScore only. Upstream's plugin then fails to
find its state and returns an error on every node that it is called for.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
"""

import numpy as np

from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Codes, FilterPlugin, ScorePlugin
from asched.core.framework.status import PointError, Status, failure


class Unprepared(FilterPlugin):
    """Replaces a filter that needs its PreFilter."""

    depends_on = Aspect.LIVE
    errors_from = 1

    def __init__(self, plugin: FilterPlugin) -> None:
        self.name = plugin.name  # type: ignore[misc]
        self._text = plugin.without_pre_filter

    def filter(self, pod: PodInfo, nodes: NodeView, data: object) -> Codes:  # noqa: ARG002
        return np.ones(nodes.size, dtype=np.int32)

    def explain(self, pod: PodInfo, code: int) -> Status:  # noqa: ARG002
        return failure(self._text)


def end_without_pre_score(plugin: ScorePlugin) -> None:
    """Raises PointError for a scorer that needs its PreScore."""
    if plugin.without_pre_score:
        text = f'plugin "{plugin.name}" failed with: {plugin.without_pre_score}'
        raise PointError(f"running Score plugins: {text}")
