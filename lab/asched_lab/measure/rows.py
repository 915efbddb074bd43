"""The rows of the table: each by name, with the crowd it is measured on."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from asched.kube.codec import INITIAL_EVENTS_END
from asched_lab.bench.api import PODS_PATH
from asched_lab.measure import engine, measurement, shapes
from asched_lab.measure.crowds import (
    HIGH,
    SHAPES,
    TEAM,
    Crowd,
    JsonObject,
    alike,
    drawn_to_teams,
    giant,
    high,
    indexed,
    low,
    plain,
    running,
    sized,
    stateful,
)
from asched_lab.measure.measurement import Cluster, Row

ARRIVAL_PER_SECOND = 300.0
ARRIVAL_S = 10.0
#: More than can be bound before events get their share, on any machine measured so far.
LONG_PODS = 20_000


@dataclass(frozen=True)
class Sizes:
    """Sizes that the command line may change."""

    nodes: int
    pods: int


@dataclass(frozen=True)
class BoundRow:
    """A row through an API server. `own_server`: it has a cluster of its own."""

    text: str
    nodes: Callable[[Sizes], int]
    run: Callable[[Cluster, str, Sizes], Awaitable[Row]]
    own_server: bool = False
    is_compared: bool = True
    #: Number of pods that the bare client gets.
    pods: Callable[[Sizes], int] = lambda sizes: sizes.pods


def _shape(name: str) -> BoundRow:
    maker = SHAPES[name]

    async def run(cluster: Cluster, row: str, sizes: Sizes) -> Row:
        return await measurement.measure(cluster, row, Crowd(sizes.nodes, ((maker, sizes.pods),)))

    return BoundRow(f"waiting {name} pods", lambda sizes: sizes.nodes, run)


async def _long(cluster: Cluster, name: str, sizes: Sizes) -> Row:
    return await measurement.measure(cluster, name, Crowd(sizes.nodes, ((plain, LONG_PODS),)))


async def _wall(cluster: Cluster, name: str, sizes: Sizes) -> Row:
    crowd = Crowd(sizes.nodes, ((giant, 2000), (plain, 2000)))
    row = await measurement.measure(cluster, name, crowd)
    row.extra["bar"] = "last binding at most 5 s after start"
    return row


async def _preemption(cluster: Cluster, name: str, _: Sizes) -> Row:
    crowd = Crowd(500, ((high, 500),), placed=(low, 2000), also=(HIGH,))
    is_bare = name == "preemption-bare"
    row = await measurement.measure(cluster, name, crowd, is_bare=is_bare)
    row.extra["per_second_from_start"] = round(row.bound / max(row.last_s, 1e-9), 1)
    return row


async def _arrival(cluster: Cluster, name: str, sizes: Sizes) -> Row:
    is_bare = name == "arrival-bare"
    row = await measurement.measure_arrival(
        cluster, name, ARRIVAL_PER_SECOND, ARRIVAL_S, is_bare=is_bare
    )
    row.nodes = sizes.nodes
    return row


async def _start(cluster: Cluster, name: str, _: Sizes) -> Row:
    crowd = Crowd(5000, ((plain, 1000),), placed=(running, 49_000))
    row = await measurement.measure(cluster, name, crowd)
    row.extra["pods_received_s"] = await _receiving_s(cluster)
    return row


async def _receiving_s(cluster: Cluster) -> float:
    """The time in which a client that only reads receives all pods, as a streaming list if the
    server has it: a lower bound for a scheduler's start.
    """
    streaming = (
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true"
    )
    end, began_s = INITIAL_EVENTS_END.encode(), 0.0
    for query in (streaming, "resourceVersion=0"):
        began_s, last = time.monotonic(), b""
        path = f"{PODS_PATH}?{query}"
        async with cluster.api.session.general.stream(
            path, timeout_s=measurement.STUCK_S
        ) as stream:
            async for piece in stream.chunks():
                last = last[-len(end) :] + piece
                if end in last:
                    break
            if stream.status == HTTPStatus.OK:
                break
    return round(time.monotonic() - began_s, 2)


BOUND: dict[str, BoundRow] = {
    **{name: _shape(name) for name in SHAPES},
    "long": BoundRow(
        "plain pods for longer than any event waits",
        lambda sizes: sizes.nodes,
        _long,
        pods=lambda _: LONG_PODS,
    ),
    "wall": BoundRow("2,000 that fit behind 2,000 that fit nowhere", lambda a: a.nodes, _wall),
    "preemption": BoundRow(
        "500 preemptors on 500 full nodes", lambda _: 500, _preemption, True, False
    ),
    "preemption-bare": BoundRow(
        "the same writes by the bare client", lambda _: 500, _preemption, True, False
    ),
    "arrival": BoundRow(
        "a stream of 300 pods a second", lambda a: a.nodes, _arrival, is_compared=False
    ),
    "arrival-bare": BoundRow(
        "the same stream, bound by the bare client",
        lambda a: a.nodes,
        _arrival,
        is_compared=False,
    ),
    "start": BoundRow("start at 5,000 nodes and 50,000 pods", lambda _: 5000, _start, True, False),
}


def _decide(crowd: Crowd) -> Callable[[str], Awaitable[Row]]:
    return lambda name: engine.measure(name, crowd)


def _freed(kind: Callable[[int], JsonObject]) -> Callable[[str], Awaitable[Row]]:
    return lambda name: engine.measure_freed_places(name, kind, pods=90, cpus=8)


#: Rows in process. The sizes are those of the bars, not of the command line.
DECIDED: dict[str, Callable[[str], Awaitable[Row]]] = {
    **{
        f"decide-{name}": _decide(
            Crowd(5000, ((maker, 10_000 if name != "anti-affinity" else 5000),))
        )
        for name, maker in SHAPES.items()
    },
    "decide-namespace-selectors": _decide(Crowd(5000, ((drawn_to_teams, 5000),), also=(TEAM,))),
    "decide-preemption": _decide(Crowd(1000, ((high, 1000),), placed=(low, 4000), also=(HIGH,))),
    **{
        f"decide-freed-places{suffix}": _freed(kind)
        for suffix, kind in {
            "": alike,
            "-indexed": indexed,
            "-stateful": stateful,
            "-sizes": sized,
        }.items()
    },
    "decide-freed-places-gangs": lambda name: engine.measure_freed_gangs(name, 1000, 10, rounds=10),
    **shapes.ROWS,
    "decide-100k-nodes": _decide(Crowd(100_000, ((plain, 20_000),))),
    "decide-150k-running": _decide(Crowd(5000, ((plain, 10_000),), placed=(running, 150_000))),
}

#: The seven of the first bar.
SEVEN = ("plain", "affinity", "anti-affinity", "preferred", "spread", "soft-spread", "mixed")
EVERY = (*BOUND, *DECIDED)
GROUPS = {
    "seven": SEVEN,
    "special": (
        "long",
        "wall",
        "preemption",
        "preemption-bare",
        "arrival",
        "arrival-bare",
        "start",
    ),
    "decide": tuple(DECIDED),
    "all": EVERY,
}
