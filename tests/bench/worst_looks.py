"""What runs between turns beside 100,000 placed pods: `python -m tests.bench.worst_looks`.

    python -m tests.bench.worst_looks [--nodes N] [--pods M]

The audit of places, of columns and of all pods against pages of the API server, a pod's history,
and a scrape of /metrics: each goes on between two turns of the deciding loop, in slices. Columns:
how many slices, the longest, and all of them, in processor time of this thread, collector off. A
scrape is rendered in a thread of its own, which the loop can take turns with every 5 ms
(`sys.getswitchinterval`); only what it takes in all is told of it.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from types import SimpleNamespace
from typing import Any, Final

from asched.core.cluster.cluster import Cluster
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.model.kinds import POD
from asched.kube.heads import ObjectHead
from asched.kube.lists import PAGE_SIZE
from asched.ops.audit.objects import _Comparison
from asched.ops.audit.places import Places
from asched.serve.figures import Figures
from asched.serve.inspection import Inspection
from asched.serve.telemetry.metrics import Metrics
from asched_lab.bench.report import commit, machine_line
from tests.bench.view import steps_of
from tests.bench.worst_crowds import a_world
from tests.builders import a_pod
from tests.plays.playbook import Play

Look = Callable[[], Coroutine[Any, Any, Any]]

#: The pod whose history is told; it finds no place.
WAITS: Final = "waits"


class _Pages:
    """What the server tells of all pods that are known, page by page; or an empty list."""

    def __init__(self, cluster: Cluster, *, is_empty: bool) -> None:
        self._pods = [] if is_empty else list(cluster.pods_seen.values())

    async def pages(self, _pause_s: float) -> AsyncIterator[tuple[list[ObjectHead], str]]:
        for start in range(0, len(self._pods), PAGE_SIZE):
            page = self._pods[start : start + PAGE_SIZE]
            await asyncio.sleep(0)  # the answer is waited for
            yield [_head(pod.metadata) for pod in page], "1"
        if not self._pods:
            yield [], "1"


def _head(metadata: Any) -> ObjectHead:
    version = metadata.resource_version
    return ObjectHead(metadata.name, metadata.namespace, metadata.uid, version)


def looks(play: Play) -> dict[str, Look]:
    context = play.machine.context
    none: dict[str, Any] = {}
    dispatcher = SimpleNamespace(lanes=none)
    scheduler: Any = SimpleNamespace(
        machine=play.machine, inbox=(), dispatcher=dispatcher, reflectors=none, tasks=none
    )
    decided = configuration({}, DEFAULT_GATES)
    auditor: Any = None
    inspection = Inspection(context, decided, lambda: True, auditor)
    metrics = Metrics()
    figures = Figures(scheduler, metrics)
    figures._show_upstream(metrics.families)
    figures._show_work(metrics.families)
    places = Places(scheduler)
    reflector: Any = SimpleNamespace(kind=POD, spoken=POD)

    def paged(*, is_empty: bool) -> Look:
        async def compare() -> None:
            comparison = _Comparison(scheduler, reflector, hastes=True)
            comparison._heads = _Pages(context.cluster, is_empty=is_empty)  # type: ignore[assignment]
            await comparison._suspects()

        return compare

    async def scrape() -> None:
        metrics.render()

    metrics.render()  # it imports what it needs
    return {
        "audit: places": lambda: places.pods(hastes=True),
        "audit: columns": lambda: places.columns(hastes=True),
        "audit: pods, page by page": paged(is_empty=False),
        "audit: the server shows none": paged(is_empty=True),
        "a pod and its history": lambda: inspection.explain("default", WAITS),
        "a scrape, in its thread": scrape,
    }


def main(argv: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.worst_looks", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000, metavar="N")
    parser.add_argument("--pods", type=int, default=100_000, metavar="M")
    args = parser.parse_args(None if argv is None else list(argv))
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    play = a_world(args.nodes, args.pods)
    play.see(a_pod(WAITS).requests(cpu="1000"))
    gc.collect()
    gc.freeze()
    gc.disable()
    print(f"{'look':32} {'slices':>7} {'longest ms':>11} {'sum ms':>8}")
    for name, look in looks(play).items():
        taken, _ = steps_of(look())
        print(f"{name:32} {len(taken):>7} {max(taken):>11.1f} {sum(taken):>8.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
