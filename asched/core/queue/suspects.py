"""Suspects: after the death of the previous leader, move the pods that may have caused it back.

A pod whose attempt ends the process would be the first pod again after each restart, and no pod
behind it would ever be tried. Attempts begin in the order of the queue, and each that ends leaves a
trace: a node, or a condition. So the first pod without a trace is the most likely cause, and goes
last. The last traces may have been lost, so each further pod without a trace goes back with
probability 1/2, drawn anew in each run. Pods with a trace keep their places, unless the leader died
shortly after its start: then one of them may be the cause, and the draw covers all pods.

Pods that go back are put in backoff: they are popped when no other pod is due, or after PAUSE_S.
After a leader that released its lease the order stays as it is.

Bounds  one pass over the active pods, which is `sliced`; nothing is written or stored.
"""

from collections.abc import Iterator
from math import floor
from typing import Final

from asched import names
from asched.core.framework.results.draw import scattered
from asched.core.queue.concerned import WAKE_STEPS
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod

#: Longer than a lease: if one of the remaining pods is the cause, the moved pods are not tried by
#: the run that it ends.
PAUSE_S: Final = 30.0
#: In one of this number of runs the most likely cause is drawn like the other pods: it may be
#: harmless, and the cause may be before it whenever it goes last.
TRUST_EVERY: Final = 4
#: Budget steps for a pod that is checked, and for pods that are sorted at once.
LOOKED_AT_STEPS: Final = 0.3
SORT_STEPS: Final = 6.0


def put_behind(queue: SchedulingQueue, now_s: float, life: int, *, died_young: bool) -> None:
    """Move suspects back, before the first attempt. `life`: the number of the run, seeds draws."""
    queue.sliced.do(_putting_behind(queue, now_s, life, died_young=died_young))


def _putting_behind(
    queue: SchedulingQueue, now_s: float, life: int, *, died_young: bool
) -> Iterator[None]:
    places, note = queue.places, queue.sliced.budget.note
    line: list[QueuedPod] = []
    traceless: list[QueuedPod] = []
    for queued in places.active.in_order_by_steps():
        if queued is None:
            note(SORT_STEPS)
        else:
            note(LOOKED_AT_STEPS)
            line.append(queued)
            if queued.pod.condition(names.POD_SCHEDULED) is None:
                traceless.append(queued)
        yield
    suspects = line if died_young else traceless
    trusts = life % TRUST_EVERY == 0
    first = next(iter(traceless or suspects), None) if not trusts else None
    for number, queued in enumerate(suspects):
        if queued is first or scattered(life, number) % 2:
            queued.backoff_until_s = floor(now_s) + PAUSE_S + (queued is first)
            places.into(queued, places.backoff)
            note(WAKE_STEPS)
        note(LOOKED_AT_STEPS)
        yield
