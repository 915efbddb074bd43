"""Queues of the writing lanes: bounded, with merged pod statuses.

The WRITE lane serves the earliest begun operation first, other lanes are first in, first out. A
full lane drops its oldest job if its priority is low (STATUS, EVENT) and refuses the newest
otherwise. The STATUS lane has at most one waiting patch per pod and condition, or per PodGroup: a
newer patch takes the older one's place in the queue and its fields take precedence. While a patch
of a pod is in flight the next one of the same pod waits, so that patches land in order.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from heapq import heappop, heappush
from itertools import count
from sys import getsizeof
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.facts import Answer, Refused, Unknown
from asched.core.framework.effects import Effect, Lane, PatchGroupStatus, PatchPodStatus, ReadPod
from asched.kube.events import EventWrite

#: The figures are generous guesses: a burst of 50,000 pods must fit into the lane of events.
QUEUE_MAX: Final[Mapping[Lane, int]] = {
    Lane.BINDING: 50_000,
    Lane.WRITE: 50_000,
    Lane.STATUS: 50_000,
    Lane.EVENT: 100_000,
    Lane.LOCAL: 10_000,
}
#: Memory of events and conditions in a low-priority lane: 100,000 usual events. The text of a
#: condition has no bound of its own.
BYTES_MAX: Final = 128 << 20


class QueuedWrite(msgspec.Struct, eq=False):
    """One effect to be sent; `ids` are the effects that its outcome answers."""

    lane: Lane
    effect: Effect
    queued_s: float
    ids: tuple[int, ...] = ()
    event: EventWrite | None = None
    attempt_count: int = 0
    #: An earlier attempt failed after it had been sent.
    maybe_done: bool = False
    #: How long the client's own rate limit delayed this attempt.
    throttled_s: float = 0.0
    #: The method of the last attempt.
    method: str = ""
    #: Key of the merged patch of a pod.
    key: tuple[str, str] = msgspec.field(default=("", ""))
    #: Bytes counted in the queue.
    size: int = 0


class JobQueue:
    """First in, first out, at most `limit` jobs, and BYTES_MAX of events or conditions. `waiting`
    is the content: an attribute, not a method, since it is read before and after each request.
    """

    waiting: Collection[Any]

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self.waiting = self._jobs = deque[QueuedWrite]()

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= self._limit or self._bytes >= BYTES_MAX

    def _counted(self, job: QueuedWrite) -> QueuedWrite:
        """Count a new job, or a job whose text has changed."""
        self._bytes -= job.size
        job.size = _bytes_of(job)
        self._bytes += job.size
        return job

    def _gone(self, job: QueuedWrite) -> QueuedWrite:
        self._bytes -= job.size
        job.size = 0
        return job

    @property
    def oldest_s(self) -> float | None:
        """When the first job was queued."""
        return self._jobs[0].queued_s if self._jobs else None

    def put(self, job: QueuedWrite) -> None:
        self._jobs.append(self._counted(job))

    def put_back(self, job: QueuedWrite) -> None:
        """Put a job back to the head: it has waited before."""
        self._jobs.appendleft(self._counted(job))

    def drop_oldest(self) -> QueuedWrite:
        return self._gone(self._jobs.popleft())

    def take(self) -> QueuedWrite | None:
        """The next job that may start, or None."""
        return self.drop_oldest() if self.waiting else None


class TurnQueue(JobQueue):
    """Serves the earliest begun operation first: its next step does not wait behind the first steps
    of a thousand others, so that operations finish one after the other instead of all at the end.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.waiting = self._heap = list[tuple[int, int, QueuedWrite]]()
        self._tickets = count(1)
        self._earlier = count(0, -1)

    @property
    def oldest_s(self) -> float | None:
        return self._heap[0][2].queued_s if self._heap else None

    def put(self, job: QueuedWrite) -> None:
        heappush(self._heap, (job.effect.operation, next(self._tickets), job))

    def put_back(self, job: QueuedWrite) -> None:
        heappush(self._heap, (job.effect.operation, next(self._earlier), job))

    def drop_oldest(self) -> QueuedWrite:
        return heappop(self._heap)[2]


class StatusQueue(JobQueue):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.waiting = self._waiting = OrderedDict[tuple[str, str], QueuedWrite]()
        self._under_way: set[str] = set()

    @property
    def oldest_s(self) -> float | None:
        return next(iter(self._waiting.values())).queued_s if self._waiting else None

    def put(self, job: QueuedWrite) -> None:
        job.key = status_key(job.effect)
        older = self._waiting.get(job.key)
        if older is None:
            self._waiting[job.key] = self._counted(job)
            return
        older.effect = fold(older.effect, job.effect)
        older.ids += job.ids
        self._counted(older)

    def put_back(self, job: QueuedWrite) -> None:
        newer = self._waiting.get(job.key)
        if newer is None:
            self._waiting[job.key] = self._counted(job)
        else:
            newer.effect = fold(job.effect, newer.effect)
            newer.ids = job.ids + newer.ids
            self._counted(newer)
        self._waiting.move_to_end(job.key, last=False)

    def drop_oldest(self) -> QueuedWrite:
        return self._gone(self._waiting.popitem(last=False)[1])

    def take(self) -> QueuedWrite | None:
        for key, job in self._waiting.items():
            if key[0] not in self._under_way:
                del self._waiting[key]
                self._under_way.add(key[0])
                return self._gone(job)
        return None

    def done(self, job: QueuedWrite) -> None:
        """A patch in flight has finished (or is put back)."""
        self._under_way.discard(job.key[0])

    def is_under_way(self, uid: str) -> bool:
        return uid in self._under_way

    def overtaken_by_binding(self, uid: str) -> QueuedWrite | None:
        """Take out the waiting patch that a binding of the same pod makes unnecessary."""
        job = self._waiting.pop((uid, names.POD_SCHEDULED), None)
        return None if job is None else self._gone(job)


QUEUES: Final[Mapping[Lane, type[JobQueue]]] = {
    Lane.STATUS: StatusQueue,
    Lane.WRITE: TurnQueue,
}


class LaneState:
    def __init__(self, lane: Lane, concurrency: int, queue_max: int) -> None:
        self.lane = lane
        self.queue: JobQueue = QUEUES.get(lane, JobQueue)(queue_max)
        self.concurrency = concurrency
        self.in_flight_count = 0
        #: Jobs waiting for their next attempt, or for another job.
        self.delayed_count = 0
        self.paused_until_s = 0.0
        #: Since when the client's own rate limit delays this lane; None if it does not.
        self.throttled_since_s: float | None = None
        self.dropped_count = 0

    @property
    def is_idle(self) -> bool:
        return not (self.queue.waiting or self.in_flight_count or self.delayed_count)


def _bytes_of(job: QueuedWrite) -> int:
    """Memory of an event, or of the text of a condition."""
    if job.event is not None:
        return job.event.series.size
    if isinstance(job.effect, PatchPodStatus):
        return getsizeof((job.effect.condition or {}).get("message", ""))
    return 0


def status_key(effect: Effect) -> tuple[str, str]:
    """Pod and condition; a bare nomination uses PodScheduled. A group has one condition."""
    if isinstance(effect, PatchGroupStatus):
        return f"{effect.kind.resource} {effect.namespace}/{effect.name}", ""
    patch = _patch(effect)
    condition: Mapping[str, Any] = patch.condition or {}
    return patch.pod.uid or patch.pod.key, condition.get("type", names.POD_SCHEDULED)


def fold(older: Effect, newer: Effect) -> Effect:
    """One patch with the same result as both in order."""
    if isinstance(newer, PatchGroupStatus):
        return newer
    older, newer = _patch(older), _patch(newer)
    condition = newer.condition
    if older.condition is not None:
        condition = {**older.condition, **(newer.condition or {})}
    nominated = newer.nominated_node_name
    return replace(
        newer,
        condition=condition,
        condition_types=newer.condition_types or older.condition_types,
        nominated_node_name=older.nominated_node_name if nominated is None else nominated,
    )


def _patch(effect: Effect) -> PatchPodStatus:
    assert isinstance(effect, PatchPodStatus)
    return effect


def given_up(job: QueuedWrite, why: str) -> Answer:
    """The answer for a job that will not be tried (again)."""
    return Unknown(job.effect.id, why) if job.maybe_done else not_done(job.effect, why)


def not_done(effect: Effect, why: str) -> Answer:
    """The answer for an effect that was certainly not carried out; a read has no result."""
    if isinstance(effect, ReadPod):
        return Unknown(effect.id, why)
    return Refused(effect.id, 0, why)
