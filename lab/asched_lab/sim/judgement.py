"""Checks of a world at rest: a line per violation."""

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

import msgspec

from asched.core.cluster import audit as state_audit
from asched.core.cluster.gang import gang_of
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import NoNodesError
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched_lab.sim.process import Process
from asched_lab.sim.world import World

Json = dict[str, Any]

FINISHED: Final = ("Succeeded", "Failed")


def audit(world: World) -> list[str]:
    """Compare columns with a fresh count, and caches with the server's objects; in standby
    processes too.
    """
    listed = {}
    for kind in world.acting.kinds:
        group = kind.group_version.rpartition("/")[0]
        objects = world.server.list(f"{kind.plural}.{group}" if group else kind.plural)
        if kind.plural == "pods":
            objects = [p for p in objects if p["status"].get("phase") not in FINISHED]
        listed[kind] = [decode(kind.record, obj) for obj in objects]
    found = []
    for process in world.processes:
        cluster = process.parts.cluster
        found += state_audit.recount(cluster) + state_audit.compare(cluster, listed)
    return found


def unsettled(world: World) -> list[str]:
    """Work that should be finished: bindings, requests, assumed pods, nominations."""
    found = []
    if world.acting not in world.processes or not world.acting.may_act:
        found.append("no process leads")
    for process in world.processes:
        found += _unsettled(process)
    return found


def _unsettled(process: Process) -> list[str]:
    machine, cluster = process.machine, process.parts.cluster
    context = machine.context
    found = [f"{info.pod.key} is still assumed" for info in cluster.placed.values() if info.assumed]
    if not machine.is_idle:
        found.append(f"{machine.bindings} bindings are not over")
    if number := process.unfinished():
        found.append(f"{number} requests are not over")
    if len(context.queue.in_flight):
        found.append(f"{len(context.queue.in_flight)} attempts are not over")
    found += _unheard(process)
    found += [f"{waiting.info.pod.key} still stands at Permit" for waiting in context.waiting]
    if context.waiting.held:
        found.append(f"{context.waiting.held} pods are counted at Permit")
    return found + _empty_promises(process) + _devices(process)


def _unheard(process: Process) -> list[str]:
    """Watches that are behind, and objects that a well-formed server would not have written."""
    reflectors = process.scheduler.reflectors.values()
    found = [f"{r.kind.plural} are not listed" for r in reflectors if not r.synced.is_set()]
    found += [f"some {r.kind.plural} are malformed" for r in reflectors if r.malformed_count]
    if any(stream.is_behind for stream in process.wire.streams.values()):
        found.append("a watch is behind")
    return found


def _empty_promises(process: Process) -> list[str]:
    """Nominations of pods that do not wait (any more)."""
    waiting = {
        pod.uid for pod in process.parts.cluster.pods_seen.values() if not pod.spec.node_name
    }
    return [
        f"room on {node} is promised to {pod.key}, which does not wait"
        for node, pods in process.parts.nominator.nodes().items()
        for uid, pod in pods.items()
        if uid not in waiting
    ]


def stale_nominations(world: World) -> list[str]:
    """Waiting pods whose status names a node on which no pod terminates any more. Autoscalers add
    no node for such a pod. Pods whose claim does not exist, or is being deleted, are not tried, so
    that theirs stay.
    """
    leaving = {
        pod["spec"].get("nodeName")
        for pod in world.pods()
        if pod["metadata"].get("deletionTimestamp")
    }
    return [
        f"{pod['metadata']['name']} waits and is still nominated to {node}"
        for pod in world.waiting()
        if (node := pod["status"].get("nominatedNodeName"))
        and node not in leaving
        and not pod["metadata"].get("deletionTimestamp")
        and not _lacks_claim(world, pod)
    ]


def _lacks_claim(world: World, pod: Json) -> bool:
    """Whether a claim that the pod names does not exist, or is being deleted."""
    names = [entry.get("resourceClaimName") for entry in pod["spec"].get("resourceClaims") or ()]
    namespace = pod["metadata"]["namespace"]
    claims = [world.server.get("resourceclaims", namespace, name) for name in names if name]
    return any(claim is None or "deletionTimestamp" in claim["metadata"] for claim in claims)


def _devices(process: Process) -> list[str]:
    """Devices counted as taken that differ from the claims."""
    ledger = process.parts.cluster.singleton(DeviceLedger)
    ledger.catch_up()
    fresh = DeviceLedger(process.parts.cluster)
    fresh.catch_up()
    found = [f"the allocation of claim {uid} is still in flight" for uid in ledger.in_flight]
    if ledger.taken.devices != fresh.taken.devices:
        found.append(f"devices taken: kept {ledger.taken.devices}, counted {fresh.taken.devices}")
    return found


def lost(world: World) -> list[str]:
    """Waiting pods that are missing from the queue, and queued pods that do not wait."""
    waiting = {f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in world.waiting()}
    listing = world.machine.context.queue.places.listing()
    queued = {queued.key for lane in listing for queued in lane}
    return [f"{key} is in no queue" for key in sorted(waiting - queued)] + [
        f"{key} is queued and does not wait" for key in sorted(queued - waiting)
    ]


def sleepers(world: World, but_for: Container[str] = ()) -> list[str]:
    """Unschedulable pods for which a fresh attempt finds a node, if the rest of their gang has one.
    `but_for`: leaves out pods rejected by these plugins alone, which may change their result
    without an event.
    """
    resting = [
        queued
        for queued in world.machine.context.queue.places.unschedulable
        if not queued.rejectors or any(name not in but_for for name in queued.rejectors)
    ]
    return [
        f"{queued.key} sleeps, rejected by {sorted(queued.rejectors)}, but fits {node}"
        for queued, node in fitting(world, resting)
    ]


def fitting(world: World, resting: Sequence[QueuedPod]) -> Iterator[tuple[QueuedPod, str]]:
    """Pods for which a fresh attempt finds a node, with the node. Of pods that are equal but for
    their names one is tried.
    """
    runners = world.setup.runners(world.parts) if resting else {}
    nodes: dict[object, str] = {}
    for queued in resting:
        runner = runners[world.machine.context.profile_of(queued.pod)]
        if not all(p.pre_enqueue(queued.pod).is_success for p in runner.profile.pre_enqueue):
            continue
        content = _content(world, queued.pod)
        if content not in nodes:
            answer = _answer(world, runner, queued)
            fits = answer is not None and not isinstance(answer, Rejection)
            is_placed = fits and _gang_fits(world, runner, queued)
            nodes[content] = answer.node if is_placed else ""
        if nodes[content]:
            yield queued, nodes[content]


def _content(world: World, pod: Pod) -> object:
    """Equal for pods that fit on the same nodes. Objects may be named after a pod with volumes or
    claims.
    """
    spec, metadata = pod.spec, pod.metadata
    if spec.volumes or spec.resource_claims:
        return pod.uid
    about = metadata.labels, metadata.annotations, metadata.owner_references
    return msgspec.json.encode(
        (metadata.namespace, about, spec, world.parts.nominator.node_of(pod.uid))
    )


def _gang_fits(world: World, runner: Any, queued: QueuedPod) -> bool:
    """Whether enough pods of the gang find nodes, one after the other, for it to start."""
    cluster, nominator = world.parts.cluster, world.parts.nominator
    key = group_key(queued.pod)
    gang = gang_of(cluster, key) if key else None
    if gang is None or not world.machine.context.gangs.has(queued.pod):
        return True
    pods = cluster.pod_groups.get(key)
    lacking: int = max(gang.min_count - len(pods.placed), 1)
    found: list[tuple[PodInfo, str]] = []
    unplaced = dict(pods.unplaced)
    for pod in (pod for uid, pod in unplaced.items() if uid not in pods.foreign):
        info = cluster.classes.info_of(pod)
        answer = world.judged(runner.schedule(info, 0))
        if not isinstance(answer, Rejection):
            found.append((info, nominator.node_of(pod.uid) or ""))
            nominator.delete(pod.uid)  # as for an assumed pod
            cluster.assume(info, answer.node)
    for info, promised in found:
        cluster.forget(info)
        nominator.add(info.pod, promised)
    pods.unplaced.clear()  # in the order from before: the process must not notice the check
    pods.unplaced.update(unplaced)
    return len(found) >= lacking


def stale(world: World) -> list[str]:
    """Pods whose cached results differ from fresh ones."""
    found = []
    parts = world.parts
    fresh = world.setup.runners(parts)
    for queued in list(world.machine.context.queue.places.unschedulable):
        name = world.machine.context.profile_of(queued.pod)
        if not all(p.pre_enqueue(queued.pod).is_success for p in fresh[name].profile.pre_enqueue):
            continue
        said = [
            _words(_answer(world, runners[name], queued))
            for runners in (world.machine.context.runners, fresh)
        ]
        if said[0] != said[1]:
            found.append(f"{queued.key}: kept answers say {said[0]!r}, fresh ones {said[1]!r}")
    return found


def _answer(world: World, runner: Any, queued: QueuedPod) -> Any:
    """The result of an attempt now; None if there are no nodes."""
    try:
        return world.judged(runner.schedule(world.parts.cluster.classes.info_of(queued.pod), 0))
    except NoNodesError:
        return None


def _words(answer: Any) -> str:
    if answer is None:
        return "no nodes"
    return answer.message() if isinstance(answer, Rejection) else answer.node


def unexplained(world: World) -> list[str]:
    """Waiting pods whose PodScheduled condition gives no reason. Pods behind a plugin's gate have
    no condition.
    """
    gated = {queued.key for queued in world.machine.context.queue.places.listing().gated}
    return [
        f"{pod['metadata']['name']} has no condition that says why it waits"
        for pod in world.waiting()
        if f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" not in gated
        and not any(
            c["type"] == "PodScheduled" and c["status"] == "False" and c.get("reason")
            for c in pod["status"].get("conditions") or ()
        )
    ]
