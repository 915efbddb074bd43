"""`make bench ARGS="--beside kube-scheduler"`: asched and kube-scheduler, alternating on one API
server.

Each round binds the same waiting pods once with each. Both are the user system:kube-scheduler, so
that the API server serves their requests alike, and the first to hold the lease, as in a new
cluster, where asched seals the waiting pods before it binds (`host/seal.py`). The server is
measured with its default priority and fairness, and once more without limits.
"""

# ruff: noqa: T201 - a command prints

import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from asched.cli.commands import installed_version
from asched_lab.apiserver.resources import find
from asched_lab.bench.processes import KUBE_SCHEDULER, Process
from asched_lab.bench.report import commit
from asched_lab.measure import real
from asched_lab.measure.crowds import SHAPES, Crowd
from asched_lab.measure.measurement import CONFIG, SCHEDULER, Cluster, Row, measure

#: Those of README.md.
WORKLOADS: Final = ("plain", "affinity", "spread", "mixed")
#: Settings of the API server -> whether it has its default limits.
SERVERS: Final = {"default": True, "unlimited": False}
#: Of the lease, which the user may write.
NAMESPACE: Final = "kube-system"
#: Requests per second, in place of kube-scheduler's 50.
RATE: Final = 5000
SETTINGS: Final = {
    "asched": "defaults",
    KUBE_SCHEDULER: f"defaults, but `clientConnection.qps` and `burst` {RATE:,} (50 and 100)",
}


class Runs(NamedTuple):
    """The rows of one workload on one server: one per round and scheduler."""

    workload: str
    server: str
    asched: list[Row]
    kube_scheduler: list[Row]


def binary(folder: Path | None) -> Path | None:
    """kube-scheduler, if it is beside etcd and kube-apiserver."""
    path = None if folder is None else folder / KUBE_SCHEDULER
    return path if path is not None and path.exists() else None


def versions(folder: Path) -> str:
    """Those of all programs, in one line."""
    named = [f"asched {installed_version()} ({commit() or 'unknown commit'})"]
    for name in (KUBE_SCHEDULER, "kube-apiserver", "etcd"):
        command = (str(folder / name), "--version")
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        named.append(f"{name} {shown.split()[-1 if name != 'etcd' else 2].lstrip('v')}")
    return ", ".join(named)


async def run(
    folder: Path, workloads: Iterable[str], nodes: int, pods: int, rounds: int
) -> list[Runs]:
    """Measure all, each row printed when it is done."""
    found = []
    for server, is_limited in SERVERS.items():
        print(f"# API server: {server}", flush=True)
        async with real.RealServer(folder, is_limited=is_limited) as started:
            with tempfile.TemporaryDirectory(prefix="asched-bench-") as work:
                cluster = await Cluster.filled(started.kubeconfig, nodes, Path(work))
                try:
                    for workload in workloads:
                        crowd = Crowd(nodes, ((SHAPES[workload], pods),))
                        runs = Runs(workload, server, [], [])
                        for _ in range(rounds):
                            await _round(cluster, started, crowd, runs)
                        found.append(runs)
                finally:
                    await cluster.close()
    return found


async def _round(cluster: Cluster, server: real.RealServer, crowd: Crowd, runs: Runs) -> None:
    schedulers = ((_asched, runs.asched), (_kube_scheduler, runs.kube_scheduler))
    for scheduler, rows in schedulers:
        await cluster.api.delete(find("leases"), NAMESPACE, KUBE_SCHEDULER)
        row = await measure(cluster, runs.workload, crowd, scheduler=scheduler(server))
        rows.append(row)
        name = "asched" if rows is runs.asched else KUBE_SCHEDULER
        print(
            f"{runs.workload:16}{name:16}{row.bound:>8} bound {row.rate:>8.0f}/s"
            f"{row.events:>8} events {row.events_rate:>8.0f}/s  first {row.first_s:.2f} s"
            f"  CPU {row.cpu_ms_per_pod:.3f} ms/pod  RSS {row.peak_rss_mb:.0f} MB",
            flush=True,
        )


def _asched(server: real.RealServer) -> Callable[[Cluster], Process]:
    def process(cluster: Cluster) -> Process:
        file = _configuration(cluster, server, {})
        arguments = ("run", f"--config={file}", "--secure-port=0")
        return Process.of_asched("asched", arguments, cluster.folder / "asched.log")

    return process


def _kube_scheduler(server: real.RealServer) -> Callable[[Cluster], Process]:
    def process(cluster: Cluster) -> Process:
        file = _configuration(cluster, server, {"qps": RATE, "burst": RATE})
        flags = (f"--config={file}", "--secure-port=0")
        return Process.of_kube_scheduler(server.binaries, server.kubeconfig, flags, cluster.folder)

    return process


def _configuration(cluster: Cluster, server: real.RealServer, client: dict[str, int]) -> Path:
    document = yaml.safe_load(CONFIG)
    document["clientConnection"] = {"kubeconfig": server.scheduler_kubeconfig, **client}
    lease = {"resourceName": KUBE_SCHEDULER, "resourceNamespace": NAMESPACE}
    document["leaderElection"] = {"leaderElect": True, **lease}
    document["profiles"] = [{"schedulerName": SCHEDULER}]
    file = cluster.folder / "beside.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file
