"""The supposed cluster of a search for a plan: pods that left, and pods on their new nodes.

Other pods never see it: before a pause all steps are undone, and made again afterwards. If a pod or
node of a step has changed meanwhile, the search ends (`ClusterMovedError`).
"""

from collections.abc import Generator
from typing import Final, NamedTuple

import msgspec

from asched import names
from asched.batch.backfill.reservations import CLONE
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.placements import Mask
from asched.core.framework.points import Scope
from asched.core.framework.runner import Runner
from asched.core.model.pod import Pod

#: Budget steps to make a step of the path and undo it, and to filter all rows for a pod. Measured.
STEP_STEPS: Final = 2.5
FILTER_STEPS: Final = 30


#: Labels that a pod gets from its node (admission plugin PodTopologyLabels).
COPIED: Final = (names.LABEL_ZONE, names.LABEL_REGION)


class ClusterMovedError(Exception):
    """What a plan relies on changed during a pause."""


class SpentError(Exception):
    """The search has used its steps."""


class PathStep(NamedTuple):
    """A pod that leaves a node, or comes to it."""

    info: PodInfo
    node: str
    leaves: bool


def clone_of(cluster: Cluster, info: PodInfo) -> PodInfo:
    """A future pod like this one: the pod of a unit, or the successor of a moved pod. Its class is
    that of a pod without a node: without the resources of a status, and without the labels that the
    API server copies from the node at the binding.
    """
    labels, node = info.pod.metadata.labels, cluster.node_of(info.node_name)
    if labels and node is not None:
        copied = {key for key in COPIED if labels.get(key) == node.labels.get(key)}
        labels = {key: value for key, value in labels.items() if key not in copied}
    metadata = msgspec.structs.replace(
        info.pod.metadata, uid=info.pod.uid + CLONE, labels=labels or None
    )
    spec = msgspec.structs.replace(info.pod.spec, node_name="")
    return cluster.classes.info_of(Pod(metadata, spec))


def is_by_node(runner: Runner, info: PodInfo) -> bool:
    """Whether only pods of a node decide whether a pod, whose class is prepared, fits there."""
    active = runner.cache.state_of(info).active
    return all(verdict.plugin.scope is Scope.NODE for verdict in active)


class Board:
    """`spent`: budget steps so far, of at most `most`."""

    def __init__(self, context: SchedulerContext, most: int) -> None:
        self._context = context
        self._cluster = context.cluster
        self._suppose = context.cluster.supposing()
        self._path: list[PathStep] = []
        self._generation = context.cluster.nodes.generation
        self.spent = 0.0
        self.most = most

    def leave(self, info: PodInfo) -> None:
        """Remove a placed pod."""
        self._do(PathStep(info, info.node_name, True))

    def come(self, info: PodInfo, node: str) -> None:
        """Place a pod without a node."""
        self._do(PathStep(info, node, False))

    def back(self) -> None:
        """Undo the last step."""
        self._path.pop()
        self._suppose.back()

    def clear(self) -> None:
        """Undo all steps."""
        self._path.clear()
        self._rest()

    def rows(
        self, runner: Runner, info: PodInfo, within: Mask | None = None
    ) -> Generator[Effect, Answer, Mask]:
        """bool[N]: where a pod fits now, by all filters. Raises SpentError, ClusterMovedError."""
        while True:
            yield from self.charge(FILTER_STEPS)
            try:
                return runner.dry_run(info).rows(within)
            except OutOfTurn:  # results so far are cached
                yield from self._pause()

    def charge(self, steps: float) -> Generator[Effect, Answer, None]:
        self.spent += steps
        if self.spent > self.most:
            raise SpentError
        if self._cluster.budget.is_used_up:
            yield from self._pause()
        self._cluster.budget.note(steps)

    def _pause(self) -> Generator[Effect, Answer, None]:
        self._rest()
        yield Pause()
        if self._cluster.nodes.generation != self._generation:
            raise ClusterMovedError
        path, self._path = self._path, []
        for step in path:
            self._do(step)

    def _rest(self) -> None:
        while len(self._suppose):
            self._suppose.back()
        self._cluster.is_supposed = False

    def _do(self, step: PathStep) -> None:
        cluster, info = self._cluster, step.info
        placed = cluster.placed.get(info.pod.uid)
        if step.leaves and (placed is not info or info.node_name != step.node):
            raise ClusterMovedError
        if not step.leaves and (placed is not None or step.node not in cluster.nodes.row_of):
            raise ClusterMovedError
        cluster.is_supposed = True
        self.spent += STEP_STEPS
        cluster.budget.note(STEP_STEPS)
        if step.leaves:
            self._suppose.without((info,))
        else:
            self._suppose.placed(info, step.node)
        self._path.append(step)
