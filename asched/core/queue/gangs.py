"""Pod groups in the queue, where they are tried as one.

Nothing takes their pods from backoff before their pause is over. Where they are tried in
placements, or wait for victims, no change wakes them, and time alone brings them back.

Whoever had to wait at a gate for the rest of its group came when that was complete: else a group of
which one pod came early and the last one late would go before one that was complete in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from asched.core.queue.queued import QueuedPod
from asched.core.queue.waking import Woken
from asched.core.state.pod_groups import group_key


@dataclass(frozen=True, slots=True)
class Gangs:
    """Whether pods of groups are tried as one, and whether in several placements."""

    tries_groups: bool = False
    tries_placements: bool = False

    def has(self, queued: QueuedPod) -> bool:
        return self.tries_groups and queued.pod.spec.scheduling_group is not None

    def brings_back(self, queued: QueuedPod) -> bool:
        """Whether it comes back by time alone."""
        return self.has(queued) and (self.tries_placements or queued.is_promised)

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
