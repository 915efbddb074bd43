"""Rebuild the cluster as it was when a node was chosen, beside the running one.

    cluster now ──journal, back to the decision──> former objects ──> a cluster of its own
                                                                      └─> both nodes, rated

The result is checked against the stored decision: the chosen node must get the same score, and the
same number of nodes must fit. Extenders, sampling, promises to waiting pods and reservations are
not rebuilt; if one of them mattered, the check reports it.

Bounds  one at a time; SLICE objects between two turns of the scheduling loop, and its budget's
        slices for the rating.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.journal import JournalStep
from asched.core.config.merge import UnusableProfileError
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import scores_as_json
from asched.core.framework.profile import CannotBuildError
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.serve.view import slices

#: Some 30 µs each.
SLICE: Final = 64
FORGOTTEN: Final = "too many changes since then; the state cannot be rebuilt"
OTHERWISE: Final = (
    "the chosen node gets another score now: an extender, a promise to another pod, a reservation"
    " or another configuration mattered"
)
#: Errors of plugins that are created again.
FAILURES: Final[tuple[type[Exception], ...]] = (
    *(UnusableProfileError, CannotBuildError, PointError, OutOfTurn),
)

#: Creates the runners of the current configuration on another cluster; may raise FAILURES.
Rebuild = Callable[[Cluster], Mapping[str, Runner]]

Rating = dict[str, Any]


class Past:
    """Rebuilds one decision at a time."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._one_at_a_time = asyncio.Lock()

    async def against(
        self,
        rebuild: Rebuild,
        pod: Pod,
        node: str,
        chosen: Mapping[str, Any],
    ) -> Rating:
        """The rating of a node beside the chosen one. `chosen` is the decision in the form of
        `RecordedChoice.as_json`.
        """
        async with self._one_at_a_time:
            cluster = Cluster()
            then = await _as_it_was(self._context, chosen["position"])
            if then is None:
                return {"unknown": FORGOTTEN}
            await _build(cluster, then, pod)
            try:
                runner = rebuild(cluster).get(pod.spec.scheduler_name)
                if runner is None:
                    return {"unknown": f"there is no profile {pod.spec.scheduler_name} now"}
                judged = partial(_judged, runner, pod, node, chosen)
                return await slices.in_turns(cluster.budget, judged)
            except FAILURES as error:
                return {"unknown": str(error)}


class Then(NamedTuple):
    """All objects that rules read, as they were: nodes by name, placed pods by uid with their
    nodes, and all other kinds by key.
    """

    nodes: dict[str, Node]
    placed: dict[str, tuple[Pod, str]]
    others: dict[str, tuple[Kind, dict[str, Any]]]

    def before(self, step: JournalStep) -> None:
        """Undo a step."""
        known: dict[str, Any]
        before = step.before
        if step.kind is POD:
            known, before = self.placed, before and (before, step.node)
        elif step.kind is NODE:
            known = self.nodes
        else:
            _, known = self.others.setdefault(step.kind.resource, (step.kind, {}))
        if before is None:
            known.pop(step.key, None)
        else:
            known[step.key] = before


async def _as_it_was(context: SchedulerContext, position: int) -> Then | None:
    """The objects at a position of the journal; None if that was dropped. Changes during this read
    are steps of the journal and are undone at the end.
    """
    cluster, others = context.cluster, dict[str, tuple[Kind, dict[str, Any]]]()
    for kind in context.kinds:
        if kind not in (POD, NODE):
            others[kind.resource] = (kind, dict(cluster.all(kind)))
    then = Then({node.name: node for _, node in cluster.nodes.nodes()}, {}, others)
    async for some in slices.in_slices(list(cluster.placed.items())):
        then.placed.update((uid, (info.pod, info.node_name)) for uid, info in some)
    if not cluster.journal.remembers(position):
        return None
    steps = cluster.journal.since(position)
    while part := list(islice(steps, slices.SLICE)):
        for step in part:
            then.before(step)
        await asyncio.sleep(0)
    return then


async def _build(cluster: Cluster, then: Then, pod: Pod) -> None:
    """Add everything but the pod to a fresh cluster."""
    objects = [(kind, obj) for kind, known in then.others.values() for obj in known.values()]
    async for nodes in slices.in_slices(list(then.nodes.values()), SLICE):
        for node in nodes:
            cluster.apply(Seen(NODE, node))
    async for some in slices.in_slices(objects, SLICE):
        for kind, obj in some:
            cluster.apply(Seen(kind, obj))
    async for placed in slices.in_slices(list(then.placed.values()), SLICE):
        for placed_pod, where in placed:
            if placed_pod.uid != pod.uid:
                cluster.apply(Seen(POD, placed_pod.on(where)))


def _judged(runner: Runner, pod: Pod, node: str, chosen: Mapping[str, Any]) -> Rating:
    rows = runner.cluster.nodes.row_of
    row, own = rows.get(node), rows.get(chosen["node"])
    if row is None:
        return {"refused": "there was no such node", "exact": True}
    info = runner.cluster.classes.info_of(pod.on(""))
    fitting = runner.fitting(info)
    fits, state = fitting.rows(), fitting.state
    rating: Rating = {}
    if not fits[row]:
        status = fitting.status_on(row)
        rating["refused"] = "" if status is None else f"{status.plugin}: {status.message}"
    is_as_kept = own is not None and bool(fits[own]) and fitting.count == chosen["feasible"]
    if chosen["score"] is not None and own is not None:
        ranking = state.rank(info, None if np.array_equal(fits, state.feasible) else fits)
        is_as_kept = is_as_kept and int(ranking[own]) == chosen["score"]
        if fits[row]:
            rating["score"] = int(ranking[row])
            rating["scores"] = scores_as_json(*state.ranking.points_of(row))
    return {**rating, "exact": is_as_kept, **({} if is_as_kept else {"why": OTHERWISE})}
