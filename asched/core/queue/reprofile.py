"""Other profiles for a queue that is in use: every waiting pod keeps its place, or a better one.

Pods of a profile that is gone leave. Unschedulable ones are tried again, because whoever rejected
them may be gone, too. What is in flight is not touched.
"""

from collections.abc import Mapping

from asched.core.queue.backoff import Backoff
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue


def reprofile(
    queue: SchedulingQueue,
    profiles: Mapping[str, QueueProfile],
    backoff: Backoff,
    now_s: float,
) -> None:
    """Let the queue go on with these profiles and pauses."""
    queue.learn(profiles, backoff)
    places = queue.places
    places.regroup(queue.gangs.key_of)
    first = next(iter(profiles.values()))
    places.resort(first.sort_key, first.active_queue)
    unschedulable = [queued.pod for queued in places.unschedulable]
    waiting = [
        queued.pod
        for lane in (places.active, places.backoff, places.errors)
        for queued in lane.in_order()
    ]
    for pod in (*unschedulable, *waiting):
        if pod.spec.scheduler_name not in profiles:
            queue.delete(pod)
            queue.nominator.add_of_others(pod)
    queue.activate((pod for pod in unschedulable if pod.spec.scheduler_name in profiles), now_s)
