"""Why pods wait: all queued pods, grouped by the result of their last attempt.

Two pods are in one group if the same plugins gave the same reasons, for any number of nodes, or if
the same plugin gates them.

Bounds  GROUPS_MAX groups are shown, and EXAMPLES_MAX pods of each; REASONS_MAX different reasons
        are distinguished, further ones count together. Linear in the waiting pods, in slices.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from asched.core.cycle.decision_records import RecordedRejection
from asched.core.cycle.history import DecisionStep, Histories
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod
from asched.serve.view.slices import in_slices

GROUPS_MAX: Final = 50
EXAMPLES_MAX: Final = 10
REASONS_MAX: Final = 1_000
#: Maximum length of a reason, which users' plugins choose.
REASON_CHARS: Final = 300
#: Verdicts shown per group, those of most nodes first.
VERDICTS_MAX: Final = 8

RESULTS: Final = (DecisionStep.REJECTED, DecisionStep.ERROR, DecisionStep.FAILED)
NOT_TRIED: Final = ("", "not tried yet")
OTHERS: Final = ("", "other reasons")

#: ((plugin, reason) ...)
Why = tuple[tuple[str, str], ...]


class _Group(msgspec.Struct):
    pods: int = 0
    oldest_s: float = 0.0
    examples: list[str] = msgspec.field(default_factory=list)


def why_of(queued: QueuedPod, histories: Histories) -> Why:
    """Why a pod waits, by its last attempt."""
    if queued.gated_by:
        return ((queued.gated_by, "gates it before the first attempt"),)
    line = histories.newest(queued.key, RESULTS)
    if line is None:
        if queued.rejectors:  # the history has been dropped
            return tuple((plugin, "") for plugin in sorted(queued.rejectors))
        return (NOT_TRIED,)
    if line.step is DecisionStep.REJECTED:
        summary = RecordedRejection(*line.details).summary
        return tuple(sorted({(plugin, reason[:REASON_CHARS]) for plugin, _, reason, _ in summary}))
    return (("", str(line.details)[:REASON_CHARS]),)


async def grouped(queue: SchedulingQueue, histories: Histories, now_s: float) -> dict[str, Any]:
    """The largest groups first; `now_s` is the queue's time."""
    groups: dict[Why, _Group] = {}
    pods = queue.places.all()
    async for part in in_slices(pods):
        for queued in part:
            why = why_of(queued, histories)
            group = groups.get(why)
            if group is None:
                why = why if len(groups) < REASONS_MAX else (OTHERS,)
                group = groups.setdefault(why, _Group(oldest_s=queued.timestamp_s))
            group.pods += 1
            since_s = queued.initial_attempt_s or queued.timestamp_s
            group.oldest_s = min(group.oldest_s, since_s)
            if len(group.examples) < EXAMPLES_MAX:
                group.examples.append(queued.key)
    most = sorted(groups.items(), key=lambda item: -item[1].pods)[:GROUPS_MAX]
    shown = sum(group.pods for _, group in most)
    return {
        "pods": len(pods),
        "groups": [_described(why, group, histories, now_s) for why, group in most],
        "otherGroups": len(groups) - len(most),
        "otherPods": len(pods) - shown,
    }


def _described(why: Why, group: _Group, histories: Histories, now_s: float) -> Mapping[str, Any]:
    """Node counts are those of the first example."""
    counts: dict[tuple[str, str], int] = {}
    line = histories.newest(group.examples[0], (DecisionStep.REJECTED,))
    if line is not None:
        for plugin, _, reason, nodes in RecordedRejection(*line.details).summary:
            key = plugin, reason[:REASON_CHARS]
            counts[key] = counts.get(key, 0) + nodes
    verdicts: Sequence[tuple[str, str]] = sorted(why, key=lambda reason: -counts.get(reason, 0))
    return {
        "pods": group.pods,
        "oldestSeconds": round(max(now_s - group.oldest_s, 0.0), 1),
        "reasons": [
            {"plugin": plugin, "reason": reason, "nodes": counts.get((plugin, reason), 0)}
            for plugin, reason in verdicts[:VERDICTS_MAX]
        ],
        "otherReasons": max(len(verdicts) - VERDICTS_MAX, 0),
        "examples": group.examples,
    }
