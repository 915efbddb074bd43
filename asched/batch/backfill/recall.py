"""Recall the promises of an earlier process from the conditions of its pods.

A promise is stored in its pods' conditions only, in the text of `start_text`. A new leader reads it
once. Owners with such a promise are tried before other owners of their priority, and if their start
is later now, the condition names the cause.

Bounds  one pass over the pods; RECALLED_MAX owners, the earliest starts first.
"""

import re
from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

from asched.batch.backfill.keeping import WAITING_MAX, StartTimes, owner_of
from asched.batch.backfill.reservations import Reservation, StartOrder
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds, rfc3339

RECALLED_MAX: Final = WAITING_MAX
POD_SCHEDULED: Final = "PodScheduled"
STARTED_ANEW: Final = "the scheduler was started anew"
_START_TEXT: Final = re.compile(
    r"; expected to start by (\S{20}) \((?:hard|soft)\)(?:, not by (\S{20}): ([^;]+))?"
)


class Recalled(NamedTuple):
    """A promised start, the start that was promised first, and why they differ."""

    start_s: float
    first_s: float
    cause: str


def start_text(reservation: Reservation | None) -> str:
    """The end of the message of a reservation's pods, after why they have no place now."""
    if reservation is None:
        return ""
    certainty = "hard" if reservation.is_hard else "soft"
    text = f"; expected to start by {rfc3339(reservation.start_s + 1)} ({certainty})"
    if reservation.cause and reservation.start_s > reservation.first_s:
        text += f", not by {rfc3339(reservation.first_s + 1)}: {reservation.cause}"
    return text


def read(pod: Pod) -> Recalled | None:
    """Read a promised start from a pod's condition; None if there is none."""
    for condition in pod.status.conditions or ():
        found = _START_TEXT.search(condition.message) if condition.type == POD_SCHEDULED else None
        if found is not None:
            try:
                start_s = microseconds(found[1]) / 1e6
                first_s = microseconds(found[2]) / 1e6 if found[2] else start_s
            except ValueError:
                return None
            return Recalled(start_s, first_s, found[3] or STARTED_ANEW)
    return None


def recall(context: SchedulerContext) -> None:
    """Queue the owners of recalled promises before other owners of their priority."""
    kept = context.cluster.singleton(StartTimes.of)
    kept.has_recalled = True
    found: dict[str, tuple[Recalled, Pod]] = {}
    for pod in context.cluster.pods_seen.values():
        if pod.spec.node_name or pod.spec.scheduler_name not in kept.args:
            continue
        recalled = read(pod)
        if recalled is not None:
            found.setdefault(owner_of(context, pod), (recalled, pod))
    for owner, (recalled, pod) in _first(found):
        kept.lost[owner] = recalled.first_s, recalled.cause
        kept.recalled.add(owner)
        kept.numbers += 1
        order = StartOrder(-pod.priority, -inf, kept.numbers)
        kept.waiting[owner] = order, pod.key


def _first(
    found: Mapping[str, tuple[Recalled, Pod]],
) -> list[tuple[str, tuple[Recalled, Pod]]]:
    by_start = sorted(found.items(), key=lambda item: (item[1][0].start_s, item[0]))
    return by_start[:RECALLED_MAX]
