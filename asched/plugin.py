"""What a plugin author imports, and nothing else: the stable public face.

A plain class with methods named like Kubernetes' extension points needs nothing from here; see
`docs/plugins.md`. This module offers, for those who want more:

    answers    Status and its makers, Nomination
    views      Node and Pod, for type hints
    waking     Registration, Trigger, Action, Hint, Concerns: which changes may help a rejected pod
    effects    what a late point may yield: Patch, Create, Delete, DeletePod, Bind, EmitEvent
    columns    the bases for plugins that judge all nodes at once, with NumPy; ByRow for what they
               keep of each
    logger     lines that come out in the scheduler's log
"""

import logging

from asched.core.framework import points as _points
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    EmitEvent,
    Patch,
    PodRef,
)
from asched.core.framework.per_node.views import Node, Pod
from asched.core.framework.placements import (
    Assignments,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from asched.core.framework.points import (
    BindPlugin,
    Concerns,
    FilterPlugin,
    Hint,
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
    Registration,
    ReservePlugin,
)
from asched.core.framework.results.by_row import ByRow
from asched.core.framework.scaling import default_normalize
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
from asched.core.framework.trial import Trial
from asched.core.model import kinds
from asched.core.state.changes import Action, Trigger
from asched.core.state.cluster import Cluster
from asched.core.state.counters import CounterKey
from asched.core.state.facts import Bound, Done, Refused, Unknown
from asched.core.state.nodes import Aspect
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView


class ScorePlugin(_points.ScorePlugin):
    """A scorer over columns whose final scores are checked: outside 0..100 the attempt fails."""

    is_checked = True


def logger(name: str) -> logging.Logger:
    """A logger whose lines appear among the scheduler's own, as text or JSON; `extra={"v": 4}`
    shows a line from `-v4` on.
    """
    return logging.getLogger(f"asched.plugins.{name}")


__all__ = [
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
    "Concerns",
    "CounterKey",
    "Create",
    "Delete",
    "DeletePod",
    "Done",
    "Effect",
    "EmitEvent",
    "FilterPlugin",
    "Hint",
    "Late",
    "Node",
    "NodeView",
    "Nomination",
    "Patch",
    "PermitPlugin",
    "Placement",
    "PlacementGeneratePlugin",
    "PlacementScorePlugin",
    "Plugin",
    "Pod",
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
    "ScorePlugin",
    "Status",
    "Trial",
    "Trigger",
    "Unknown",
    "default_normalize",
    "failure",
    "kinds",
    "logger",
    "pending",
    "unresolvable",
    "unschedulable",
]
