"""Filters and scorers whose first half is not enabled: most end the attempt in an error.

A configuration may disable a plugin at preFilter or preScore alone. Where upstream's plugin then
looks for what it prepared, it finds nothing, and says so on every node that gets that far.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
"""

import numpy as np

from asched.core.framework.points import Codes, FilterPlugin, ScorePlugin
from asched.core.framework.status import PointError, Status, failure
from asched.core.state.nodes import Aspect
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView


class Unprepared(FilterPlugin):
    """Stands for a filter that cannot do without its PreFilter."""

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
    """Raises PointError for a scorer that cannot do without its PreScore."""
    if plugin.without_pre_score:
        text = f'plugin "{plugin.name}" failed with: {plugin.without_pre_score}'
        raise PointError(f"running Score plugins: {text}")
