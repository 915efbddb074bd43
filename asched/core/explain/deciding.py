"""Deciding on supposition: would this pod fit, were it or a node a little different?

A runner of its own, whose cached results go with it, over the same columns: what is supposed of the
pod touches nothing, and what is supposed of a node undoes itself. Extenders are not asked.

Bounds  DECISIONS_MAX decisions and STEPS_MAX steps of the cluster's budget; then OutOfTurn.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.runner import Runner
from asched.core.framework.status import Status
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.state.budget import OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo

Mask = npt.NDArray[np.bool_]

#: Some 0.3 ms each at 5,000 nodes, measured: a tenth of a second.
DECISIONS_MAX: Final = 400
STEPS_MAX: Final = 20_000


class Deciding:
    """One pod, and the decisions about it that are only supposed."""

    def __init__(self, runner: Runner, nominator: Nominator, pod: Pod) -> None:
        self.cluster: Cluster = runner.cluster
        self.pod = pod
        self._runner = Runner(runner.profile, runner.cluster, nominator)
        self._left = DECISIONS_MAX

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.classes.info_of(pod)

    def rows(self, pod: Pod | None = None) -> Mask:
        """bool[N]: where the pod, or another in its place, fits. Raises OutOfTurn."""
        self._left -= 1
        if self._left < 0:
            raise OutOfTurn("too many decisions")
        info = self.info(pod or self.pod)
        state = self._runner.cache.state_of(info)
        if state.update(info).rejection is not None:
            return np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        fits = state.feasible.copy()
        fits[self._runner.nominated_pods.refused(info, state).rows] = False
        return fits

    def fits(self, pod: Pod | None = None) -> bool:
        return bool(self.rows(pod).any())

    def fits_on(self, row: int) -> bool:
        """Whether the pod fits a row as the columns stand in a trial."""
        return self.status_on(row) is None

    def status_on(self, row: int) -> Status | None:
        """Why it does not; None if it does."""
        self._left -= 1
        if self._left < 0:
            raise OutOfTurn("too many decisions")
        info = self.info(self.pod)
        state = self._runner.cache.state_of(info)
        state.update(info)
        return self._runner.nominated_pods.status_with(info, state, row)

    def refusals(self, stays: Callable[[str, int | None], bool]) -> Mask:
        """bool[N]: live rows refused by some filter of which `stays` (its name, the aspects it
        depends on) holds; rows that PreFilter left out among them.
        """
        info = self.info(self.pod)
        self.rows()
        state = self._runner.cache.state_of(info)
        nodes = self.cluster.nodes
        refused: Mask = ~nodes.columns.read("live")[: nodes.height]
        if state.outcome.rejection is not None:
            return np.ones(nodes.height, dtype=np.bool_)
        if state.outcome.rows is not None:
            outside = np.ones(nodes.height, dtype=np.bool_)
            outside[list(state.outcome.rows)] = False
            refused |= outside
        for verdict in state.active:
            if stays(verdict.plugin.name, verdict.plugin.depends_on):
                refused |= verdict.codes[: nodes.height] != 0
        return refused

    @contextmanager
    def supposing(self, node: Node) -> Iterator[int]:
        """As if a node were this one, or were there at all, until the block ends: its row."""
        before = self.cluster.node_of(node.name)
        self.cluster.apply(Seen(NODE, node))
        try:
            yield self.cluster.nodes.row_of[node.name]
        finally:
            undo = Gone(NODE, node) if before is None else Seen(NODE, before)
            self.cluster.apply(undo)

    @contextmanager
    def within_budget(self) -> Iterator[None]:
        """What takes long is counted, and ends in OutOfTurn."""
        budget = self.cluster.budget
        budget.open(STEPS_MAX)
        try:
            yield
        finally:
            budget.close()


def smallest(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest of low..high for which something holds that holds for all above; None if not
    even for `high`.
    """
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
