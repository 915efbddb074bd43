"""The public interface for plugin authors, all that a plugin needs to import.

`docs/stability.md` says which of its names are promised.

A plain class with methods named like Kubernetes' extension points needs nothing from here; see
`docs/plugins.md`. For everything beyond that, this module has:

    answers    Status and its makers, Nomination
    views      Node and Pod, for type hints
    waking     Registration, Trigger, Action, Hint, Concerns: which changes wake a rejected pod
    effects    what a late point may yield: Patch, Create, Delete, DeletePod, Bind, EmitEvent,
               WaitFor
    columns    the bases for plugins that evaluate all nodes at once, with NumPy; their results
               (I64, Codes, IDLE); PerClass for values derived from pods, ByRow for values cached
               by node, RowLog for other logs they follow; group_key and GroupPods
    args       qualified_name_faults: errors in the name of a resource or a label
    logger     log lines in the scheduler's log
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import CounterKey
from asched.core.cluster.facts import Bound, Done, Refused, Unknown
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pod_groups import COSCHEDULED, GroupPods, group_key, is_coscheduled
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.qualified import qualified_name_faults
from asched.core.framework import points as _points
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    EmitEvent,
    Patch,
    PodRef,
    WaitFor,
)
from asched.core.framework.normalization import default_normalize
from asched.core.framework.per_class import PerClass
from asched.core.framework.per_node.views import PluginNode as Node
from asched.core.framework.per_node.views import PluginPod as Pod
from asched.core.framework.placements import (
    Assignments,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from asched.core.framework.points import (
    I64,
    IDLE,
    BindPlugin,
    Codes,
    Late,
    Nomination,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
)
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Reason,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
)
from asched.core.model import kinds


class FilterPlugin(_points.FilterPlugin):
    """A filter over columns; `filter_one` may give the code of one row in plain integers."""

    def filter_one(self, pod: PodInfo, row: int, data: Any) -> int | None:  # noqa: ARG002
        return None  # use a view

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:
        return _one_by_one(self.filter_one, pod, rows, data)


class ScorePlugin(_points.ScorePlugin):
    """A scorer over columns whose final scores are checked: a score outside 0..100 fails the
    attempt. `score_one` may give the raw score of one row in plain integers.
    """

    is_checked = True

    def score_one(self, pod: PodInfo, row: int, data: Any) -> int | None:  # noqa: ARG002
        return None  # use a view

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:
        return _one_by_one(self.score_one, pod, rows, data)


def _one_by_one(
    rule: Callable[[PodInfo, int, Any], int | None], pod: PodInfo, rows: Sequence[int], data: Any
) -> list[int] | None:
    """The results of a rule for one row; None if it has none for any of them."""
    results = list[int]()
    for row in rows:
        result = rule(pod, row, data)
        if result is None:
            return None
        results.append(result)
    return results


def logger(name: str) -> logging.Logger:
    """A logger whose lines appear in the scheduler's log, as text or JSON; `extra={"v": 4}` hides a
    line below `-v4`.
    """
    return logging.getLogger(f"asched.plugins.{name}")


__all__ = [
    "COSCHEDULED",
    "I64",
    "IDLE",
    "SKIP",
    "SUCCESS",
    "Action",
    "Aspect",
    "Assignments",
    "Bind",
    "BindPlugin",
    "Bound",
    "ByRow",
    "Cluster",
    "Code",
    "Codes",
    "Concerns",
    "CounterKey",
    "Create",
    "Delete",
    "DeletePod",
    "Done",
    "Effect",
    "EmitEvent",
    "FilterPlugin",
    "GroupPods",
    "Hint",
    "Late",
    "Node",
    "NodeView",
    "Nomination",
    "Patch",
    "PerClass",
    "PermitPlugin",
    "Placement",
    "PlacementGeneratePlugin",
    "PlacementScorePlugin",
    "Plugin",
    "Pod",
    "PodClass",
    "PodInfo",
    "PodRef",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "Reason",
    "Refused",
    "Registration",
    "Rejection",
    "ReservePlugin",
    "RowLog",
    "Rows",
    "Scope",
    "ScorePlugin",
    "Status",
    "Trial",
    "Trigger",
    "Unknown",
    "WaitFor",
    "default_normalize",
    "failure",
    "group_key",
    "is_coscheduled",
    "kinds",
    "logger",
    "pending",
    "qualified_name_faults",
    "unresolvable",
    "unschedulable",
]
