"""What the seal costs: the first act of a leader that follows one which was killed.

    KUBEBUILDER_ASSETS=... python -m asched_lab.measure.seal_cost [--pods 1000,10000,50000]

On a real API server without nodes, a leader of asched is killed, so many pods are created, and
another process takes the lease over. It changes a condition of each pod before it decides about the
first one. Requests are those that the server counted as patches of pods/status from the start of
the process to the last change; the watch is one of all pods by another client.

Exit status: 0 if every pod was changed, 1 if not, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import orjson

from asched import names
from asched.host.event_loop import run_on_loop
from asched_lab.bench.api import PODS_PATH, Api
from asched_lab.bench.processes import Process
from asched_lab.bench.report import machine_line
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure import real
from asched_lab.measure.crowds import pod
from asched_lab.measure.replicas import LEADING_WORDS
from asched_lab.measure.takeovers import line_of

SEALED: Final = re.compile(r'"The pods of the last leader are sealed" pods=(\d+) s=([\d.]+)')
CHUNK: Final = 500
LIMIT_S: Final = 900.0
POLL_S: Final = 0.02
COLUMNS: Final = (
    "waiting pods", "requests", "seconds", "touches per second", "events of a watch of pods",
    "kB per event", "s of CPU: asched", "s of CPU: API server", "lease kept",
)  # fmt: skip


class Touches:
    """What a watch of another client receives."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0

    async def follow(self, api: Api) -> None:
        async for kind, pod_ in api.watch(PODS_PATH):
            types = {c["type"] for c in pod_.get("status", {}).get("conditions") or ()}
            if kind == "MODIFIED" and types == {names.TAKEN_OVER}:
                self.count += 1
                self.bytes += len(orjson.dumps(pod_))


async def _patches(api: Api) -> int:
    reply = await api.request("GET", "/metrics")
    return sum(
        int(float(line.split()[-1]))
        for line in reply.body.decode().splitlines()
        if line.startswith("apiserver_request_total{")
        and all(word in line for word in ('resource="pods"', 'subresource="status"', '"PATCH"'))
    )


async def _run_until(process: Process, words: str) -> None:
    """Wait for words in its log. Raises WorkloadFailedError."""
    until_s = time.monotonic() + LIMIT_S
    while words not in _log(process):
        process.check()
        if time.monotonic() > until_s:
            raise WorkloadFailedError(f"{words!r} is not in the log after {LIMIT_S:.0f} s")
        await asyncio.sleep(POLL_S)


def _log(process: Process) -> str:
    return process.log.read_text(encoding="utf-8", errors="replace")


async def measure(count: int, folder: Path) -> str:
    """One line of the table. Raises WorkloadFailedError."""
    binaries = real.assets()
    assert binaries is not None
    async with real.RealServer(binaries) as server:
        arguments = ("run", f"--kubeconfig={server.kubeconfig}", "--secure-port=0")
        first = Process.of_asched("first", arguments, folder / f"first-{count}.log")
        await first.start()
        await _run_until(first, LEADING_WORDS)
        first.kill()
        await first.stop()
        api = await Api.connected(server.kubeconfig)
        made = [pod(f"p-{index}", schedulerName="asched") for index in range(count)]
        for start in range(0, count, CHUNK):
            chunk = made[start : start + CHUNK]
            await asyncio.gather(*(api.create(one, "default") for one in chunk))
        touches = Touches()
        following = asyncio.ensure_future(touches.follow(api))
        before = await _patches(api)
        second = Process.of_asched("second", arguments, folder / f"second-{count}.log")
        await second.start()
        try:
            await _run_until(second, LEADING_WORDS)
            server_s, own_s = server.cpu_s(), second.usage().get("cpu_s", 0.0)
            while touches.count < count:
                second.check()
                await asyncio.sleep(POLL_S)
            patches = await _patches(api) - before
            own_s, server_s = second.usage().get("cpu_s", 0.0) - own_s, server.cpu_s() - server_s
            await _run_until(second, "are sealed")
            found = SEALED.search(_log(second))
            assert found is not None
            seconds = float(found[2])
            is_kept = "Leaderelection lost" not in _log(second)
        finally:
            second.kill()
            await second.stop()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await api.close()
    return line_of((
        f"{count:,}", f"{patches:,}", f"{seconds:.1f}", f"{count / seconds:.0f}",
        f"{touches.count:,}", f"{touches.bytes / max(touches.count, 1) / 1000:.1f}",
        f"{own_s:.1f}", f"{server_s:.1f}", "yes" if is_kept else "no",
    ))  # fmt: skip


async def _run(counts: list[int], folder: Path) -> None:
    print(line_of(COLUMNS), line_of(("---",) * len(COLUMNS)), sep="\n", flush=True)
    for count in counts:
        print(await measure(count, folder), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.seal_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pods", default="1000,10000,50000", help="default %(default)s")
    args = parser.parse_args()
    if real.assets() is None:
        print("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver", file=sys.stderr)
        return 2
    print(machine_line(), flush=True)
    with tempfile.TemporaryDirectory(prefix="asched-seal-") as folder:
        try:
            run_on_loop(_run([int(count) for count in args.pods.split(",")], Path(folder)))
        except WorkloadFailedError as error:
            print(f"seal_cost: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
