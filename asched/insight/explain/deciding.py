"""Hypothetical decisions: would a pod fit if the pod or a node were different?

They use a runner with its own cached results over the same columns. Changes of the pod affect
nothing else, and changes of the cluster are undone (`Cluster.supposing`). Extenders are not called.

Bounds  DECISIONS_MAX decisions and STEPS_MAX steps of the cluster's budget within one block of
        `within_budget`; then OutOfTurn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.framework.fitting import Fitting
from asched.core.framework.runner import Runner
from asched.core.framework.status import Status
from asched.core.model.pod import Pod

Mask = npt.NDArray[np.bool_]

#: Some 0.3 ms each at 5,000 nodes, measured: a tenth of a second.
DECISIONS_MAX: Final = 400
STEPS_MAX: Final = 20_000


class Deciding:
    """Hypothetical decisions about one pod.

    `gang`: the other waiting pods of its group; `needed` pods, itself included, must find places
    for any to be placed. Then the pod fits if they do, tried one after the other.
    """

    def __init__(
        self,
        runner: Runner,
        nominator: Nominator,
        pod: Pod,
        gang: Sequence[Pod] = (),
        needed: int = 1,
    ) -> None:
        self.cluster: Cluster = runner.cluster
        self.pod = pod
        self.needed = needed
        self._gang = gang
        self._runner = Runner(runner.profile, runner.cluster, nominator)
        self._left = 0

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.classes.info_of(pod)

    def rows(self, pod: Pod | None = None) -> Mask:
        """bool[N]: rows where the pod, or the given pod, fits. Raises OutOfTurn."""
        return self._fitting(pod or self.pod).rows()

    @property
    def is_gang(self) -> bool:
        return self.needed > 1

    def fits(self, change: Callable[[Pod], Pod] | None = None) -> bool:
        """Whether the pod fits, or its gang does, with a change of each pod."""
        pods = [self.pod, *self._gang] if self.is_gang else [self.pod]
        changed = pods if change is None else [change(pod) for pod in pods]
        if self.is_gang:
            return self.takes(changed, self.needed) >= self.needed
        return bool(self.rows(changed[0]).any())

    def fits_on(self, row: int) -> bool:
        """Whether the pod fits on a row, within a hypothetical change."""
        return self.status_on(row) is None

    def status_on(self, row: int) -> Status | None:
        """Why the pod does not fit on a row; None if it does."""
        return self._fitting(self.pod).status_on(row)

    def takes(self, pods: Iterable[Pod], most: int = 0) -> int:
        """How many of the pods find a node, one after the other, up to `most` if given. All of them
        are removed again.
        """
        count = 0
        with self.cluster.supposing() as suppose:
            for pod in pods:
                if count == most > 0:
                    break
                rows = self._fitting(pod).rows()
                row = int(rows.argmax())
                if not rows[row]:
                    continue
                node = self.cluster.nodes.node_at[row]
                assert node is not None
                suppose.placed(self.info(pod), node.name)
                count += 1
        return count

    def refusals(self, stays: Callable[[str, int | None], bool]) -> Mask:
        """bool[N]: live rows that a filter rejects for which `stays` (name, aspects it depends on)
        is true, or that PreFilter left out.
        """
        state = self._fitting(self.pod).state
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

    def _fitting(self, pod: Pod) -> Fitting:
        self._left -= 1
        if self._left < 0:
            raise OutOfTurn("too many decisions")
        return self._runner.fitting(self.info(pod))

    @contextmanager
    def within_budget(self) -> Iterator[None]:
        """Run a block with a new budget; raises OutOfTurn once it is used up."""
        budget, self._left = self.cluster.budget, DECISIONS_MAX
        budget.open(STEPS_MAX)
        try:
            yield
        finally:
            budget.close()


def smallest(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number of low..high for which `holds` is true, by bisection; None if it is false
    for `high`.
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
