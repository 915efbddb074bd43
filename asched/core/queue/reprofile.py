"""Replace the profiles of a queue in use. Waiting pods keep their places, or are tried earlier.

Pods of a removed profile leave the queue. Unschedulable pods are tried again, because the plugins
that rejected them may be removed, too. Pods in flight are not touched. The work is sliced, since
a hundred thousand pods may wait.
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
    """Let the queue continue with these profiles and backoff times."""
    queue.learn(profiles, backoff)
    queue.sliced_work.do(_moving_over(queue, profiles, now_s))


def _moving_over(
    queue: SchedulingQueue, profiles: Mapping[str, QueueProfile], now_s: float
) -> Iterator[None]:
    places, note = queue.places, queue.sliced_work.budget.note
    rested: list[QueuedPod] = []
    for queued in tuple(places.unschedulable):
        if not _leaves(queue, queued, profiles):
            places.unschedulable.discard(queued)
            queue.classify(queued)
            rested.append(queued)
        note(WAKE_STEPS)
        yield
    for queued in places.resort(next(iter(profiles.values()))):
        heap = queued.heap
        if heap is not None and not _leaves(queue, queued, profiles):
            places.leave(queued)  # its group may be another one by the new rules
            queue.classify(queued)
            places.into(queued, heap)
        note(WAKE_STEPS)
        yield
    for queued in rested:
        queue.try_again(queued, now_s)
        note(WAKE_STEPS)
        yield


def _leaves(
    queue: SchedulingQueue, queued: QueuedPod, profiles: Mapping[str, QueueProfile]
) -> bool:
    """Whether the pod's profile was removed. Such a pod is then treated as another scheduler's."""
    pod = queued.pod
    if pod.spec.scheduler_name in profiles:
        return False
    queue.delete(pod)
    queue.nominator.add_of_others(pod)
    return True
