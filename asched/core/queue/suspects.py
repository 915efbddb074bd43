"""Suspects: when the leader before us died, nobody is first in line for sure.

A pod whose attempt ends the process would be the first one again after each restart, and nobody
behind it would ever be tried. Attempts begin in the order of the queue, and each one that ends
leaves a trace: a node, or a condition. So the first pod without a trace is the likeliest cause: it
goes last. But the last traces may have been lost: of the others without one a coin says which go
behind those that stay, and it falls anew in each life. Whoever has a trace keeps its place, unless
the leader died young: then the cause may be one of these, and the coin falls for all.

Those who go behind stand in backoff: they are taken when nobody else is to be tried, or after
PAUSE_S. A leader that handed the lease on died of nothing: then the order stays as it is.

Bounds  one pass over those that wait, which is `sliced`; nothing is written, nothing is kept.
"""

from collections.abc import Iterator
from math import floor
from typing import Final

from asched import names
from asched.core.framework.results.draw import scattered
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.places import in_line
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod

#: Longer than a lease: if one of those that stay is the cause, the others lose no life by it.
PAUSE_S: Final = 30.0
#: In one of so many lives the likeliest cause gets its coin like the others: it may be harmless,
#: and the cause in front of it whenever it goes last.
TRUST_EVERY: Final = 4
#: Steps of the budget for a pod that is looked at, and for those that are sorted at once.
LOOKED_AT_STEPS: Final = 0.3
SORT_STEPS: Final = 6.0


def put_behind(queue: SchedulingQueue, now_s: float, life: int, *, died_young: bool) -> None:
    """Before the first attempt. `life` is another number in each life: coins fall by it."""
    queue.sliced.do(_putting_behind(queue, now_s, life, died_young=died_young))


def _putting_behind(
    queue: SchedulingQueue, now_s: float, life: int, *, died_young: bool
) -> Iterator[None]:
    places, note = queue.places, queue.sliced.budget.note
    line: list[QueuedPod] = []
    traceless: list[QueuedPod] = []
    for queued in in_line(places.active):
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
