"""Several active replicas on a real API server, while one of them is killed every few seconds.

    KUBEBUILDER_ASSETS=... python -m asched_lab.measure.active_replicas
        [--pods N] [--nodes N] [--rate R] [--replicas N] [--every S] [--lease S] [--logs FOLDER]

Processes share four pools with a Lease each; pods of all pools are created at a steady rate. Every
few seconds one process is killed (SIGKILL) and started again. In place of every sixth kill one is
stopped for longer than its Lease and continued, and of every tenth the API server is stopped for
API_S. Then the same happens to one leader with replicas that stand by.

A client of the server itself watches the pods. Each binding is checked in the order of the server's
revisions against those before it: resources, ports, node affinity, anti-affinity and spread.
Bindings arrive in another order than they were decided in: in the other domains of a spread
constraint also pods count that are bound within UNDER_WAY_S after it, since they may have been
decided before. A process that ends has decided for pods whose bindings do not arrive: those that
did may rely on them. Hence near the end of a process every pod that waited counts where it is
needed most. At the end spread is checked without that.

    gap      from the end of the process that decided for a pool to the next binding of that pool
    pause    the longest time between two bindings of another pool, up to the next fault

Exit status: 0 if nothing was wrong, 1 if something was, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import json
import math
import signal
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from asched import names
from asched.core.config.pools import DEFAULT_POOL
from asched.core.leader.pools import lease_of_pool
from asched.host.event_loop import run_on_loop
from asched.kube.errors import ApiError, TransportError
from asched_lab.bench.api import PODS_PATH, Api
from asched_lab.bench.report import machine_line
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure import real
from asched_lab.measure.crowds import (
    HOSTNAME,
    ZONE,
    JsonObject,
    affinity,
    choosing,
    different,
    node,
    pod,
    spread,
)
from asched_lab.measure.replicas import ASCHED, LEADING_WORDS, LeaseOptions, Replica, Replicas
from asched_lab.measure.takeover_load import BROKEN, LOST, OVERCOMMITTED
from asched_lab.measure.takeovers import line_of
from asched_lab.sim.checker import (
    EndState,
    domain,
    fewest,
    hard_constraints,
    skews,
    spread_counts,
)
from asched_lab.sim.lives import half_most_worst

POOLS: Final = ("batch", "gpu", "web", DEFAULT_POOL)
#: Label of the namespaces that a pool selects.
TEAM: Final = "team"
#: Pods of a pool after which the kinds of pods begin anew.
KINDS: Final = 16
#: Of 40 small pods a node of four cores has room for 36.
PODS_PER_NODE: Final = 36
#: Every so many faults the API server, or else a replica, is stopped instead of a kill.
API_TURN: Final = 10
STOP_TURN: Final = 6
API_S: Final = 3.0
#: How much longer than its lease a replica is stopped.
BEYOND_S: Final = 5.0
#: What a killed process had sent arrives within this time: it ends no gap.
SENT_S: Final = 0.5
#: A pool without a binding for as long is not served at the moment.
SERVED_S: Final = 2.0
#: A pod that was decided for is bound within this time, also if its process dies: the longest gap
#: that was seen, three times.
UNDER_WAY_S: Final = 30.0
#: Bindings of a process arrive at most so long before its end, or after it (`SENT_S`), that others
#: of its bindings are lost.
NEAR_S: Final = 2.0
#: All pods are bound within this time after the last fault, or never.
FINAL_S: Final = 120.0
POLL_S: Final = 0.1
#: Requests for one pod while the server is stopped.
TRIES: Final = 3
#: What a client meets while the server is stopped.
AWAY: Final = (WorkloadFailedError, ApiError, TransportError, KeyError, ValueError)


def mixed_pod(index: int) -> JsonObject:
    """Of 16 pods of a pool one keeps apart, one has a port, two spread, one chooses zones."""
    number, kind = index // len(POOLS), index // len(POOLS) % KINDS
    if kind == 0:
        labels = {"apart": f"a{number // 200}"}
        rule = affinity("podAntiAffinity", HOSTNAME, labels)
        made = pod(f"p-{index}", labels=labels, affinity=rule)
    elif kind in (1, 2):
        labels = {"spread": f"s{number // 400}"}
        rules = spread(ZONE, labels, 1, is_hard=True)
        made = pod(f"p-{index}", labels=labels, topologySpreadConstraints=rules)
    elif kind == 3:
        made = choosing(index, 0)
    else:
        made = different(index, 0)
    if kind == 4:
        port = 8000 + number // KINDS % 40
        made["spec"]["containers"][0]["ports"] = [{"hostPort": port, "containerPort": port}]
    made["metadata"] |= {"name": f"p-{index}", "namespace": namespace_of(POOLS[index % len(POOLS)])}
    made["spec"]["schedulerName"] = ASCHED
    return made


def namespace_of(pool: str) -> str:
    return f"of-{pool}"


def pool_of(one: JsonObject) -> str:
    namespace: str = one["metadata"]["namespace"]
    return namespace.removeprefix(namespace_of(""))


def pool_node(index: int) -> JsonObject:
    made, pool = node(index), POOLS[index % len(POOLS)]
    if pool != DEFAULT_POOL:
        made["metadata"]["labels"][names.POOL_LABEL] = pool
    return made


#: When a binding was seen, and the pod.
Bound = tuple[float, JsonObject]


class Load:
    """Pods of all pools, created at a steady rate, and their bindings as a client sees them."""

    def __init__(self, api: Api, nodes: int, pods: int, rate: float) -> None:
        self.nodes = [pool_node(index) for index in range(nodes)]
        #: In the order of the server's revisions.
        self.bindings: list[Bound] = []
        self.findings: dict[str, list[str]] = defaultdict(list)
        self.waiting: dict[str, JsonObject] = {}
        #: By pod: when it was seen first, and the pod.
        self.seen: dict[str, Bound] = {}
        self._api = api
        self._pods = pods
        self._rate = rate
        self._node_of: dict[str, str] = {}

    async def begin(self) -> None:
        """Create what pods need."""
        for pool in POOLS:
            metadata = {"name": namespace_of(pool), "labels": {TEAM: pool}}
            await self._api.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, ""
            )
        await asyncio.gather(*(self._api.create(one, "") for one in self.nodes))

    async def create(self) -> None:
        """Create all pods, each at its time; lost answers do not matter."""
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for index in range(self._pods):
                await asyncio.sleep(began_s + index / self._rate - time.monotonic())
                group.create_task(self._create(mixed_pod(index)))

    async def _create(self, made: JsonObject) -> None:
        for _ in range(TRIES):
            with suppress(*AWAY):
                await self._api.create(made, made["metadata"]["namespace"])
                return

    async def follow(self) -> None:
        """Watch pods until cancelled."""
        async for kind, one in self._api.watch(PODS_PATH):
            if kind not in ("ADDED", "MODIFIED"):
                self.findings[BROKEN].append(f"the observer received {kind}")
                continue
            name, now = one["metadata"]["name"], one["spec"].get("nodeName", "")
            before = self._node_of.get(name, "")
            self._node_of[name] = now
            self.seen.setdefault(name, (time.time(), one))
            if now and not before:
                self.bindings.append((time.time(), one))
                self.waiting.pop(name, None)
            elif before != now:
                self.findings[BROKEN].append(f"{name} moved from {before} to {now}")
            elif not now:
                self.waiting[name] = one

    async def until_bound(self) -> None:
        """Wait until no pod waits, or for FINAL_S."""
        until_s = time.monotonic() + FINAL_S
        while self.waiting and time.monotonic() < until_s:  # noqa: ASYNC110 - it ends
            await asyncio.sleep(POLL_S)

    def check(self, ends_s: Sequence[float], *, by_pool: bool) -> None:
        """Check all bindings, and that no pod waits that fits. `by_pool`: on nodes of its pool;
        `ends_s`: when processes ended.
        """
        groups = [(pool,) for pool in POOLS] if by_pool else [POOLS]
        for pools in groups:
            nodes = [
                one
                for one in self.nodes
                if one["metadata"]["labels"].get(names.POOL_LABEL, DEFAULT_POOL) in pools
            ]
            bindings = [known for known in self.bindings if pool_of(known[1]) in pools]
            placed = [one for _, one in bindings]
            state = EndState(nodes, ())
            for one in placed:
                self._check_binding(state, one)
            seen = [known for known in self.seen.values() if pool_of(known[1]) in pools]
            self.findings[BROKEN] += uneven(nodes, bindings, seen, ends_s)
            self.findings[BROKEN] += skews(nodes, placed)
            waiting = [one for one in self.waiting.values() if pool_of(one) in pools]
            fitting = EndState(nodes, [*placed, *waiting]).could_be_placed()
            self.findings[LOST] += [f"{name} waits and fits" for name in fitting]

    def _check_binding(self, state: EndState, placed: JsonObject) -> None:
        away = ("nodeName", "topologySpreadConstraints")
        spec = {key: value for key, value in placed["spec"].items() if key not in away}
        one, name = {**placed, "spec": spec}, placed["spec"]["nodeName"]
        what = f"{placed['metadata']['name']} on {name}"
        if name not in state.nodes:
            self.findings[BROKEN].append(f"{what}, of another pool")
            return
        if not state.has_room(name, one):
            self.findings[OVERCOMMITTED].append(what)
        elif not state.fits(name, one):
            self.findings[BROKEN].append(what)
        state.place(one, name)


def uneven(
    nodes: Sequence[JsonObject],
    bindings: Sequence[Bound],
    seen: Sequence[Bound] = (),
    ends_s: Sequence[float] = (),
) -> Iterator[str]:
    """Bindings that broke a hard spread constraint in whatever order they were decided. All pods
    that a constraint selects have it, and none of them leaves. `seen`: when pods appeared;
    `ends_s`: when processes ended.
    """
    bound_s = {one["metadata"]["name"]: at_s for at_s, one in bindings}
    spreading = deque(known for known in bindings if hard_constraints(known[1]))
    state, ahead = EndState(nodes, ()), EndState(nodes, ())
    for at_s, one in tuple(spreading):
        while spreading and spreading[0][0] <= at_s + UNDER_WAY_S:
            _, later = spreading.popleft()
            ahead.place(later, later["spec"]["nodeName"])
        constraints, name = hard_constraints(one), one["spec"]["nodeName"]
        for constraint in constraints:
            own_domain = domain(state.nodes.get(name), constraint["topologyKey"])
            counts = state.spread(constraint, constraints, one)
            found = ahead.spread(constraint, constraints, one)
            if any(-SENT_S <= end_s - at_s <= NEAR_S for end_s in ends_s):
                waited = sum(
                    since_s <= at_s and bound_s.get(other["metadata"]["name"], math.inf) > at_s
                    for since_s, other in seen
                    if spread_counts(constraint, one, other)
                )
                found = filled(found, waited)
            least = fewest(constraint, found)
            count = counts.get(own_domain or "", 0) + spread_counts(constraint, one, one)
            if count > least + constraint["maxSkew"]:
                yield f"{one['metadata']['name']} on {name}: {count} in {own_domain}, least {least}"
        state.place(one, name)


def filled(counts: Mapping[str, int], pods: int) -> dict[str, int]:
    """Pods by domain, with so many more, each where the fewest are."""
    found = dict(counts)
    for _ in range(pods if found else 0):
        found[min(found, key=found.__getitem__)] += 1
    return found


@dataclass
class Strike:
    """A fault. `pools`: those that the process decided for that was struck."""

    what: str
    at_s: float
    pools: tuple[str, ...] = ()


class Strikes:
    """Faults one after the other, until cancelled."""

    def __init__(
        self, server: real.RealServer, replicas: Replicas, every_s: float, *, has_pools: bool
    ) -> None:
        self.all: list[Strike] = []
        self._server = server
        self._replicas = replicas
        self._every_s = every_s
        self._has_pools = has_pools
        self._stopped: Replica | None = None
        #: By lease: when it was taken last, and by which process.
        self._taken: dict[str, tuple[float, Path]] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tend())
            number = 0
            while True:
                await asyncio.sleep(self._every_s)
                number += 1
                if number % API_TURN == 0:
                    self.all.append(Strike("API server stopped", time.time()))
                    await self._server.stop_for(API_S)
                    continue
                victim = self._replicas.all[number % len(self._replicas.all)]
                if victim is self._stopped or not victim.is_ready:
                    continue
                if number % STOP_TURN == 0 and self._stopped is None:
                    group.create_task(self._stop(victim))
                else:
                    self.all.append(Strike("kill", time.time(), self._pools_of(victim)))
                    victim.kill()

    async def _tend(self) -> None:
        while True:
            await self._replicas.tend()
            await asyncio.sleep(POLL_S)

    async def _stop(self, victim: Replica) -> None:
        self.all.append(Strike("stop", time.time(), self._pools_of(victim)))
        self._stopped = victim
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(self._replicas.lease.lease_s + BEYOND_S)
        victim.signal(signal.SIGCONT)
        self._stopped = None

    def _pools_of(self, victim: Replica) -> tuple[str, ...]:
        """The pools that a process decides for, by the logs of all."""
        for replica in self._replicas.all:
            for line in replica.log.rpartition("\n")[0].splitlines():  # the last may be cut off
                if LEADING_WORDS in line:
                    said = json.loads(line)
                    taken = said["ts"], replica.process.log
                    known = self._taken.get(said["lock"], taken)
                    self._taken[said["lock"]] = max(taken, known)
        held = {
            lock.rpartition("/")[2]
            for lock, (_, log) in self._taken.items()
            if log == victim.process.log
        }
        if not self._has_pools:
            return POOLS if ASCHED in held else ()
        return tuple(pool for pool in POOLS if lease_of_pool(ASCHED, pool) in held)


@dataclass
class Outcome:
    """The figures of one run."""

    gaps_s: list[float] = field(default_factory=list)
    pauses_s: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, load: Load, strikes: Sequence[Strike]) -> "Outcome":
        found, times = cls(), defaultdict[str, list[float]](list)
        for at_s, one in load.bindings:
            times[pool_of(one)].append(at_s)
        ends_s = [*(strike.at_s for strike in strikes[1:]), math.inf]
        for strike, end_s in zip(strikes, ends_s, strict=True):
            if strike.what.startswith("API"):
                continue
            for pool in POOLS:
                of_pool = times[pool]
                if pool not in strike.pools:
                    found.pauses_s += _longest(of_pool, strike.at_s, end_s)
                elif (at := bisect_left(of_pool, strike.at_s + SENT_S)) < len(of_pool):
                    found.gaps_s.append(of_pool[at] - strike.at_s)
        return found


def _longest(times: Sequence[float], since_s: float, end_s: float) -> Iterator[float]:
    """The longest time between two bindings after a moment, if the pool is served then."""
    first = bisect_right(times, since_s) - 1
    if first < 0 or since_s - times[first] > SERVED_S:
        return
    inside = times[first : bisect_left(times, end_s)]
    if len(inside) > 1:
        yield max(after - before for before, after in pairwise(inside))


def three(values_s: Sequence[float]) -> str:
    """Median, 99th percentile and maximum."""
    return ", ".join(f"{value:.2f}" for value in half_most_worst(values_s)) if values_s else "-"


COLUMNS: Final = (
    "replicas", "pods bound", "killed", "stopped", "gap s: median, 99 %, longest",
    "pause of other pools s: median, 99 %, longest", OVERCOMMITTED, BROKEN, LOST,
)  # fmt: skip


def configuration(*, has_pools: bool) -> JsonObject:
    document: JsonObject = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": ASCHED}],
    }
    if has_pools:
        document["poolLeases"] = True
        document["pools"] = [
            {"name": pool, "namespaceSelector": {"matchLabels": {TEAM: pool}}}
            for pool in POOLS
            if pool != DEFAULT_POOL
        ]
    return document


async def measure(args: argparse.Namespace, folder: Path, *, has_pools: bool) -> tuple[str, bool]:
    """A line of the table, and whether nothing was wrong. Raises WorkloadFailedError."""
    binaries = real.assets()
    assert binaries is not None
    lease = LeaseOptions(args.lease, args.lease * 0.7, args.lease * 0.2)
    if args.lease == LeaseOptions().lease_s:
        lease = LeaseOptions()
    async with real.RealServer(binaries) as server:
        api = await Api.connected(server.kubeconfig)
        load = Load(api, args.nodes, args.pods, args.rate)
        await load.begin()
        following = asyncio.ensure_future(load.follow())
        async with Replicas(
            ASCHED,
            server.kubeconfig,
            folder,
            lease,
            flags=("--logging-format=json",),
            count=args.replicas,
            document=configuration(has_pools=has_pools),
        ) as replicas:
            await replicas.until_ready()
            await replicas.until_leading()
            strikes = Strikes(server, replicas, args.every, has_pools=has_pools)
            striking = asyncio.ensure_future(strikes.run())
            await load.create()
            await _ended(striking)
            for replica in replicas.all:
                replica.signal(signal.SIGCONT)
            await replicas.tend()
            await load.until_bound()
        await _ended(following)
        await api.close()
    ends_s = [strike.at_s for strike in strikes.all if not strike.what.startswith("API")]
    load.check(ends_s, by_pool=has_pools)
    for what, lines in load.findings.items():
        for line in lines[:20]:
            print(f"# {what}: {line}", file=sys.stderr, flush=True)
    found = Outcome.of(load, strikes.all)
    counts = [len(load.findings[what]) for what in (OVERCOMMITTED, BROKEN, LOST)]
    what = "each with pools of its own" if has_pools else "one leads"
    cells = (
        f"{args.replicas}, {what}",
        f"{len(load.bindings):,} of {args.pods:,}",
        sum(strike.what == "kill" for strike in strikes.all),
        sum(strike.what == "stop" for strike in strikes.all),
        three(found.gaps_s),
        three(found.pauses_s),
        *counts,
    )
    return line_of(cells), not any(counts)


async def _ended(task: asyncio.Future[None]) -> None:
    """End a task that should still run. Raises what has ended it."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _run(args: argparse.Namespace, logs: str) -> int:
    rows, is_right = list[str](), True
    for has_pools in (True, False):
        folder = Path(tempfile.mkdtemp(prefix="pools-" if has_pools else "leader-", dir=logs))
        row, is_fine = await measure(args, folder, has_pools=has_pools)
        rows.append(row)
        is_right &= is_fine
    print(line_of(COLUMNS), line_of(("---",) * len(COLUMNS)), *rows, sep="\n", flush=True)
    return 0 if is_right else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.active_replicas",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pods", type=int, default=20_000, help="default %(default)s")
    parser.add_argument("--nodes", type=int, default=0, help="default: with room for all pods")
    parser.add_argument("--rate", type=float, default=60.0, help="pods a second")
    parser.add_argument("--replicas", type=int, default=3, help="default %(default)s")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between faults")
    parser.add_argument("--lease", type=float, default=5.0, help="its duration, in seconds")
    parser.add_argument("--logs", default="", help="keep the logs of all processes in this folder")
    args = parser.parse_args()
    if real.assets() is None:
        print("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver", file=sys.stderr)
        return 2
    args.nodes = args.nodes or math.ceil(args.pods / PODS_PER_NODE)
    print(machine_line(), flush=True)
    with tempfile.TemporaryDirectory(prefix="asched-active-") as folder:
        try:
            return run_on_loop(_run(args, args.logs or folder))
        except WorkloadFailedError as error:
            print(f"active_replicas: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
