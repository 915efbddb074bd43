"""Bounds: prove by counting and by flow that a gang cannot have places.

Each of them checks less than all rules, so a refutation is certain:

    counting   the places of one class alone; the amounts of one resource together
    flow       pods of each class to rows that take them, no row more pods than it takes of any
               (where a row takes one pod at most, this is a matching, and exact)
"""

from collections import deque
from itertools import pairwise
from typing import Final

import numpy as np

from asched.batch.placement.gang_problem import GangProblem
from asched.core.model.arrays import I64
from asched.core.model.requests import written

#: Distinct kinds of rows up to which the flow is computed. A guess: 20 ms.
FLOW_ROWS_MAX: Final = 4_000


def refuted(problem: GangProblem, names: list[str], resources: list[str]) -> str:
    """Why there is no place for the gang; empty if none is found. `names` of classes, `resources`
    by axis R.
    """
    slots = problem.slots
    places = slots.sum(axis=1).tolist()
    spare = sum(problem.counts) - problem.needed
    lost = 0
    for at, (count, have) in enumerate(zip(problem.counts, places, strict=True)):
        short = count - have
        if short > spare:
            return f"the nodes have places for {have} of {count} pods like {names[at]}"
        lost += max(short, 0)
    if lost > spare:
        return f"the nodes have places for {sum(problem.counts) - lost} of its pods at most"
    return _too_much(problem, resources) or _flow_bound(problem)


def _too_much(problem: GangProblem, resources: list[str]) -> str:
    """Whether all rows that may be used have less of a resource than its cheapest pods need."""
    usable = problem.slots.any(axis=0)
    for at, name in enumerate(resources):
        wanted, _ = problem.cheapest(problem.needs[:, at])
        # Exact: sums of 64 bits over all rows may not fit into 64 bits.
        have = sum(problem.free[at, usable].tolist())
        if have < wanted:
            remaining = f"the nodes that take it have {written(name, have)} left"
            return f"it needs {written(name, wanted)} of {name}, and {remaining}"
    return ""


def _flow_bound(problem: GangProblem) -> str:
    caps = np.minimum(problem.slots.sum(axis=0), _most_pods(problem))
    table = np.vstack((problem.slots, caps))
    kinds, times = np.unique(table, axis=1, return_counts=True)
    if kinds.shape[1] > FLOW_ROWS_MAX:
        return ""
    most = max_flow(list(problem.counts), kinds[:-1] * times, kinds[-1] * times)
    if most < problem.needed:
        return f"at most {most} of its pods have places at a time, and {problem.needed} have to"
    return ""


def _most_pods(problem: GangProblem) -> I64:
    """int64[N]: how many pods of any classes a row takes at most."""
    most = np.full(problem.free.shape[1], sum(problem.counts), dtype=np.int64)
    may = problem.slots > 0
    big = np.iinfo(np.int64).max
    for at, free in enumerate(problem.free):
        smallest = np.where(may, problem.needs[:, at : at + 1], big).min(axis=0)
        np.minimum(most, free // np.maximum(smallest, 1), out=most, where=smallest > 0)
    return most


def max_flow(supply: list[int], edges: I64, room: I64) -> int:
    """How much of `supply` [C] reaches kinds of rows over edges int64[C, K], each of which takes
    no more than `room` [K]. Greedy, then along the shortest improving paths.
    """
    remaining, free = list(supply), room.tolist()
    used = np.zeros_like(edges)
    order = sorted(range(len(supply)), key=lambda c: int(np.count_nonzero(edges[c])))
    for c in order:
        for kind in np.flatnonzero(edges[c]).tolist():
            step = min(remaining[c], free[kind], int(edges[c, kind]))
            used[c, kind] += step
            remaining[c] -= step
            free[kind] -= step
    for c in order:
        while remaining[c] and (step := _improve(c, remaining[c], edges, used, free)):
            remaining[c] -= step
    return sum(supply) - sum(remaining)


def _improve(start: int, most: int, edges: I64, used: I64, free: list[int]) -> int:
    """Move pods of other classes so that some of `start` get a place; how many."""
    takes: dict[int, tuple[int, int]] = {}  # class -> (class that takes its places, kind of these)
    seen: set[int] = set()
    pending = deque([start])
    while pending:
        c = pending.popleft()
        for kind in np.flatnonzero(edges[c] > used[c]).tolist():
            if kind in seen:
                continue
            seen.add(kind)
            if free[kind]:
                path = [(c, kind)]
                while path[-1][0] in takes:
                    path.append(takes[path[-1][0]])
                step = _push(path, min(most, free[kind]), edges, used)
                free[kind] -= step
                return step
            for other in np.flatnonzero(used[:, kind]).tolist():
                if other != start and other not in takes:
                    takes[other] = (c, kind)
                    pending.append(other)
    return 0


def _push(path: list[tuple[int, int]], most: int, edges: I64, used: I64) -> int:
    """Give each class of the path places of its kind, which the class before it gives up."""
    given_up = [(c, kind) for (c, _), (_, kind) in pairwise(path)]
    spare = [int(edges[at] - used[at]) for at in path]
    step = min(most, *spare, *(int(used[at]) for at in given_up))
    for at in path:
        used[at] += step
    for at in given_up:
        used[at] -= step
    return step
