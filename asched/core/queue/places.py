"""The sub-queues: the place of each waiting pod, and the number of pods in each.

A pod has one place, found by its key (namespace/name): a heap, or the unschedulable pods. Nothing
is decided here.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from asched.core.framework.status import MISTAKES, raise_plugin_error
from asched.core.model.pod import Pod
from asched.core.queue.heap import sorted_by_steps
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import PodHeap, QueuedPod
from asched.core.queue.unschedulable import UnschedulablePods

#: Groups in backoff that are sorted at a time: a millisecond.
GANGS_MAX: Final = 500


class Pending(NamedTuple):
    """Numbers of pods by queue, for metrics; pods in `error_backoff` count as backoff."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class Listing(NamedTuple):
    """All pods of the queue; the first three lists in the order of pop."""

    active: list[QueuedPod]
    backoff: list[QueuedPod]
    error_backoff: list[QueuedPod]
    unschedulable: list[QueuedPod]
    gated: list[QueuedPod]


class SubQueues:
    """The pod with the smallest sort key of the profile is popped first."""

    def __init__(self, profile: QueueProfile) -> None:
        self._sort_key, self._sorted_by = profile.sort_key, profile.sorted_by
        self._queued: dict[str, QueuedPod] = {}
        #: the waiting pod with this key, or None
        self.get: Callable[[str], QueuedPod | None] = self._queued.get
        self.active, self.backoff, self.error_backoff = PodHeap(), PodHeap(), PodHeap()
        #: the pods of groups in `error_backoff`, by group
        self.gangs: dict[str, dict[str, QueuedPod]] = {}
        self.unschedulable = UnschedulablePods(self._by_sort)

    def __len__(self) -> int:
        return len(self._queued)

    def __contains__(self, key: str) -> bool:
        return key in self._queued

    def resort(self, profile: QueueProfile) -> Iterator[QueuedPod]:
        """Order the heaps by another queue sort, pod by pod. No pod may be unschedulable."""
        self._sort_key, self._sorted_by = profile.sort_key, profile.sorted_by
        self.unschedulable.renew()
        old = self.active, self.backoff, self.error_backoff
        self.active, self.backoff, self.error_backoff = new = PodHeap(), PodHeap(), PodHeap()
        for before, heap in zip(old, new, strict=True):
            while (queued := before.pop()) is not None:
                heap.push(queued, self._order(queued, heap))
                yield queued

    def all(self) -> list[QueuedPod]:
        """All pods, unordered."""
        return list(self._queued.values())

    def name_of(self, queued: QueuedPod) -> str:
        """The place by upstream's name; pods in `error_backoff` are in backoff."""
        if queued.rejector_group is not None:
            return "unschedulable"
        return "active" if queued.heap is self.active else "backoff"

    def is_first(self, queued: QueuedPod, heap: PodHeap) -> bool:
        """Whether a pod would be popped before all pods of this heap."""
        head = heap.head()
        return head is None or self._order(queued, heap) < self._order(head, heap)

    def take(self, heap: PodHeap) -> QueuedPod | None:
        """Remove and return the head of a heap."""
        queued = heap.pop()
        if queued is not None:
            del self._queued[queued.key]
        return queued

    def leave(self, queued: QueuedPod) -> None:
        """Remove a pod from its place, if it has one."""
        if queued.rejector_group is not None:
            self.unschedulable.discard(queued)
        elif queued.heap is not None:
            if queued.gang and queued.heap is self.error_backoff:
                self._leave_gang(queued)
            queued.heap.discard(queued)
        else:
            return
        del self._queued[queued.key]

    def into(self, queued: QueuedPod, heap: PodHeap) -> None:
        """Move a pod into a heap."""
        self.leave(queued)
        self._queued[queued.key] = queued
        if queued.gang and heap is self.error_backoff:
            self.gangs.setdefault(queued.gang, {})[queued.key] = queued
        heap.push(queued, self._order(queued, heap))

    def gangs_in_order(self) -> dict[str, None]:
        """The groups with pods in `error_backoff`, the first GANGS_MAX, in the order of backoff."""
        firsts = [next(iter(pods.values())) for pods in islice(self.gangs.values(), GANGS_MAX)]
        firsts.sort(key=lambda queued: self._order(queued, self.backoff))
        return dict.fromkeys([queued.gang for queued in firsts])

    def _leave_gang(self, queued: QueuedPod) -> None:
        pods = self.gangs[queued.gang]
        del pods[queued.key]
        if not pods:
            del self.gangs[queued.gang]

    def to_rest(self, queued: QueuedPod) -> bool:
        """Make a pod unschedulable, or file it under new rejectors; whether it was elsewhere."""
        if queued.rejector_group is not None:
            self.unschedulable.refile(queued)
            return False
        self.leave(queued)
        self._queued[queued.key] = queued
        self.unschedulable.add(queued)
        return True

    def replace_pod(
        self, queued: QueuedPod, pod: Pod, class_key: Hashable | None, gang: str = ""
    ) -> bool:
        """Store the new version of a waiting pod, in the order that is now right. Returns whether
        an unschedulable pod was due and changed its class, so that it has to be tried.
        """
        if queued.rejector_group is not None:
            return self.unschedulable.replace(queued, pod, class_key, gang)
        heap = queued.heap
        assert heap is not None, f"{queued} does not wait"
        self.leave(queued)
        queued.pod, queued.class_key, queued.gang = pod, class_key, gang
        self.into(queued, heap)
        return False

    def pending(self) -> Pending:
        waiting = len(self.backoff) + len(self.error_backoff)
        gated = self.unschedulable.gated_count
        return Pending(len(self.active), waiting, self.unschedulable.count - gated, gated)

    def listing(self) -> Listing:
        """All pods, sorted; for debugging and recordings, not for the hot path."""
        return Listing(*([q for q in steps if q is not None] for _, steps in self.by_steps()))

    def by_steps(self) -> Iterator[tuple[str, Iterator[QueuedPod | None]]]:
        """Yield (name, pods) of each list of `listing`, each pod by pod; None is a step without a
        pod.
        """
        yield "active", self.active.in_order_by_steps()
        yield "backoff", self.backoff.in_order_by_steps()
        yield "error_backoff", self.error_backoff.in_order_by_steps()
        unschedulable = sorted_by_steps(self.all(), _key, _is_unschedulable)
        yield "unschedulable", unschedulable
        gated = sorted_by_steps(self.all(), _key, attrgetter("is_gated"))
        yield "gated", gated

    def _order(self, queued: QueuedPod, heap: PodHeap) -> Any:
        """The key of a pod in a heap. Active: the queue sort. Backoff: its end, then the queue
        sort. Errors: its end. Then by arrival.
        """
        if heap is self.error_backoff:
            return queued.backoff_until_s, queued.arrival
        key = self._by_sort(queued)
        return key if heap is self.active else (queued.backoff_until_s, key)

    def _by_sort(self, queued: QueuedPod) -> Any:
        try:
            return self._sort_key(queued.pod, queued.timestamp_s), queued.arrival
        except MISTAKES as raised:
            raise_plugin_error(self._sorted_by, "queueSort", raised)


def _key(queued: QueuedPod) -> str:
    return queued.key


def _is_unschedulable(queued: QueuedPod) -> bool:
    return queued.rejector_group is not None and not queued.gated_by
