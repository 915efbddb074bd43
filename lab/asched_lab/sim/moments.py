"""Checks of a world at random moments while faults are in force: a line per violation.

`Moments` uses what the acting process knows, so the delay of its streams does not matter: the queue
has every waiting pod as last seen, and no pod rests that would find a node. The end of a run alone
would not show this, since later events heal much of what was missed.
"""

import random
from collections.abc import Container
from typing import Final

from asched import names
from asched.core.cluster.changes import ASSIGNED_POD_ADD
from asched.core.cluster.pod_groups import group_key
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.profile import Profile
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from asched_lab.sim.judgement import fitting
from asched_lab.sim.process import Process
from asched_lab.sim.world import World

#: Mean time between two checks.
CHECK_EVERY_S: Final = 20.0
#: A pod that rests at both ends of this and was not tried in between was not woken: turns take no
#: time.
WOKEN_WITHIN_S: Final = 0.5
#: Share of failed attempts that are checked at once: events meanwhile may be lost.
AFTER_FAILURE: Final = 0.1
#: The API server's text for a binding that carries another version than its pod has.
OUTDATED: Final = "ResourceVersion in precondition"
#: Objects that a pod may bring with it.
BROUGHT: Final = frozenset(
    kind.resource for kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM)
)
#: A pod at rest and the number of its attempt -> the finding.
Resting = dict[tuple[str, int], str]


class Moments:
    """Complains to the ledger. `moody`: plugins whose result changes without a change in the
    cluster.
    """

    def __init__(self, world: World, moody: Container[str]) -> None:
        self._world = world
        self._moody = moody
        self._is_due = False  # a check at this moment
        self._rng = random.Random(f"moments of {world.seed}")  # does not change the world's draws
        world.on_effect.append(self._hear)
        self._plan()

    def _plan(self) -> None:
        self._world.clock.after(self._rng.uniform(0.0, 2 * CHECK_EVERY_S), self._check_and_plan)

    def _check_and_plan(self) -> None:
        if self._world.active_faults.is_on:
            self._check()
            self._plan()

    def _check(self) -> None:
        world, process = self._world, self._world.acting
        self._is_due = False
        if not world.active_faults.is_on or not _is_awake(process):
            return
        for line in unlike_seen(process):
            world.ledger.complain(line)
        if found := self._asleep():
            world.clock.after(WOKEN_WITHIN_S, lambda: self._check_again(process, found))

    def _check_again(self, process: Process, before: Resting) -> None:
        if process is not self._world.acting or not _is_awake(process):
            return
        for key, line in self._asleep().items():
            if key in before:
                self._world.ledger.complain(line)

    def _asleep(self) -> Resting:
        """Resting pods that were rejected by filters alone, are not due for a dry run, and would
        find a node.
        """
        cluster = self._world.parts.cluster
        runners = self._world.machine.context.runners
        filters = {
            filterer.plugin.name
            for runner in runners.values()
            for filterer in runner.profile.filters
            if filterer.plugin.name not in self._moody
        }
        # A pod that waits for its group is woken after the watch has delivered.
        if coming := [info for info in cluster.placed.values() if info.assumed]:
            filters -= {name for runner in runners.values() for name in helped(runner.profile)}
        gangs = {group_key(info.pod) for info in coming} - {""}
        due = {
            queued.pod.uid
            for equals in self._world.machine.context.queue.places.unschedulable.due
            for queued in equals
        }
        resting = [
            queued
            for queued in self._world.machine.context.queue.places.unschedulable
            if queued.pod.uid not in due
            and queued.rejectors <= filters
            and group_key(queued.pod) not in gangs
        ]
        return {
            (queued.pod.uid, queued.attempts): f"{queued.key} was not woken, rejected by"
            f" {sorted(queued.rejectors)}, and fits {node}"
            for queued, node in fitting(self._world, resting)
            if not self._awaits_room(queued.pod.uid, node)
        }

    def _awaits_room(self, uid: str, node: str) -> bool:
        """Room is being made for it elsewhere, and for more pods on this node, or its victims on
        this node leave and the process does not know yet: it is woken when that is done.
        """
        nominator = self._world.parts.nominator
        if nominator.node_of(uid) == node and self._leaves_unseen(node):
            return True
        has_other = nominator.node_of(uid) not in {None, "", node}
        return has_other and not nominator.on(node).keys() <= {uid}

    def _leaves_unseen(self, node: str) -> bool:
        """Whether the process still waits to see that a pod leaves this node."""
        uids = {
            info.pod.uid
            for info in self._world.parts.cluster.placed.values()
            if info.node_name == node and not info.pod.is_terminating
        }
        there = {pod["metadata"]["uid"]: pod["metadata"] for pod in self._world.pods()}
        return any(uid not in there or there[uid].get("deletionTimestamp") for uid in uids)

    def _hear(self, process: Process, effect: Effect) -> None:
        """Compare an event that reports a pod's node with the API. No event reports that a binding
        was refused because its pod has changed: it is repeated, and the pod keeps its place.
        """
        if not isinstance(effect, EmitEvent):
            return
        is_failure = effect.reason == names.EVENT_FAILED_SCHEDULING
        if is_failure and OUTDATED in effect.note:
            self._world.ledger.complain(f"{process.name} says {effect.note!r}")
        if is_failure and self._rng.random() < AFTER_FAILURE and not self._is_due:
            self._is_due = True
            self._world.clock.after(0.0, self._check)
        if effect.reason != names.EVENT_SCHEDULED:
            return
        about, world = effect.regarding, self._world
        pod = world.server.get("pods", about.namespace, about.name)
        if pod is None or pod["metadata"]["uid"] != about.uid:
            return
        if world.extenders is not None and about.uid in world.extenders.asked_to_bind:
            return
        node = pod["spec"].get("nodeName", "")
        if not effect.note.endswith(f" to {node}"):
            world.ledger.complain(f"{process.name} says {effect.note!r}, it is on {node!r}")


def helped(profile: Profile) -> set[str]:
    """Plugins that one more pod on a node may help: they register for arrivals, or for objects that
    pods bring with them. For all other plugins it only takes room.
    """
    return {
        name
        for name, registrations in profile.registrations.items()
        if any(
            hint.trigger.resource in BROUGHT or hint.trigger.matches(ASSIGNED_POD_ADD)
            for hint in registrations
        )
    }


def _is_awake(process: Process) -> bool:
    """Whether it runs, may act, and is not in the middle of a trial."""
    return (
        process in process.world.processes
        and process.may_act
        and not process.is_paused
        and not process.parts.cluster.topology.on_trial
        and not process.parts.cluster.is_supposed
    )


def unlike_seen(process: Process) -> list[str]:
    """Differences between the queue and the watched pods: missing, surplus and outdated pods; and
    terminating pods that still have an assumed place.
    """
    context, cluster = process.machine.context, process.parts.cluster
    places, in_flight = context.queue.places, context.queue.in_flight
    found = []
    for queued in places.all():
        known = cluster.pods_seen.get(queued.key)
        if known is None or known.uid != queued.pod.uid or known.spec.node_name:
            found.append(f"{queued.key} is queued and does not wait")
            continue
        queued_version, seen = (p.metadata.resource_version for p in (queued.pod, known))
        if queued_version != seen:
            found.append(
                f"{queued.key} is queued as of version {queued_version}, it was seen at {seen}"
            )
    for info in cluster.placed.values():
        now = cluster.pods_seen.get(info.pod.key) if info.assumed else None
        if now is not None and now.uid == info.pod.uid and now.is_terminating:
            found.append(f"{now.key} is about to go and keeps its place on {info.node_name}")
    on_their_way = {waiting.info.pod.uid for waiting in context.waiting}
    for pod in cluster.pods_seen.values():
        if pod.spec.node_name or pod.is_terminating or not context.owns(pod):
            continue  # a terminating pod is not tried
        if pod.uid in in_flight:
            continue
        is_placed = cluster.is_assumed(pod.uid) or pod.uid in on_their_way
        if not is_placed and places.get(pod.key) is None:
            found.append(f"{pod.key} waits and is in no queue")
    return found
