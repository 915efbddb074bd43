"""Pod groups in the queue, for profiles that try the pods of a group together.

An attempt at one pod is an attempt at the whole group: of its unschedulable pods only the first is
woken, and brings the other pods. While no pod is active, freed room ends the backoff of a group for
which it suffices by counting, once: if the attempt fails, the next one waits for the end of the
backoff. Groups that are tried in placements are not woken by other changes, and groups that wait
for victims by none; they return after their backoff.

Pods that waited at a gate for the rest of their group get the timestamp of the last pod. Otherwise
a group whose first pod came early and whose last pod came late would precede a group that was
complete in between.
"""

from collections.abc import Iterable, Mapping

import msgspec

from asched.core.cluster.pod_groups import group_key
from asched.core.config.args import CoschedulingArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.pool_profiles import BY_SCHEDULER_NAME, ProfileOf
from asched.core.model.kinds import COMPOSITE_POD_GROUP, COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod


class Gangs(msgspec.Struct, frozen=True):
    """Whether pods of groups are tried together, and whether in several placements. Groups that a
    label names are tried together in the profiles of `coscheduled`, by profile name.
    `makes_room`: victims are evicted for a group as a whole, not for one pod after the other.
    `forms_trees`: the parents of PodGroups count.
    `rules`: the state of gates and of the rules by minor version.
    `profile_of`: the profile that decides for a pod.
    """

    tries_groups: bool = False
    tries_placements: bool = False
    coscheduled: Mapping[str, CoschedulingArgs] = msgspec.field(default_factory=dict)
    makes_room: bool = False
    forms_trees: bool = False
    rules: Mapping[str, bool] = msgspec.field(default_factory=lambda: DEFAULT_GATES)
    profile_of: ProfileOf = BY_SCHEDULER_NAME

    @property
    def are_tried(self) -> bool:
        """Whether any pods are tried together."""
        return self.tries_groups or bool(self.coscheduled)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that define groups."""
        upstream: tuple[Kind, ...] = (POD_GROUP,) if self.tries_groups else ()
        if self.forms_trees:
            upstream = (*upstream, COMPOSITE_POD_GROUP)
        return (*upstream, COSCHEDULING_GROUP) if self.coscheduled else upstream

    def has(self, pod: Pod) -> bool:
        if pod.spec.scheduling_group is not None:
            return self.tries_groups
        return self.profile_of(pod) in self.coscheduled and bool(group_key(pod))

    def key_of(self, pod: Pod) -> str:
        """The key of the group that a pod is tried with; empty if it is tried alone."""
        return group_key(pod) if self.has(pod) else ""

    def brings_back(self, queued: QueuedPod) -> bool:
        """Whether the pod returns after its backoff without an event."""
        if not self.has(queued.pod):
            return False
        in_placements = self.tries_placements and queued.pod.spec.scheduling_group is not None
        return in_placements or queued.is_promised

    def complete(self, woken: Iterable[tuple[object, object]], newcomer: QueuedPod | None) -> None:
        """Give the gated pods of each group among `woken` the timestamp of the group's last pod,
        which may be the new pod that completed the group.
        """
        gangs: dict[str, list[QueuedPod]] = {}
        for target, _ in woken:
            if isinstance(target, QueuedPod) and target.gated_by and (key := group_key(target.pod)):
                gangs.setdefault(key, []).append(target)
        if newcomer is not None and group_key(newcomer.pod) in gangs:
            gangs[group_key(newcomer.pod)].append(newcomer)
        for pods in gangs.values():
            last = max((queued.timestamp_s, queued.arrival) for queued in pods)
            for queued in pods:
                queued.timestamp_s, queued.arrival = last
