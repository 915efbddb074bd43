"""A machine whose plugins are slow, with a clock that they advance."""

from typing import Any

import numpy as np

from asched.core.cluster.budget import SLICE_STEPS, Budget
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Codes, FilterPlugin
from tests.builders import a_node
from tests.playbook import Play


class Slow(FilterPlugin):
    """Takes `parts` slices for pods that are labelled so, and keeps what it has done."""

    name = "Slow"
    budget: Budget
    parts = 10
    watch = None

    def __init__(self) -> None:
        self.done = 0

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        while "slow" in pod.pod.labels and self.done < self.parts:
            self.budget.charge(SLICE_STEPS, "it is slow")
            if self.watch is not None:
                self.watch.slice()
            self.done += 1
        return np.zeros(nodes.size, dtype=np.int32)


def a_play(parts: int = 10, nodes: int = 1) -> Play:
    cls = type("Slow", (Slow,), {"parts": parts})
    play = Play(*(a_node(f"n{i}") for i in range(nodes)), plugins=(cls,))
    cls.budget = play.parts.cluster.budget
    return play
