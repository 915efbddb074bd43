"""Choose the candidate node whose victims cost least.

    1  the fewest victims that a disruption budget protects
    2  the least important of the most important victims
    3  the smallest sum of priorities, each shifted by 2^31 so that more victims weigh more
    4  the fewest victims
    5  the latest start among the earliest-started victims of the highest priority
    6  among equals, by the seed

Each rule chooses among the candidates that the rule before has left.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption (pickOneNodeForPreemption)
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.pods import PodInfo
from asched.core.framework.preemption_trial import Candidate
from asched.core.model.arrays import I64, Indices, Mask
from asched.core.preemption.pods_by_priority import NOW, start_of

#: Makes every priority of the API positive.
PRIORITY_SHIFT: Final = 1 << 31


class Cost(NamedTuple):
    """Cost of evicting on a node; smaller is better, and earlier fields take precedence.

    `start` is the negated start of the earliest-started victim of the highest priority.
    """

    violations: int
    priority: int
    total: int
    number: int
    start: int


def cost_of(victims: Sequence[PodInfo], violations: int) -> Cost:
    """Cost of a node; `victims` are not empty, the most important first."""
    top = victims[0].pod.priority
    earliest = min(start_of(info) for info in victims if info.pod.priority == top)
    total = sum(info.pod.priority + PRIORITY_SHIFT for info in victims)
    return Cost(violations, top, total, len(victims), -earliest)


def cheapest(costs: I64, rows: Indices) -> Indices:
    """The rows that share the lowest cost, at least one; `costs` is int64[5, N] in the order of
    `Cost`.
    """
    cheapest_rows = rows
    for values in costs:
        if len(cheapest_rows) == 1:
            break
        field = values[cheapest_rows]
        cheapest_rows = cheapest_rows[field == field.min()]
    return cheapest_rows


def best_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """All candidates that share the lowest cost; there is at least one, each with victims."""
    costs = [cost_of(candidate.victims, candidate.violations) for candidate in candidates]
    lowest = min(costs)
    return [c for c, cost in zip(candidates, costs, strict=True) if cost == lowest]


def costs_of(victims: Mask, violating: Mask, priorities: I64, starts: I64) -> I64:
    """`Cost` of many rows at once: int64[5, S] of bool[K, S] and int64[K, S] by slot."""
    lowest = np.iinfo(np.int64).min
    top = np.where(victims, priorities, lowest).max(axis=0, initial=lowest)
    starts = np.where(victims & (priorities == top), starts, NOW)
    return np.stack(
        (
            violating.sum(axis=0),
            top,
            np.where(victims, priorities + PRIORITY_SHIFT, 0).sum(axis=0),
            victims.sum(axis=0),
            -starts.min(axis=0, initial=NOW),
        )
    )
