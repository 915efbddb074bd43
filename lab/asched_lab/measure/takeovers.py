"""Takeovers on a real API server while bindings are on their way.

    KUBEBUILDER_ASSETS=... python -m asched_lab.measure.takeovers [--kinds kill,stop,cut-off]
        [--times N] [--default-times M] [--beside kube-scheduler] [--beside-times N] [--servers S]

Two replicas, each behind a proxy that holds bindings of the leader for up to 40 s, so that they
arrive in another order and after the leader's end. In each round the leader is killed (SIGKILL),
stopped for longer than its lease and continued, or cut off from the server until another one leads.
Then every binding is checked: see `takeover_load`. M of the N rounds have the default lease, the
others a short one. With `--beside` the same happens to another program afterwards.

Exit status: 0 if nothing was wrong with asched, 1 if something was, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final

from asched.host.event_loop import run_on_loop
from asched_lab.bench.api import Api
from asched_lab.bench.report import machine_line
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure import real
from asched_lab.measure.gangs_bound import GATES, ServerWithGroups
from asched_lab.measure.late_proxy import BINDING, LateProxy, LateRequest
from asched_lab.measure.replicas import ASCHED, PROFILES, LeaseOptions, Replica, Replicas
from asched_lab.measure.takeover_load import (
    BROKEN,
    LOST,
    ORDER,
    OVERCOMMITTED,
    SPLIT,
    TakeoverLoad,
)

SHORT: Final = LeaseOptions(5, 3.5, 1)
DEFAULT: Final = LeaseOptions()
KINDS: Final = ("kill", "stop", "cut-off")
#: How long bindings of a leader are held that is about to end, and their share.
LATE_S: Final = 40.0
HELD: Final = 0.7
#: As many are on their way when the leader ends, if there are as many within GATHER_S.
UNDER_WAY: Final = 8
GATHER_S: Final = 5.0
#: How long a leader that was continued or reached again takes to end.
END_S: Final = 90.0
FINAL_S: Final = 90.0
ACCEPTED: Final = (200, 201)
REFUSED: Final = (404, 409)
LINES_MAX: Final = 20
POLL_S: Final = 0.05


@dataclass
class Tally:
    """The takeovers of one kind."""

    gaps_s: list[float] = field(default_factory=list)
    #: (binding, when the successor led)
    late: list[tuple[LateRequest, float]] = field(default_factory=list)

    def count_late(self, statuses: tuple[int, ...], *, is_after: bool) -> int:
        return sum(
            binding.status in statuses and (binding.answered_s > led_s) is is_after
            for binding, led_s in self.late
        )


class Trial:
    """Takeovers of one program with one lease."""

    def __init__(self, replicas: Replicas, load: TakeoverLoad, rng: random.Random) -> None:
        self.tallies: dict[str, Tally] = {}
        self.load = load
        self._replicas = replicas
        self._rng = rng

    async def run(self, kinds: list[str]) -> None:
        """One takeover of each of these kinds. Raises WorkloadFailedError."""
        known = set[str]()
        for number, kind in enumerate(kinds, 1):
            await self._take_over(kind)
            gap_s = self.tallies[kind].gaps_s[-1]
            print(f"# {number} {kind}: {gap_s:.1f} s", file=sys.stderr, flush=True)
            for what, lines in self.load.findings.items():
                if lines and what not in known:
                    print(f"#   {what}: {next(iter(lines))}", file=sys.stderr, flush=True)
                    known.add(what)
        held = [one for tally in self.tallies.values() for one, _ in tally.late]
        until_s = time.monotonic() + 2 * LATE_S
        while any(not one.status for one in held) and time.monotonic() < until_s:
            await self._replicas.tend()
            await asyncio.sleep(POLL_S)
        until_s = time.monotonic() + FINAL_S
        while time.monotonic() < until_s and not await self.load.until_settled(1.0):
            await self._replicas.tend()
        self.load.check_end({one.pod for one in held if one.status in REFUSED})

    async def _take_over(self, kind: str) -> None:
        await self._replicas.until_ready()
        leader = await self._replicas.until_leading()
        proxy = leader.proxy
        proxy.hold = self._hold
        await self.load.begin_round()
        await self._until_under_way(proxy)
        began_s = time.monotonic()
        if kind == "kill":
            leader.kill()
        elif kind == "stop":
            leader.signal(signal.SIGSTOP)
        else:
            proxy.cut()
        await self.load.add_rivals()
        successor = await self._replicas.until_leading(but=leader)
        led_s = time.monotonic()
        tally = self.tallies.setdefault(kind, Tally())
        late = [one for one in proxy.late if not one.status or one.answered_s > began_s]
        tally.late += [(one, led_s) for one in late]
        proxy.hold = lambda _path: None
        gap_s = await self._until_bound(led_s) - began_s
        tally.gaps_s.append(gap_s)
        leader.signal(signal.SIGCONT)
        proxy.mend()
        await self._until_ended(leader)
        await self._replicas.tend()
        await self.load.until_settled()
        held = (one for replica in self._replicas.all for one in replica.proxy.late)
        placed = {one.pod for one in held if one.status in ACCEPTED}
        passed = successor.proxy.passed_s.items()
        self.load.check_round({name for name, at_s in passed if at_s > led_s} - placed)

    def _hold(self, path: str) -> Awaitable[object] | None:
        if not path.endswith(BINDING) or self._rng.random() > HELD:
            return None
        return asyncio.sleep(self._rng.uniform(0.0, LATE_S))

    async def _until_under_way(self, proxy: LateProxy) -> None:
        until_s = time.monotonic() + GATHER_S
        while proxy.held_count < UNDER_WAY:
            if time.monotonic() > until_s:
                return
            await asyncio.sleep(POLL_S)

    async def _until_bound(self, since_s: float) -> float:
        """When the first pod was bound after that moment, as far as one was soon."""
        until_s = time.monotonic() + GATHER_S
        while time.monotonic() < until_s:
            later = [at_s for at_s in self.load.bound_s.values() if at_s > since_s]
            if later:
                return min(later)
            await asyncio.sleep(POLL_S)
        return time.monotonic()

    async def _until_ended(self, replica: Replica) -> None:
        until_s = time.monotonic() + END_S
        while replica.is_running:
            if time.monotonic() > until_s:
                raise WorkloadFailedError(f"{replica.process.name} leads no more and does not end")
            await asyncio.sleep(POLL_S)


async def trial(
    program: str, lease: LeaseOptions, kinds: list[str], seed: int, logs: Path
) -> Trial:
    """Takeovers of these kinds on a server of their own."""
    binaries = real.assets()
    assert binaries is not None
    async with ServerWithGroups(binaries) as server:
        api = await Api.connected(server.kubeconfig)
        load = TakeoverLoad(api, PROFILES[program])
        following = asyncio.ensure_future(load.follow())
        try:
            await load.begin()
            flags = (f"--feature-gates={GATES}",)
            async with Replicas(
                program, server.kubeconfig, logs, lease, flags=flags, binaries=binaries
            ) as replicas:
                done = Trial(replicas, load, random.Random(seed))
                await done.run(kinds)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await api.close()
    return done


COLUMNS: Final = (
    "scheduler", "lease", "leader", "takeovers", "gap s, median and worst",
    "late bindings before the successor led", "after it: refused", "carried out",
)  # fmt: skip
#: The last one is no mistake.
VERDICT: Final = (OVERCOMMITTED, BROKEN, ORDER, LOST, SPLIT)


def rows_of(program: str, lease: LeaseOptions, trials: list[Trial]) -> list[str]:
    """Lines of the table of takeovers."""
    rows = []
    for kind in dict.fromkeys(kind for done in trials for kind in done.tallies):
        tallies = [done.tallies[kind] for done in trials if kind in done.tallies]
        gaps_s = [gap_s for tally in tallies for gap_s in tally.gaps_s]

        def late(*statuses: int, is_after: bool, tallies: list[Tally] = tallies) -> int:
            return sum(tally.count_late(statuses, is_after=is_after) for tally in tallies)

        cells = (
            program, f"{lease.lease_s:g} s", kind, len(gaps_s),
            f"{median(gaps_s):.1f}, {max(gaps_s):.1f}",
            late(*ACCEPTED, *REFUSED, is_after=False),
            late(*REFUSED, is_after=True),
            late(*ACCEPTED, is_after=True),
        )  # fmt: skip
        rows.append(line_of(cells))
    return rows


def line_of(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


async def _run(args: argparse.Namespace) -> int:
    kinds = args.kinds.split(",")
    passes = list[tuple[str, LeaseOptions, int]]()
    for program, times in ((ASCHED, args.times), (args.beside, args.beside_times)):
        if program:
            short = max(times - args.default_times, 0)
            passes += [(program, SHORT, short), (program, DEFAULT, times - short)]
    rows, verdicts, wrong = list[str](), list[str](), 0
    for number, (program, lease, times) in enumerate(passes):
        if not times:
            continue
        chosen = list(islice(cycle(kinds), times))
        shares = [chosen[at :: args.servers] for at in range(min(args.servers, times))]
        seeds = (args.seed + 100 * number + at for at in range(len(shares)))
        trials = await asyncio.gather(
            *(
                trial(program, lease, share, seed, _folder(program, args.logs))
                for share, seed in zip(shares, seeds, strict=True)
            )
        )
        rows += rows_of(program, lease, trials)
        counts = tuple(sum(len(done.load.findings[what]) for done in trials) for what in VERDICT)
        verdicts.append(line_of((program, f"{lease.lease_s:g} s", times, *counts)))
        wrong += sum(counts[:-1]) if program == ASCHED else 0
        for done in trials:
            for what, lines in done.load.findings.items():
                for line in sorted(lines)[:LINES_MAX]:
                    print(f"# {program}: {what}: {line}", file=sys.stderr, flush=True)
    print(line_of(COLUMNS), line_of(("---",) * len(COLUMNS)), *rows, sep="\n")
    head = ("scheduler", "lease", "takeovers", *VERDICT)
    print("", line_of(head), line_of(("---",) * len(head)), *verdicts, sep="\n", flush=True)
    return 1 if wrong else 0


def _folder(program: str, parent: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{program}-", dir=parent))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.takeovers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help="default %(default)s")
    parser.add_argument("--times", type=int, default=200, help="takeovers, default %(default)s")
    parser.add_argument("--default-times", type=int, default=20, help="default %(default)s")
    parser.add_argument("--beside", default="", choices=("", "kube-scheduler"))
    parser.add_argument("--beside-times", type=int, default=60, help="default %(default)s")
    parser.add_argument(
        "--servers", type=int, default=1, help="API servers at a time, default %(default)s"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", default="", help="keep the logs of all processes in this folder")
    args = parser.parse_args()
    if real.assets() is None:
        print("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver", file=sys.stderr)
        return 2
    if unknown := set(args.kinds.split(",")) - set(KINDS):
        print(f"no kind is called {', '.join(sorted(unknown))}; see --help", file=sys.stderr)
        return 2
    print(machine_line(), flush=True)
    with tempfile.TemporaryDirectory(prefix="asched-takeovers-") as folder:
        args.logs = args.logs or folder
        return run_on_loop(_run(args))


if __name__ == "__main__":
    sys.exit(main())
