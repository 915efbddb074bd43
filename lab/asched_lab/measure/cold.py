"""How many pods are bound by schedulers that are killed repeatedly.

    KUBEBUILDER_ASSETS=… python -m asched_lab.measure.cold [--nodes N] [--pods M] [--life S]
                                                           [--lives L] [--with-a-lease]

A real API server has N nodes and M waiting pods. A scheduler is started, killed with SIGKILL S
seconds later, and started again, L times; then kube-scheduler is, on the same nodes with pods of
its own, and so on alternately. One line per start: pods bound, time of the first binding, processor
time of the process by then (sampled every SAMPLE_S) and at its end, and the machine's load. With
`--with-a-lease` both elect leaders as by default: a killed process still holds its lease.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from asched_lab.bench.processes import Process
from asched_lab.bench.report import commit, machine_line
from asched_lab.measure.crowds import plain
from asched_lab.measure.measurement import SCHEDULER, Cluster
from asched_lab.measure.real import RealServer, assets

SAMPLE_S = 0.01
CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: {elects}, resourceName: {name}}}
profiles: [{{schedulerName: {name}}}]
"""


async def run_starts(cluster: Cluster, who: str, binary: Path, args: argparse.Namespace) -> int:
    """Start and kill one scheduler repeatedly; return the number of pods bound."""
    name = f"{SCHEDULER}-{who}"
    namespace = await cluster.new_namespace()
    pods = [plain(index, 0) for index in range(args.pods)]
    for pod in pods:
        pod["spec"]["schedulerName"] = name
    await cluster.create(pods, namespace)
    file = cluster.folder / f"{who}.yaml"
    elects = str(args.with_a_lease).lower()
    file.write_text(CONFIG.format(kubeconfig=cluster.kubeconfig, elects=elects, name=name))
    flags = (f"--config={file}", "--secure-port=0")
    total = 0
    for number in range(args.lives):
        log = cluster.folder / f"{who}-{number}.log"
        if who == "asched":
            process = Process.of_asched(who, ("run", *flags), log)
        else:
            process = Process(who, (str(binary), *flags), log)
        known = len(cluster.bound_at_s)
        await process.start()
        try:
            until_s, first_cpu_s = process.started_s + args.life, None
            while time.monotonic() < until_s:
                await asyncio.sleep(SAMPLE_S)
                if first_cpu_s is None and len(cluster.bound_at_s) > known:
                    first_cpu_s = process.usage().get("cpu_s", 0.0)
            spent_s = process.usage().get("cpu_s", 0.0)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            await process.stop()
        await asyncio.sleep(1.0)  # the watch delivers what was written
        bound_s = list(cluster.bound_at_s.values())[known:]
        total += len(bound_s)
        first = f"{min(bound_s) - process.started_s:.2f}" if bound_s else "-"
        first_cpu = "-" if first_cpu_s is None else f"{first_cpu_s:.2f}"
        print(
            f"{who:15} {number + 1:>5} {len(bound_s):>6} {first:>8} {first_cpu:>6}"
            f" {spent_s:>7.2f} {os.getloadavg()[0]:>6.1f}",
            flush=True,
        )
    await cluster.empty(namespace)
    return total


async def compare(args: argparse.Namespace, binaries: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="asched-cold-") as folder:
        async with RealServer(binaries) as server:
            cluster = await Cluster.filled(server.kubeconfig, args.nodes, Path(folder))
            try:
                return {
                    who: await run_starts(cluster, who, binaries / "kube-scheduler", args)
                    for who in ("asched", "kube-scheduler") * args.rounds
                }
            finally:
                await cluster.close()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.cold",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=1000, metavar="N")
    parser.add_argument("--pods", type=int, default=4000, metavar="M")
    parser.add_argument("--life", type=float, default=2.0, metavar="S")
    parser.add_argument("--lives", type=int, default=8, metavar="L")
    parser.add_argument("--rounds", type=int, default=1, metavar="R")
    parser.add_argument("--with-a-lease", action="store_true")
    args = parser.parse_args(argv)
    binaries = assets()
    if binaries is None or not (binaries / "kube-scheduler").exists():
        print("KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler")
        return 2
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    print(
        f"{'scheduler':15} {'start':>5} {'bound':>6} {'first s':>8} {'cpu s':>6} {'in all':>7}"
        f" {'load':>6}"
    )
    totals = asyncio.run(compare(args, binaries))
    print(", ".join(f"{who} bound {count}" for who, count in totals.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
