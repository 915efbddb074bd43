"""How long no pod is bound when a leader, the API server or its store fails.

    KUBEBUILDER_ASSETS=... python -m asched_lab.measure.takeover_gaps [--times N] [--faults NAMES]
                                                                     [--beside kube-scheduler]

Two replicas with the default lease (15 s, 10 s, 2 s) bind five pods a second on a real API server.
A gap is the longest time between two bindings, as seen by a client of the server itself, from the
fault until a pod that was created after its end is bound. What ended is started again at once.

Exit status: 0 if pods were bound again after every fault, 1 if not, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from asched.host.event_loop import run_on_loop
from asched.kube.errors import ApiError, TransportError
from asched_lab.bench.api import PODS, PODS_PATH, Api
from asched_lab.bench.report import machine_line
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure import real
from asched_lab.measure.crowds import node, pod
from asched_lab.measure.replicas import ASCHED, PROFILES, LeaseOptions, Replica, Replicas
from asched_lab.measure.takeovers import line_of

NODES: Final = 60
#: Time between two pods.
EVERY_S: Final = 0.2
CALM_S: Final = 4.0
#: A leader is stopped for so long, and the store is slow for so long.
STOPPED_S: Final = 20.0
SLOW_S: Final = 30.0
#: The store stops for the first time, then runs for the second, alternating.
SLOW_STEPS_S: Final = (0.8, 0.2)
#: A binding comes within this time after the end of a fault, or never.
RECOVERY_S: Final = 150.0
POLL_S: Final = 0.05
#: What a client meets while the server starts.
AWAY: Final = (WorkloadFailedError, ApiError, TransportError, KeyError, ValueError)


class SteadyPods:
    """Pods that are created at a steady rate, and when they were bound."""

    def __init__(self, api: Api, profile: str) -> None:
        self.created = 0
        #: By number.
        self.bound_s: dict[int, float] = {}
        self._api = api
        self._profile = profile

    async def create(self) -> None:
        """Create pods until cancelled."""
        while True:
            made = pod(f"p-{self.created}", cpu="10m", schedulerName=self._profile)
            with suppress(*AWAY):
                await self._api.create(made, "default")
            self.created += 1  # lost answers do not matter: the next pod has another name
            await asyncio.sleep(EVERY_S)

    async def follow(self) -> None:
        """Watch pods until cancelled, through restarts of the server."""
        while True:
            with suppress(*AWAY):
                for one in await self._api.listed(PODS):
                    self._see(one["metadata"]["name"], one["spec"].get("nodeName"))
                async for _, one in self._api.watch(PODS_PATH):
                    self._see(one["metadata"]["name"], one["spec"].get("nodeName"))
            await asyncio.sleep(EVERY_S)

    def _see(self, name: str, node_name: str | None) -> None:
        if node_name:
            self.bound_s.setdefault(int(name.partition("-")[2]), time.monotonic())

    def gap_s(self, since_s: float) -> float:
        """The longest time between two bindings, the first of them at most CALM_S earlier."""
        times = sorted(at_s for at_s in self.bound_s.values() if at_s > since_s - CALM_S)
        return max((b - a for a, b in pairwise(times)), default=0.0)


class Faults:
    """What fails. Each method ends when the fault does."""

    def __init__(self, server: real.RealServer, replicas: Replicas) -> None:
        self._server = server
        self._replicas = replicas
        #: How long the API server was away in the last fault, its start included.
        self.away_s = 0.0

    async def power(self, leader: Replica) -> None:
        """Its connections stay open, and nothing comes from it."""
        leader.proxy.cut()
        leader.kill()

    async def kill(self, leader: Replica) -> None:
        leader.kill()

    async def term(self, leader: Replica) -> None:
        leader.signal(signal.SIGTERM)

    async def stop(self, leader: Replica) -> None:
        leader.signal(signal.SIGSTOP)
        await asyncio.sleep(STOPPED_S)
        leader.signal(signal.SIGCONT)

    async def api_5(self, _leader: Replica) -> None:
        await self._api_away(5.0)

    async def api_20(self, _leader: Replica) -> None:
        await self._api_away(20.0)

    async def api_60(self, _leader: Replica) -> None:
        await self._api_away(60.0)

    async def slow_store(self, _leader: Replica) -> None:
        await self._server.slow_store(SLOW_S, *SLOW_STEPS_S)

    async def _api_away(self, away_s: float) -> None:
        since_s = time.monotonic()
        await self._server.kill_and_restart(away_s)
        self.away_s = time.monotonic() - since_s


#: Method of `Faults` -> its name in the table.
NAMES: Final = {
    "power": "power loss of the leader: killed, its connections stay open",
    "kill": "SIGKILL of the leader",
    "term": "SIGTERM of the leader",
    "stop": f"SIGSTOP of the leader, SIGCONT {STOPPED_S:.0f} s later",
    "api_5": "API server killed, started again 5 s later",
    "api_20": "API server killed, started again 20 s later",
    "api_60": "API server killed, started again 60 s later",
    "slow_store": "etcd stands for 0.8 s of each second, for 30 s",
}
COLUMNS: Final = (
    "fault", "scheduler", "times", "gap s, median and worst", "of it after the server was ready",
)  # fmt: skip


async def measure(
    program: str, faults: list[str], logs: Path
) -> dict[str, list[tuple[float, float]]]:
    """(gap, how long the API server was away) of each fault. Raises WorkloadFailedError."""
    binaries = real.assets()
    assert binaries is not None
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    async with real.RealServer(binaries) as server:
        api = await Api.connected(server.kubeconfig)
        pods = SteadyPods(api, PROFILES[program])
        for index in range(NODES):
            await api.create(node(index), "")
        async with Replicas(
            program, server.kubeconfig, logs, LeaseOptions(), binaries=binaries
        ) as replicas:
            works = [asyncio.ensure_future(work) for work in (pods.create(), pods.follow())]
            try:
                for name in faults:
                    gap_s, away_s = await _fail(name, Faults(server, replicas), replicas, pods)
                    found[name].append((gap_s, away_s))
                    text = f"# {program}: {gap_s:.1f} s, server away {away_s:.1f} s: {NAMES[name]}"
                    print(text, file=sys.stderr, flush=True)
            finally:
                for work in works:
                    work.cancel()
                await asyncio.gather(*works, return_exceptions=True)
        await api.close()
    return found


async def _fail(
    name: str, faults: Faults, replicas: Replicas, pods: SteadyPods
) -> tuple[float, float]:
    await replicas.until_ready()
    leader = await replicas.until_leading()
    await _until_bound(pods, pods.created, replicas)
    await asyncio.sleep(CALM_S)
    since_s = time.monotonic()
    failing = asyncio.ensure_future(getattr(faults, name)(leader))
    while not failing.done():
        await replicas.tend(but=leader)
        await asyncio.sleep(POLL_S)
    await failing
    await _until_bound(pods, pods.created, replicas, but=leader)
    gap_s = pods.gap_s(since_s)
    leader.proxy.mend()
    return gap_s, faults.away_s


async def _until_bound(
    pods: SteadyPods, number: int, replicas: Replicas, *, but: Replica | None = None
) -> None:
    """Wait until a pod with this number or a later one is bound. Raises WorkloadFailedError."""
    until_s = time.monotonic() + RECOVERY_S
    while not any(bound >= number for bound in pods.bound_s):
        await replicas.tend(but=but if but is not None and not but.proxy.passes else None)
        if time.monotonic() > until_s:
            raise WorkloadFailedError(f"no pod was bound within {RECOVERY_S:.0f} s")
        await asyncio.sleep(POLL_S)


async def _run(args: argparse.Namespace, logs: str) -> None:
    faults = args.faults.split(",") * args.times
    programs = [ASCHED, args.beside] if args.beside else [ASCHED]
    found = {}
    for program in programs:
        folder = tempfile.mkdtemp(prefix=f"{program}-", dir=logs)
        found[program] = await measure(program, faults, Path(folder))
    print(line_of(COLUMNS), line_of(("---",) * len(COLUMNS)), sep="\n")
    for name in dict.fromkeys(faults):
        for program in programs:
            gaps_s = [gap_s for gap_s, _ in found[program][name]]
            after_s = [gap_s - away_s for gap_s, away_s in found[program][name] if away_s]
            after = f"{median(after_s):.1f}, {max(after_s):.1f}" if after_s else ""
            gap = f"{median(gaps_s):.1f}, {max(gaps_s):.1f}"
            print(line_of((NAMES[name], program, len(gaps_s), gap, after)), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.takeover_gaps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--times", type=int, default=3, help="default %(default)s")
    parser.add_argument("--faults", default=",".join(NAMES), help="default %(default)s")
    parser.add_argument("--beside", default="", choices=("", "kube-scheduler"))
    parser.add_argument("--logs", default="", help="keep the logs of all processes in this folder")
    args = parser.parse_args()
    if real.assets() is None:
        print("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver", file=sys.stderr)
        return 2
    if unknown := set(args.faults.split(",")) - set(NAMES):
        print(f"no fault is called {', '.join(sorted(unknown))}; see --help", file=sys.stderr)
        return 2
    print(machine_line(), flush=True)
    with tempfile.TemporaryDirectory(prefix="asched-gaps-") as folder:
        try:
            run_on_loop(_run(args, args.logs or folder))
        except WorkloadFailedError as error:
            print(f"takeover_gaps: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
