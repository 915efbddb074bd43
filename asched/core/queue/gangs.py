"""Pod groups in the queue, where they are tried as one.

An attempt at one pod is an attempt at all: of those that rest, the first is woken and brings the
others. Nothing takes their pods from backoff before their pause is over. Where they are tried in
placements, or wait for victims, no change wakes them, and time alone brings them back.

Whoever had to wait at a gate for the rest of its group came when that was complete: else a group of
which one pod came early and the last one late would go before one that was complete in between.
"""

from collections.abc import Iterable, Mapping

import msgspec

from asched.core.config.args import CoschedulingArgs
from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.queue.waking import Woken
from asched.core.state.pod_groups import group_key


class Gangs(msgspec.Struct, frozen=True):
    """Whether pods of groups are tried as one, and whether in several placements. Those of groups
    that a label tells are where their profile, one of `coscheduled` by name, says so.
    `makes_room`: others leave for a group as a whole, not for one of its pods after the other.
    """

    tries_groups: bool = False
    tries_placements: bool = False
    coscheduled: Mapping[str, CoschedulingArgs] = msgspec.field(default_factory=dict)
    makes_room: bool = False

    @property
    def are_tried(self) -> bool:
        """Whether any pods are tried as one."""
        return self.tries_groups or bool(self.coscheduled)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that make groups."""
        upstream = (POD_GROUP,) if self.tries_groups else ()
        return (*upstream, COSCHEDULING_GROUP) if self.coscheduled else upstream

    def has(self, pod: Pod) -> bool:
        if pod.spec.scheduling_group is not None:
            return self.tries_groups
        return pod.spec.scheduler_name in self.coscheduled and bool(group_key(pod))

    def key_of(self, pod: Pod) -> str:
        """The group with which a pod is tried as one; empty if it is tried alone."""
        return group_key(pod) if self.has(pod) else ""

    def brings_back(self, queued: QueuedPod) -> bool:
        """Whether it comes back by time alone."""
        if not self.has(queued.pod):
            return False
        in_placements = self.tries_placements and queued.pod.spec.scheduling_group is not None
        return in_placements or queued.is_promised

    def complete(self, woken: Iterable[Woken], newcomer: QueuedPod | None) -> None:
        """These are woken at once, and gates may let them go: all of a group came with its last
        pod, which may be the newcomer that woke them.
        """
        gangs: dict[str, list[QueuedPod]] = {}
        for found, _ in woken:
            if isinstance(found, QueuedPod) and found.gated_by and (key := group_key(found.pod)):
                gangs.setdefault(key, []).append(found)
        if newcomer is not None and group_key(newcomer.pod) in gangs:
            gangs[group_key(newcomer.pod)].append(newcomer)
        for pods in gangs.values():
            last = max((queued.timestamp_s, queued.arrival) for queued in pods)
            for queued in pods:
                queued.timestamp_s, queued.arrival = last
