"""Other profiles for a queue that is in use: every waiting pod keeps its place, or a better one.

Pods of a profile that is gone leave. Unschedulable ones are tried again, because whoever rejected
them may be gone, too. What is in flight is not touched. All of it is `sliced`: a hundred thousand
may wait.
"""

from collections.abc import Iterator, Mapping

from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod


def reprofile(
    queue: SchedulingQueue,
    profiles: Mapping[str, QueueProfile],
    backoff: BackoffTimes,
    now_s: float,
) -> None:
    """Let the queue go on with these profiles and pauses."""
    queue.learn(profiles, backoff)
    queue.sliced.do(_moving_over(queue, profiles, now_s))


def _moving_over(
    queue: SchedulingQueue, profiles: Mapping[str, QueueProfile], now_s: float
) -> Iterator[None]:
    places, note = queue.places, queue.sliced.budget.note
    rested: list[QueuedPod] = []
    for queued in tuple(places.unschedulable):
        if not _leaves(queue, queued, profiles):
            places.unschedulable.discard(queued)
            queue.classify(queued)
            rested.append(queued)
        note(WAKE_STEPS)
        yield
    first = next(iter(profiles.values()))
    for queued in places.resort(first.sort_key, first.active_queue):
        if not _leaves(queue, queued, profiles):
            queue.classify(queued)
        note(WAKE_STEPS)
        yield
    for queued in rested:
        queue.try_again(queued, now_s)
        note(WAKE_STEPS)
        yield


def _leaves(
    queue: SchedulingQueue, queued: QueuedPod, profiles: Mapping[str, QueueProfile]
) -> bool:
    """Whether its profile is gone. Another scheduler may place it from now on."""
    pod = queued.pod
    if pod.spec.scheduler_name in profiles:
        return False
    queue.delete(pod)
    queue.nominator.add_of_others(pod)
    return True
