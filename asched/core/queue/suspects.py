"""Suspects: after leaders ended one after the other, try the pod that may be the cause later.

A pod whose attempt ends the process would be the first pod again after each restart, and no pod
behind it would ever be tried. A single end nearly always has another cause: a node loses power, a
process is killed. So pods are tried in the order of the queue until ENDS_MIN leaders have ended
within `leader.election.UNCLEAN_S`. From then on each new leader tries one pod, or group, later:

    ENDS_MIN, ENDS_MIN + 2, …   the first pod without a condition: attempts begin in the order of
                                the queue, and each that ends leaves a node or a condition
    ENDS_MIN + 1, …             one of the others, drawn by the number of ends: the last conditions
                                may have been lost, or a later attempt ends the process

The pod goes behind the others of its priority. Only if there is none behind it, it is put in
backoff: it is popped when no other pod is due, or after PAUSE_S, so that pods of lower priority are
tried before it.

Bounds  one pass over the active pods, which is sliced; nothing is written or stored.
"""

from collections.abc import Callable, Iterator
from math import floor
from typing import Final

from asched import names
from asched.core.framework.results.draw import scattered
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.heap import CHECK_STEPS, SORT_STEPS
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod

#: Ends of leaders after which a pod is suspected.
ENDS_MIN: Final = 3
#: Longer than a lease: the other pods are tried before the suspect can end the process again.
PAUSE_S: Final = 30.0


def try_later(
    queue: SchedulingQueue, now_s: float, ends: int, chosen: Callable[[QueuedPod], None]
) -> None:
    """Choose the suspect of this many ends and move it, before the first attempt; then call
    `chosen` with it.
    """
    if ends >= ENDS_MIN:
        queue.sliced_work.do(_trying_later(queue, now_s, ends, chosen))


def _trying_later(
    queue: SchedulingQueue, now_s: float, ends: int, chosen: Callable[[QueuedPod], None]
) -> Iterator[None]:
    note = queue.sliced_work.budget.note
    pods: list[QueuedPod] = []
    for queued in queue.places.active.in_order_by_steps():
        note(SORT_STEPS if queued is None else CHECK_STEPS)
        if queued is not None:
            pods.append(queued)
        yield
    if not pods:
        return
    first = next((q for q in pods if q.pod.condition(names.POD_SCHEDULED) is None), pods[0])
    suspect, others = first, [queued for queued in pods if queued is not first]
    if (ends - ENDS_MIN) % 2 and others:
        suspect = others[scattered(ends, len(others)) % len(others)]
    unit = [q for q in pods if q is suspect or (q.gang and q.gang == suspect.gang)]
    last = pods.index(unit[-1])
    has_equals = any(q.pod.priority == suspect.pod.priority for q in pods[last + 1 :])
    for queued in unit:
        if has_equals:
            queue.put_behind(queued, now_s)
        else:
            queue.postpone(queued, floor(now_s) + PAUSE_S)
        note(WAKE_STEPS)
        yield
    chosen(suspect)
