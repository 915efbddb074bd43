"""Read the state of a running scheduler for pages and metrics, without changes.

Values are read between two turns of the scheduling loop, so they are consistent. Data that a page
renders in a thread is copied first.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from math import ceil
from typing import Any, Final

import numpy as np

from asched.batch.groups.incomplete import why_incomplete
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.config import text
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.decision_records import read
from asched.core.cycle.history import DecisionStep, HistoryEntry
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.leader.pools import lease_of_pool
from asched.core.model import taint
from asched.core.model.pod import Pod
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.queue.unschedulable import equals_of
from asched.insight.explain import changes, deciding, members, obstacles, places, shortfalls
from asched.insight.explain.suggestions import SuggestedChange
from asched.insight.explain.waiting_members import company_of, needed_of
from asched.serve.view import draining, promises
from asched.serve.view.slices import as_it_is, in_slices, in_turns, linked

#: Nodes named in an explanation, nearest misses first.
MISSES_MAX: Final = 10
#: Taints of one node, and kinds of taints, that are named.
TAINTS_MAX: Final = 10
#: Nodes per part of a dump, each with some hundred pods: a few milliseconds.
NODES_AT_ONCE: Final = 64
#: Steps per part of a sorted listing; a step formats one pod or sorts a few dozens.
STEPS_AT_ONCE: Final = 100


class Inspection:
    """`is_leader`: whether this process schedules; always true without leader election.
    `audit_report`: the findings of audits so far; `audit_now`: the same after an audit of
    everything, which starts now.
    """

    def __init__(
        self,
        context: SchedulerContext,
        configuration: SchedulerConfiguration,
        is_leader: Callable[[], bool],
        audit_report: Callable[[], Mapping[str, Any]],
        audit_now: Callable[[], Awaitable[Mapping[str, Any]]],
    ) -> None:
        """A reload replaces `current`."""
        self._context = context
        self.current = configuration
        self.is_leader = is_leader
        self.audit_report, self.audit_now = audit_report, audit_now

    def configuration(self) -> Mapping[str, Any]:
        return text.without_keys(self.current)

    def pods(self) -> Iterable[Pod]:
        return list(self._context.cluster.pods_seen.values())

    # --- dumps -----------------------------------------------------------------------------------

    async def queue_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        """A pod that moves meanwhile may occur twice, or not at all."""
        queue = self._context.queue
        for name, steps in (*queue.places.by_steps(), ("inFlight", iter(queue.in_flight.pods()))):
            yield name, []
            while some := list(islice(steps, STEPS_AT_ONCE)):
                yield name, [places.queue_record(q) for q in some if q is not None]
                await asyncio.sleep(0)

    async def cache_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        cluster = self._context.cluster
        yield "nodes", []
        async for rows in in_slices(list(cluster.nodes.row_of.values()), NODES_AT_ONCE):
            await as_it_is(cluster)
            yield "nodes", [node for row in rows if (node := self._node(row)) is not None]
        assumed = list[str]()
        async for infos in in_slices(list(cluster.placed.values())):
            assumed += [info.pod.key for info in infos if info.assumed]
        yield "assumedPods", sorted(assumed)

    def _node(self, row: int) -> Mapping[str, Any] | None:
        """None if the node was deleted meanwhile."""
        cluster = self._context.cluster
        node = cluster.nodes.node_at[row] if row < cluster.nodes.height else None
        if node is None:
            return None
        return {
            "name": node.metadata.name,
            "allocatable": dict(node.status.allocatable or {}),
            "pods": sorted(info.pod.key for info in cluster.pods_on(row).values()),
        }

    def shadow(self) -> Mapping[str, Any] | None:
        beside = self._context.shadow
        return None if beside is None else beside.as_json()

    # --- one node --------------------------------------------------------------------------------

    async def drain(self, node: str, *, deletes_data: bool) -> Mapping[str, Any] | None:
        """Where the pods of a node would go if it were drained, or how far that is."""
        return await draining.drain_page(self._context, node, deletes_data=deletes_data)

    # --- one pod ---------------------------------------------------------------------------------

    async def explain(
        self, namespace: str, name: str, against_node: str = "", *, tries_changes: bool = True
    ) -> Mapping[str, Any] | None:
        """The pod's place, history and last rejection, each node's verdict now, and changes that
        would help; for a placed pod how another node compares. Other work runs between two kinds of
        changes.
        """
        key = f"{namespace}/{name}"
        history = (await linked(self._context.histories)).of(key)
        await as_it_is(self._context.cluster)
        pod = self._context.cluster.pods_seen.get(key)
        if pod is None and not history:
            return None
        page: dict[str, Any] = {"pod": key, "story": [_line(line) for line in history]}
        if pod is None:
            is_refused = history[-1].step is DecisionStep.REFUSED
            return {**page, "place": f"refused {history[-1].details}" if is_refused else "gone"}
        cluster, runner = self._context.cluster, self._context.runner_of(pod)
        page["node"] = ""
        page["schedulerName"] = pod.spec.scheduler_name
        page["profile"] = self._context.profile_of(pod)
        page["priority"] = pod.priority
        if group := group_key(pod):
            page["group"] = group
        page.update(places.place_of(self._context, pod))
        if runner is not None and runner.profile.pools is not None:
            pools = runner.profile.pools
            found = pools.of_pod(cluster.classes.class_of(pod))
            is_ours = bool(pod.spec.node_name) or pools.may_decide(pod)
            page["pool"] = found._replace(is_decided_here=is_ours)._asdict()
            if self.current.pool_leases and found.name:
                election = self.current.leader_election
                lease = lease_of_pool(election.resource_name, found.name)
                page["pool"]["lease"] = f"{election.resource_namespace}/{lease}"
        waits = not page["node"]
        if waits and (nomination := places.nomination_of(self._context, pod, history)):
            page["nomination"] = nomination
            tries_changes &= not nomination["victims"]  # room is being made already
        blocks = obstacles.gates_of(pod) if waits else []
        if waits and (gang := self._context.gangs.key_of(pod)):
            blocks += filter(None, [why_incomplete(self._context, gang)])
        tries_changes &= not blocks  # no change of a node helps before
        if runner is not None and against_node:
            lines = (line for line in reversed(page["story"]) if "feasible" in line)
            nominator, chosen = self._context.nominator, next(lines, None)
            page["against"] = deciding.against(runner, nominator, pod, against_node, chosen)
        if (drain := promises.drain_of(self._context, pod)) is not None:
            page["drain"] = drain
        if runner is not None and waits:
            page.update(await self._prospects(pod, runner, tries_changes=tries_changes))
            page["obstacles"] = [*blocks, *page.get("obstacles", ())]
        return page

    async def _prospects(self, pod: Pod, runner: Runner, *, tries_changes: bool) -> dict[str, Any]:
        """Each node's verdict on a waiting pod now, missing amounts, and helpful changes."""
        cluster = self._context.cluster
        info = cluster.classes.info_of(pod)
        found: dict[str, Any] = {"now": await _verdicts_now(info, runner)}
        company = company_of(cluster, pod, self._equals(pod))
        needed = needed_of(cluster, pod)
        if needed > 1:
            found["together"] = needed
            room = members.room_for_gang(runner, self._context.nominator, pod, company)
            found["gang"] = room or {"needed": needed}
        if found["now"].get("feasible") and (company is None or needed == 1):
            return found
        if not found["now"].get("feasible"):
            found["missing"] = shortfalls.missing_everywhere(cluster, info)
            found["obstacles"] = obstacles.obstacles(cluster, pod)
            taints = shortfalls.taints_in_the_way(cluster, info)
            found["taints"], found["otherTaints"] = taints[:TAINTS_MAX], len(taints[TAINTS_MAX:])
            found["holds"] = promises.holds_for(self._context, pod)
            found["start"] = promises.start_of_pod(self._context, pod)
            found["moves"] = promises.moves_for(self._context, pod)
            found["promised"] = promises.starts_of_others(self._context, pod)
        if company is not None and tries_changes:
            lines = cluster.singleton(PodsByPriority)
            await in_turns(cluster.budget, lines.catch_up)  # for possible victims
            found["changes"] = helping = []
            nominator = self._context.nominator
            for some in changes.in_parts(runner, nominator, pod, company.others, needed):
                helping += [_change_page(change) for change in some]
                await asyncio.sleep(0)
                await as_it_is(cluster)
        return found

    def _equals(self, pod: Pod) -> list[Pod]:
        """Waiting pods equal to this one, itself included."""
        queued = self._context.queue.places.get(pod.key)
        if queued is None or queued.rejector_group is None:
            return []
        return [other.pod for other in equals_of(queued)]


def _change_page(change: SuggestedChange) -> dict[str, Any]:
    page = change._asdict()
    if not change.of:  # no other pod waits for the same
        del page["takes"], page["of"]
    return page


def _line(line: HistoryEntry) -> dict[str, Any]:
    page: dict[str, Any] = {"at": line.at_s, "attempt": line.attempt, "what": line.step.value}
    details = read(line)
    if details is not None:
        page.update(details.as_json())
    elif line.details is not None:
        page["details"] = line.details
    return page


def _first(taints: Iterable[str]) -> list[str]:
    found = list(taints)
    more = len(found) - TAINTS_MAX
    return found[:TAINTS_MAX] + ([f"{more} more taints"] if more > 0 else [])


async def _verdicts_now(info: PodInfo, runner: Runner) -> Mapping[str, Any]:
    """Each filter's verdict on each node for the current columns."""
    count = runner.cluster.nodes.count
    if not count:
        return {"nodes": 0}
    try:
        return await in_turns(runner.cluster.budget, partial(_verdicts, info, runner))
    except (OutOfTurn, PointError) as error:
        return {"nodes": count, "error": str(error)}


def _verdicts(info: PodInfo, runner: Runner) -> Mapping[str, Any]:
    """Raises OutOfTurn, PointError."""
    nodes = runner.cluster.nodes
    state = runner.cache.state_of(info)
    outcome = state.update(info)
    avoided = runner.cluster.refusals.rows(info.pod, runner.cluster.steady_s)
    if outcome.rejection is not None:
        said = outcome.rejection
        return {"nodes": nodes.count, "preFilter": said.message, "plugin": said.plugin}
    live = nodes.columns.read("live")[: nodes.height]
    if outcome.rows is not None:
        looked_at = np.zeros(nodes.height, dtype=np.bool_)
        looked_at[list(outcome.rows)] = True
        live = live & looked_at
    objections = np.zeros(nodes.height, dtype=np.int64)
    funnel, left = [], live.copy()
    for verdict in state.active:
        refused = verdict.codes[: nodes.height] != 0
        objections += refused & live
        before, left = int(left.sum()), left & ~refused
        funnel.append(
            {
                "plugin": verdict.plugin.name,
                "refuses": int((refused & live).sum()),
                "left": int(left.sum()),
                "of": before,
            }
        )
    left[list(avoided)] = False
    rows = np.flatnonzero(live & (objections > 0))
    missing = shortfalls.missing_shares(runner.cluster, info)[rows]
    nearest = rows[np.lexsort((missing, objections[rows]))][:MISSES_MAX]
    return {
        "nodes": nodes.count,
        "lookedAt": int(live.sum()),
        "feasible": int(left.sum()),
        "funnel": funnel,
        "avoided": [
            {"node": node.metadata.name, "seconds": ceil(left_s)}
            for row, left_s in avoided.items()
            if (node := nodes.node_at[row]) is not None
        ],
        "nearestMisses": [_miss(info, runner, state.active, int(row)) for row in nearest],
    }


def _miss(info: PodInfo, runner: Runner, active: Iterable[Any], row: int) -> Mapping[str, Any]:
    node = runner.cluster.nodes.node_at[row]
    assert node is not None
    said = []
    for verdict in active:
        code = int(verdict.codes[row])
        if code:
            status = verdict.plugin.explain(info, code)
            said.append({"plugin": verdict.plugin.name, "reason": ", ".join(status.reasons)})
    return {
        "node": node.metadata.name,
        "objections": said,
        "missing": shortfalls.missing_on(runner.cluster, info, row),
        "taints": _first(map(taint.spelt, shortfalls.untolerated(node, info.pod))),
    }
