"""Hypothetical decisions: would a pod fit if the pod or a node were different?

They use a runner with its own cached results over the same columns. Changes of the pod affect
nothing else, and changes of the cluster are undone (`Cluster.supposing`). Extenders are not called.

Bounds  DECISIONS_MAX decisions and STEPS_MAX steps of the cluster's budget within one block of
        `within_budget`; then OutOfTurn.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.supposition import Supposition
from asched.core.framework.dry_run import FilterDryRun
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError, Status
from asched.core.model.node import Node
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

    def node(self, row: int) -> Node:
        """The node of a live row."""
        node = self.cluster.nodes.node_at[row]
        assert node is not None
        return node

    def rows(self, pod: Pod | None = None) -> Mask:
        """bool[N]: rows where the pod, or the given pod, fits. Raises OutOfTurn."""
        return self._dry_run(pod or self.pod).rows()

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

    def smallest(self, low: int, high: int, change: Callable[[Pod, int], Pod]) -> int | None:
        """The smallest number of low..high by which a change of the pods lets the pod fit."""
        return smallest(low, high, lambda number: self.fits(lambda pod: change(pod, number)))

    def status_on(self, row: int) -> Status | None:
        """Why the pod does not fit on a row; None if it does."""
        return self._dry_run(self.pod).status_on(row)

    def takes(self, pods: Iterable[Pod], most: int = 0) -> int:
        """How many of the pods find a node, one after the other, up to `most` if given. All of them
        are removed again.
        """
        with self.cluster.supposing() as suppose:
            return self.place(suppose, pods, most)[0]

    def place(
        self, suppose: Supposition, pods: Iterable[Pod], most: int = 0
    ) -> tuple[int, Pod | None]:
        """As `takes`, but the pods stay as long as the supposition; and the first that found no
        node.
        """
        count, rest = 0, None
        for pod in pods:
            if count == most > 0:
                break
            rows = self._dry_run(pod).rows()
            row = int(rows.argmax())
            if not rows[row]:
                rest = rest or pod
                continue
            suppose.placed(self.info(pod), self.node(row).name)
            count += 1
        return count, rest

    def reasons(self, pod: Pod) -> list[dict[str, Any]]:
        """Why each node rejects a pod that fits nowhere."""
        tried = self._dry_run(pod)
        rejection = self._runner.rejection(tried.pod, tried.state, tried.in_words())
        return [
            {"plugin": plugin, "code": code, "reason": reason, "nodes": count}
            for plugin, code, reason, count in rejection.summary()
        ]

    def refusals(self, stays: Callable[[str, int | None], bool]) -> Mask:
        """bool[N]: live rows that a filter rejects for which `stays` (name, aspects it depends on)
        is true, or that PreFilter left out.
        """
        state = self._dry_run(self.pod).state
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

    def _dry_run(self, pod: Pod) -> FilterDryRun:
        self._left -= 1
        if self._left < 0:
            raise OutOfTurn("too many decisions")
        return self._runner.dry_run(self.info(pod))

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


def against(
    runner: Runner, nominator: Nominator, pod: Pod, node: str, chosen: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The case against a node: whether it would take the pod now if the pod were not placed, and
    its score, if it was among the best nodes at their last record. `chosen`: the decision as JSON
    (`RecordedChoice`).
    """
    found: dict[str, Any] = {"node": node}
    cluster = runner.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return {**found, "refused": "there is no such node now"}
    deciding = Deciding(runner, nominator, pod.on(""))
    placed = cluster.placed.get(pod.uid)
    try:
        with deciding.within_budget(), cluster.supposing() as suppose:
            suppose.without(() if placed is None else (placed,))
            status = deciding.status_on(row)
    except (OutOfTurn, PointError) as error:
        return {**found, "refused": str(error)}
    if status is not None:
        found["refused"] = f"{status.plugin}: {', '.join(status.reasons)}"
    best = (chosen or {}).get("best", ())
    found["scored"] = next((scored for scored in best if scored["node"] == node), None)
    if found["scored"] is None and best:
        found["below"] = best[-1]["score"]
    return found
