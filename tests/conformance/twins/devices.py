"""The allocator again, without any cleverness: every combination in order, checked when complete.

It reads plain mappings of the API and knows selectors as Python functions, so that it shares
nothing with the search it is compared with.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

Device = dict[str, Any]
#: (request name, device name) in the order of results.
Solution = list[tuple[str, str]]


class Asked(NamedTuple):
    """One alternative of a request. `count` None asks for all."""

    name: str
    count: int | None
    matches: Callable[[Device], bool]
    tolerates: frozenset[str] = frozenset()


class Constraint(NamedTuple):
    requests: frozenset[str]  # empty: all
    attribute: str
    distinct: bool


class Pool(NamedTuple):
    """Devices in order, and the counters they share."""

    devices: list[Device]
    counters: dict[str, int]


def allocate(
    pool: Pool,
    requests: list[list[Asked]],
    constraints: list[Constraint],
    taken: frozenset[str],
) -> Solution | None:
    """The first complete choice that breaks no rule."""
    for choice in _choices(pool, requests, taken):
        if _keeps_counters(pool, choice, taken) and all(
            _holds(pool, constraint, choice) for constraint in constraints
        ):
            return choice
    return None


def _choices(pool: Pool, requests: list[list[Asked]], used: frozenset[str]) -> Iterator[Solution]:
    if not requests:
        yield []
        return
    for asked in requests[0]:
        for names in _sets(pool, asked, used):
            for rest in _choices(pool, requests[1:], used | frozenset(names)):
                yield [(asked.name, name) for name in names] + rest


def _sets(pool: Pool, asked: Asked, used: frozenset[str]) -> Iterator[tuple[str, ...]]:
    wanted = [d["name"] for d in pool.devices if asked.matches(d)]
    tainted = {d["name"] for d in pool.devices if set(_taints(d)) - asked.tolerates}
    free = [name for name in wanted if name not in used and name not in tainted]
    if asked.count is not None:
        yield from combinations(free, asked.count)
    elif wanted and free == wanted:
        yield tuple(wanted)


def _taints(device: Device) -> list[str]:
    return [
        t["key"] for t in device.get("taints", ()) if t["effect"] in ("NoSchedule", "NoExecute")
    ]


def _uses(device: Device, counter: str) -> int:
    return sum(
        int(consumed["counters"].get(counter, {"value": "0"})["value"])
        for consumed in device.get("consumesCounters", ())
    )


def _keeps_counters(pool: Pool, choice: Solution, taken: frozenset[str]) -> bool:
    chosen = {name for _, name in choice}
    uses_any = any(d.get("consumesCounters") for d in pool.devices if d["name"] in chosen)
    if not uses_any:
        return True
    return all(
        sum(_uses(d, counter) for d in pool.devices if d["name"] in chosen | taken) <= amount
        for counter, amount in pool.counters.items()
    )


def _holds(pool: Pool, constraint: Constraint, choice: Solution) -> bool:
    by_name = {device["name"]: device for device in pool.devices}
    values = [
        by_name[name]["attributes"].get(constraint.attribute)
        for request, name in choice
        if not constraint.requests
        or request in constraint.requests
        or request.split("/")[0] in constraint.requests
    ]
    if any(value is None for value in values):
        return False
    told = [str(value) for value in values]
    return len(set(told)) == len(told) if constraint.distinct else len(set(told)) <= 1
