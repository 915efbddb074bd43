"""How things were when a node was chosen: the cluster of then, built anew beside the running one.

    cluster now ──journal, back to the decision──> objects as they were ──> a cluster of its own
                                                                              └─> both nodes, judged

Whether that is what the decision saw is checked by what was kept of it: the chosen node must come
to the same score, and as many nodes must fit. Extenders, sampling, promises to waiting pods and
held room are no part of it; where one of them played a part, the check says so.

Bounds  one at a time; SLICE objects between two turns of the deciding loop, and its budget's slices
        for the judgement.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from asched.core.config.merge import UnusableProfileError
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.decided import scores_told
from asched.core.framework.profile import CannotBuildError
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.state.budget import OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.core.state.journal import JournalStep
from asched.serve.view import slices

#: Some 30 µs each.
SLICE: Final = 64
FORGOTTEN: Final = "too much has changed since to tell how things were"
OTHERWISE: Final = (
    "the chosen node comes to another score now: an extender, a promise to another pod, held room"
    " or another configuration played a part"
)
#: What may go wrong with plugins that are made anew.
FAILURES: Final[tuple[type[Exception], ...]] = (
    *(UnusableProfileError, CannotBuildError, PointError, OutOfTurn),
)

#: Makes the runners of the current configuration on another cluster; may raise FAILURES.
Rebuild = Callable[[Cluster], Mapping[str, Runner]]

Told = dict[str, Any]


class Past:
    """Asked for one decision after the other."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._one_at_a_time = asyncio.Lock()

    async def against(
        self,
        rebuild: Rebuild,
        pod: Pod,
        node: str,
        chosen: Mapping[str, Any],
    ) -> Told:
        """What a node came to beside the chosen one. `chosen` is the decision as `Chosen.told` has
        it.
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
    """Everything that rules read, as it was: nodes by name, placed pods by uid with their nodes,
    and all other kinds, objects by key.
    """

    nodes: dict[str, Node]
    placed: dict[str, tuple[Pod, str]]
    others: dict[str, tuple[Kind, dict[str, Any]]]

    def before(self, step: JournalStep) -> None:
        """Go back over a step."""
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
    """As of a position of the journal; None if that was forgotten. Whatever moves while this reads
    is a step of the journal that is gone back over in the end.
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
    """Tell a fresh cluster of everything but the pod."""
    objects = [(kind, obj) for kind, known in then.others.values() for obj in known.values()]
    async for nodes in slices.in_slices(list(then.nodes.values()), SLICE):
        for node in nodes:
            cluster.apply(Seen(NODE, node))
    async for some in slices.in_slices(objects, SLICE):
        for kind, obj in some:
            cluster.apply(Seen(kind, obj))
    async for placed in slices.in_slices(list(then.placed.values()), SLICE):
        for one, where in placed:
            if one.uid != pod.uid:
                cluster.apply(Seen(POD, one.on(where)))


def _judged(runner: Runner, pod: Pod, node: str, chosen: Mapping[str, Any]) -> Told:
    rows = runner.cluster.nodes.row_of
    row, own = rows.get(node), rows.get(chosen["node"])
    if row is None:
        return {"refused": "there was no such node", "exact": True}
    info = runner.cluster.classes.info_of(pod.on(""))
    fitting = runner.fitting(info)
    fits, state = fitting.rows(), fitting.state
    told: Told = {}
    if not fits[row]:
        status = fitting.status_on(row)
        told["refused"] = "" if status is None else f"{status.plugin}: {status.message}"
    is_as_kept = own is not None and bool(fits[own]) and fitting.count == chosen["feasible"]
    if chosen["score"] is not None and own is not None:
        ranking = state.rank(info, None if np.array_equal(fits, state.feasible) else fits)
        is_as_kept = is_as_kept and int(ranking[own]) == chosen["score"]
        if fits[row]:
            told["score"] = int(ranking[row])
            told["scores"] = scores_told(*state.ranking.points_of(row))
    return {**told, "exact": is_as_kept, **({} if is_as_kept else {"why": OTHERWISE})}
