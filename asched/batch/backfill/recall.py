"""Promises that an earlier process made: what the conditions of pods tell of them.

A promise is not written down but for what its pods are told, `told`. Whoever begins to lead reads
that once. Those to whom a start was promised are tried before all others of their priority, and if
their start is later now, they are told so with the cause.

Bounds  one pass over the pods; RECALLED_MAX owners, those who were to start first.
"""

import re
from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

from asched.batch.backfill.keeping import WAITING_MAX, StartTimes, owner_of
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds, rfc3339
from asched.core.state.reservations import Reservation, StartOrder

RECALLED_MAX: Final = WAITING_MAX
POD_SCHEDULED: Final = "PodScheduled"
STARTED_ANEW: Final = "the scheduler was started anew"
_TOLD: Final = re.compile(
    r"; expected to start by (\S{20}) \((?:hard|soft)\)(?:, not by (\S{20}): ([^;]+))?"
)


class Recalled(NamedTuple):
    """A start by which an owner was told to begin, and why that is later than the first one."""

    start_s: float
    first_s: float
    cause: str


def told(one: Reservation | None) -> str:
    """What the pods of a reservation hear, behind why they have no place now."""
    if one is None:
        return ""
    certainty = "hard" if one.is_hard else "soft"
    text = f"; expected to start by {rfc3339(one.start_s + 1)} ({certainty})"
    if one.cause and one.start_s > one.first_s:
        text += f", not by {rfc3339(one.first_s + 1)}: {one.cause}"
    return text


def read(pod: Pod) -> Recalled | None:
    """What a pod was told, if that was a start."""
    for condition in pod.status.conditions or ():
        found = _TOLD.search(condition.message) if condition.type == POD_SCHEDULED else None
        if found is not None:
            try:
                start_s = microseconds(found[1]) / 1e6
                first_s = microseconds(found[2]) / 1e6 if found[2] else start_s
            except ValueError:
                return None
            return Recalled(start_s, first_s, found[3] or STARTED_ANEW)
    return None


def recall(context: SchedulerContext) -> None:
    """Let those who were promised a start be the first to be promised one again."""
    kept = context.cluster.singleton(StartTimes.of)
    kept.has_recalled = True
    found: dict[str, tuple[Recalled, Pod]] = {}
    for pod in context.cluster.pods_seen.values():
        if pod.spec.node_name or pod.spec.scheduler_name not in kept.args:
            continue
        one = read(pod)
        if one is not None:
            found.setdefault(owner_of(context, pod), (one, pod))
    for owner, (one, pod) in _first(found):
        kept.lost[owner] = one.first_s, one.cause
        kept.recalled.add(owner)
        kept.numbers += 1
        order = StartOrder(-pod.priority, -inf, kept.numbers)
        kept.waiting[owner] = order, pod.key


def _first(
    found: Mapping[str, tuple[Recalled, Pod]],
) -> list[tuple[str, tuple[Recalled, Pod]]]:
    by_start = sorted(found.items(), key=lambda item: (item[1][0].start_s, item[0]))
    return by_start[:RECALLED_MAX]
