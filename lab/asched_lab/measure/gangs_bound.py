"""Gangs through a real API server compared with the same pods without gangs.

    KUBEBUILDER_ASSETS=... python -m asched_lab.measure.gangs_bound --nodes 500 --pods 2000
    python -m asched_lab.measure.gangs_bound --jobs --size 10 --nodes 500 --pods 3000

With `--jobs` through the embedded server as 1.38, by the defaults of that version: pods of Jobs of
`--size`, each with the Basic PodGroup of v1 that the Job controller makes for it. Both are bound
alternately on one server, by a scheduler with the gates of groups, in every other round the gangs
first; a warm-up round is not counted. The last lines give the medians, their ratio, and the sorted
ratios of all rounds: if these vary widely, the rates are useless, and the requests and the server's
processor time per pod say more. A gang costs the server one write more, its condition.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from asched_lab.measure import real
from asched_lab.measure.crowds import Crowd, JsonObject, indexed_small, plain
from asched_lab.measure.groups import Row as Kind
from asched_lab.measure.groups import group
from asched_lab.measure.measurement import Cluster, EmbeddedServer, Row, measure

#: Fields of a row, and keys of its `extra`.
FIELDS = ("rate", "events_rate", "cpu_ms_per_pod")
COSTS = (
    "requests_per_pod",
    "bytes_in_per_pod",
    "bytes_out_per_pod",
    "client_ms_per_pod",
    "server_ms_per_pod",
)
GATES = "GenericWorkload=true,GangScheduling=true"
SERVED = "scheduling.k8s.io/v1alpha2"


class ServerWithGroups(real.RealServer):
    async def _spawn(self, name: str, *arguments: str) -> Any:
        if name == "kube-apiserver":
            arguments += (f"--feature-gates={GATES}", f"--runtime-config={SERVED}=true")
        return await super()._spawn(name, *arguments)


def crowd(nodes: int, pods: int, size: int, *, of_jobs: bool = False) -> Crowd:
    """A crowd in gangs, or groups of Jobs, of `size`; 0: without groups."""

    def single(index: int, total: int) -> JsonObject:
        return indexed_small(index) if of_jobs else plain(index, total)

    if not size:
        return Crowd(nodes, ((single, pods),))
    kind = Kind(size, is_gang=not of_jobs, of_jobs=of_jobs)
    groups = tuple(group(f"group-{at:06d}", kind) for at in range(-(-pods // size)))
    for pod_group in groups:
        del pod_group["metadata"]["namespace"]  # each run has a namespace of its own

    def member(index: int, total: int) -> JsonObject:
        made = single(index, total)
        made["spec"]["schedulingGroup"] = {"podGroupName": f"group-{index // size:06d}"}
        return made

    return Crowd(nodes, ((member, pods),), own=groups)


async def run(binaries: Path | None, nodes: int, pods: int, size: int, rounds: int) -> None:
    """Without binaries: Jobs, through the embedded server."""
    of_jobs = binaries is None
    rows: dict[str, list[Row]] = {"bare": [], f"{'jobs' if of_jobs else 'gang'}-{size}": []}
    async with contextlib.AsyncExitStack() as stack:
        if binaries is None:
            server: Any = EmbeddedServer("--version=1.38", "--no-controllers")
        else:
            server = ServerWithGroups(binaries)
        await stack.enter_async_context(server)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="asched-bench-"))
        cluster = await Cluster.filled(server.kubeconfig, nodes, Path(folder))
        stack.push_async_callback(cluster.close)
        if not of_jobs:
            cluster.gates, cluster.server_cpu_s = GATES, server.cpu_s
        for number in range(rounds + 1):
            for name in list(rows)[:: 1 if number % 2 else -1]:
                pods_of = crowd(nodes, pods, size * (name != "bare"), of_jobs=of_jobs)
                found = await measure(cluster, name, pods_of)
                if number:
                    rows[name].append(found)
                bound = f"{found.bound} of {found.pods} bound, {found.rate:.0f} and"
                more = f"{found.events_rate:.0f}/s, {found.cpu_ms_per_pod:.3f} ms a pod"
                sys.stdout.write(f"{number} {name}: {bound} {more}, {found.extra}\n")
                sys.stdout.flush()
    bare, gangs = rows.values()
    for what in (*FIELDS, *COSTS):
        sys.stdout.write(
            _compared(what, *[[_of(row, what) for row in each] for each in (bare, gangs)])
        )


def _of(row: Row, what: str) -> float:
    return float(getattr(row, what) if what in FIELDS else row.extra.get(what, 0.0))


def _compared(what: str, bare: list[float], gangs: list[float]) -> str:
    of_bare, of_gangs = median(bare), median(gangs)
    ratio = of_gangs / max(of_bare, 1e-9)
    by_round = sorted(g / max(b, 1e-9) for b, g in zip(bare, gangs, strict=True))
    ratios = ", ".join(f"{each:.2f}" for each in by_round)
    return f"{what}: bare {of_bare:.3f}, gangs {of_gangs:.3f}, ratio {ratio:.3f} ({ratios})\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.gangs_bound", description=__doc__
    )
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", action="store_true", help="Jobs by the defaults of 1.38")
    args = parser.parse_args()
    binaries = None if args.jobs else real.assets()
    if binaries is None and not args.jobs:
        sys.stderr.write("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver\n")
        return 2
    asyncio.run(run(binaries, args.nodes, args.pods, args.size, args.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
