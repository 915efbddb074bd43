"""Attempts of pod groups: notes, nominations, and a plugin that takes the first row."""

from typing import Any

import numpy as np

from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.effects import EmitEvent
from asched.core.framework.points import I64, ScorePlugin
from tests.playbook import Play, uid_of


def notes_of(play: Play) -> dict[str, str]:
    """Pod to what its last event says."""
    return {e.regarding.name: e.note for e in play.of(EmitEvent)}


def nominated(play: Play) -> dict[str, str | None]:
    return {name: play.parts.nominator.node_of(uid_of(name)) for name in ("a", "b", "c")}


class FirstRow(ScorePlugin):
    """Machines in the order in which they came: no ties, and nothing to normalise."""

    name = "FirstRow"
    depends_on = Aspect.LIVE

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        rows = np.arange(nodes.size, dtype=np.int64)
        return 100 - (rows if nodes.rows is None else nodes.rows)
