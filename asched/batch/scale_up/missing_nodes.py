"""Find out how many new nodes a gang lacks, by its profile's own rules.

    room on existing nodes ─> a supposed node of a shape, filled ─> another one ─> ... ─> all fit

The gang's pods are placed one by one, as in any trial of a group, and their places given back.
Nodes that do not exist are a supposition: whenever the trial pauses, they are removed before other
pods have their turn. One shape serves all pods without room on existing nodes, because
cluster-autoscaler adds nodes of one node group for a request.

Equal pods are not tried on a node that rejected one of them.

Bounds  PODS_MAX pods, TRIES_MAX trials of a pod.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

import numpy as np

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.cycle import tries_placements
from asched.batch.groups.trial import TRY_STEPS, let_go, released, seen, try_member
from asched.batch.groups.trial_without import without
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing
from asched.core.cluster.supposition import Supposition
from asched.core.config.args import NodeShape
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.freed_places import notify_of_freed
from asched.core.framework.effects import Effect
from asched.core.model.kinds import NODE
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node, NodeSpec, NodeStatus
from asched.core.model.pod import Pod
from asched.core.model.requests import PODS
from asched.core.model.taint import Taint

PODS_MAX: Final = 5_000
TRIES_MAX: Final = 20_000
#: Budget steps to suppose a node, or to undo it, and for each pod there.
NODE_STEPS: Final = 10
POD_STEPS: Final = 2
HOSTNAME: Final = "kubernetes.io/hostname"
#: The kubelet's own limit of pods, for shapes that name none.
PODS_OF_NODE: Final = "110"


def find_missing_nodes(
    context: SchedulerContext, attempts: Sequence[Attempt], shapes: Sequence[NodeShape]
) -> Generator[Effect, Answer, "ShapeTrial | str"]:
    """The trial of the first shape that takes all pods, or else the minimum. Otherwise the text why
    no shape does; empty if that is not known. No pod may have a place.
    """
    popped = attempts[0]
    key = popped.queued.gang
    needed = count_missing(context.cluster, key)
    if not 0 < needed <= len(attempts) <= PODS_MAX:
        return ""
    if any(attempt.consults or attempt.pod.spec.resource_claims for attempt in attempts):
        return ""
    group = GroupAttempt(popped, list(attempts), key)
    if tries_placements(context, group):  # new nodes may be in none of them
        return ""
    search = _search(context, group, shapes, needed)
    found = yield from seen(group, released(context, group, search))
    yield from notify_of_freed(context, group.freed)
    return found


def _search(
    context: SchedulerContext, group: GroupAttempt, shapes: Sequence[NodeShape], needed: int
) -> Generator[Effect, Answer, "ShapeTrial | str"]:
    fallback, tries, small = None, 0, list[str]()
    for shape in shapes:
        trial = ShapeTrial(context, group, shape, tries)
        yield from without(
            context.cluster, (), trial.steps(), trial.suppose_again, trial.node_steps
        )
        tries = trial.tries
        if trial.has_failed:
            continue
        if len(trial.pods) < needed:
            small.append(f"{len(trial.pods)} with {shape.name} ({trial.limit})")
        elif trial.nodes and len(trial.pods) == len(group.attempts):
            return trial
        elif trial.nodes and fallback is None:
            fallback = trial
    if fallback is not None:
        return fallback
    if len(small) < len(shapes):
        return ""
    return f"; no shape of new nodes helps the gang: of {needed} pods fit {', '.join(small)}"


class ShapeTrial:
    """The trial of a group with new nodes of one shape: `nodes` took a pod, and with the existing
    nodes have room for all `pods`.
    """

    def __init__(
        self, context: SchedulerContext, group: GroupAttempt, shape: NodeShape, tries: int
    ) -> None:
        self._context, self._group, self.shape = context, group, shape
        self._suppose: Supposition | None = None
        self.nodes: list[Node] = []
        self.pods: list[Pod] = []
        self.tries = tries
        self.has_failed = False
        self.limit = ""  # why another node takes no pod

    def node_steps(self) -> float:
        """The budget steps to suppose one of the nodes so far with its pods, on average."""
        placed = len(self._group.outcome.tried) if self._group.outcome else 0
        return NODE_STEPS + POD_STEPS * placed / max(len(self.nodes), 1)

    def suppose_again(self, suppose: Supposition) -> Iterator[float]:
        """Suppose all nodes so far; yields the cost of each before it."""
        self._suppose, steps = suppose, self.node_steps()
        for node in self.nodes:
            yield steps
            suppose.seen(NODE, node)

    def steps(self) -> Generator[Effect, Answer, GroupOutcome]:
        """Place as many pods as possible, then give all places back."""
        context, group = self._context, self._group
        outcome = group.outcome = GroupOutcome(Result.UNSCHEDULABLE, "")
        waiting = yield from self._fill(outcome, group.attempts, None)
        while waiting and len(self.nodes) < self.shape.max_nodes and not self.has_failed:
            node = _node(self.shape, len(self.nodes))
            self.nodes.append(node)
            context.cluster.budget.note(NODE_STEPS)
            assert self._suppose is not None
            self._suppose.seen(NODE, node)
            unplaced = yield from self._fill(outcome, waiting, node.name)
            if len(unplaced) == len(waiting):  # another one would take none of them either
                self.nodes.pop()
                break
            waiting = unplaced
        if len(self.nodes) == self.shape.max_nodes:
            self.limit = f"maxNodes {len(self.nodes)}"
        self.pods = [tried.attempt.pod for tried in outcome.tried]
        yield from let_go(context, group, outcome)
        supposed = {node.name for node in self.nodes}
        for number, (_, freed) in tuple(group.freed.nodes.items()):
            freed.difference_update(supposed)
            if not freed:
                del group.freed.nodes[number]
        return outcome

    def _fill(
        self, outcome: GroupOutcome, waiting: Sequence[Attempt], name: str | None
    ) -> Generator[Effect, Answer, list[Attempt]]:
        """Place pods on a supposed node, or on existing nodes; returns the others."""
        context, group = self._context, self._group
        unplaced, rejected = [], set[tuple[int, int]]()
        for attempt in waiting:
            equals = attempt.info.cls.number, attempt.pod.priority
            if equals in rejected or self.has_failed:
                unplaced.append(attempt)
                continue
            yield from context.pause_if_due(TRY_STEPS)
            nodes = context.cluster.nodes  # whose rows may change in a pause
            within = None if name is None else np.arange(nodes.height) == nodes.row_of[name]
            tried = yield from try_member(context, group, attempt, within, {})
            self.tries += 1
            self.has_failed |= self.tries >= TRIES_MAX
            if tried.decision is not None:
                outcome.tried.append(tried)
                continue
            assert tried.failure is not None
            self.has_failed |= tried.failure.is_error
            rejected.add(equals)
            unplaced.append(attempt)
            rejection = tried.failure.rejection
            if name is not None and rejection is not None:
                status = rejection.status_at(nodes.row_of[name])
                self.limit = status.message if status is not None else ""
        return unplaced


def _node(shape: NodeShape, number: int) -> Node:
    name = f"{shape.name}:{number}"  # no name of a real node has a colon
    taints = tuple([Taint(taint.key, taint.value, taint.effect) for taint in shape.taints])
    return Node(
        ObjectMeta(name=name, uid=name, labels={**(shape.labels or {}), HOSTNAME: name}),
        NodeSpec(taints=taints or None),
        NodeStatus(allocatable={PODS: PODS_OF_NODE, **(shape.allocatable or {})}),
    )
