"""Gangs in a cluster that is full in pieces, on a real API server, with three ways to make room.

    KUBEBUILDER_ASSETS=DIR python -m asched_lab.measure.descheduling [--nodes 200] [--gangs 5]

DIR has etcd, kube-apiserver, kube-controller-manager and kube-scheduler. Deployments fill each node
to about 85 % of its CPU; then gangs of 16 come, of which each pod needs more than any node has
free, though all free room together would do for them. Nodes and kubelets are pretended. The gangs
come once the pods of the Deployments are PAUSE_S old: Rebalance moves no younger ones.

    asched, Rebalance     pods move, and their new places are held first
    asched                no pod moves
    kube-scheduler        with gangs and MostAllocated, and beside it the descheduler's strategy
                          HighNodeUtilization, which its README recommends for fewer, fuller nodes

That strategy is a loop of this program, since it is nothing but evictions: every INTERVAL_S, nodes
whose requests are below the threshold lose their pods through the Eviction API, the least used node
first, as long as the other nodes have room for them in sum. The threshold is set for this cluster:
a quarter of the nodes are below it.

Rebalance gets higher limits than by default, as an operator would set for gangs of this size: a
plan for a gang of 16 moves more than the 8 pods of maxMovesPerUnit, and by the defaults for a
minute, a namespace and a controller, those moves would take some minutes.

Bounds  an arm ends once all gangs have places, after `--seconds`, or when no pod was placed for
        QUIET_S.

Source  kubernetes-sigs/descheduler README.md (HighNodeUtilization)
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from asched_lab.apiserver.resources import PODS
from asched_lab.bench.api import PODS_PATH, Api, collection
from asched_lab.bench.processes import Process
from asched_lab.measure import real
from asched_lab.measure.measurement import CONFIG

Json = dict[str, Any]

SCHEDULER: Final = "bench"
NAMESPACE: Final = "default"
GATES: Final = "GenericWorkload=true,GangScheduling=true"
RUNTIME: Final = "scheduling.k8s.io/v1alpha2=true"
CONTROLLERS: Final = (
    "deployment-controller,replicaset-controller,disruption-controller,garbage-collector-controller"
)
NODE_MILLI: Final = 8000
FILLED: Final = 0.85
#: CPU of the pods of the Deployments, and of a pod of a gang; milli.
SIZES: Final = (400, 500, 600, 800, 900)
GANG_MILLI: Final = 2000
INTERVAL_S: Final = 30.0
#: Share of the nodes that are below the threshold of HighNodeUtilization.
BELOW: Final = 0.25
#: The ways to make room, and what they are in the table.
ARMS: Final[Mapping[str, str]] = {
    "rebalance": "asched with `Rebalance`",
    "asched": "asched, no moves",
    "descheduler": "kube-scheduler, evictions by HighNodeUtilization",
}
REPLICAS: Final = 20
POLL_S: Final = 0.5
#: The least that the argument pauseSeconds may be.
PAUSE_S: Final = 60
QUIET_S: Final = 90.0


class Task(NamedTuple):
    """What all arms get. `size`: pods of a gang; `seconds`: limit for an arm."""

    nodes: int
    gangs: int
    size: int
    seconds: float
    seed: int


class Result(NamedTuple):
    """`seconds`: until the last gang that was placed had its nodes; `waited_s`: how long successors
    of evicted pods had no node, all together; `pending`: pods of Deployments without one at the
    end.
    """

    arm: str
    placed: int
    evicted: int
    seconds: float
    waited_s: float
    pending: int


class Kubelets:
    """Makes bound pods ready, and removes those that terminate. Counts what was evicted.

    `seen_s`, `bound_s`: when a pod was seen first, and first with a node.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.pods: dict[str, Json] = {}
        self.evicted: set[str] = set()
        self.seen_s: dict[str, float] = {}
        self.bound_s: dict[str, float] = {}
        self._done: set[tuple[str, str]] = set()

    async def run(self) -> None:
        for pod in await self._api.listed(PODS):
            self._saw("ADDED", pod)
        tasks: set[asyncio.Task[None]] = set()
        async for kind, pod in self._api.watch(PODS_PATH):
            for step in self._saw(kind, pod):
                task = asyncio.ensure_future(step)
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    def _saw(self, kind: str, pod: Json) -> list[Any]:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        conditions = pod["status"].get("conditions") or ()
        if any(c.get("reason") == "EvictionByEvictionAPI" for c in conditions):
            self.evicted.add(uid)
        if kind == "DELETED":
            self.pods.pop(uid, None)
            return []
        self.pods[uid] = pod
        self.seen_s.setdefault(uid, time.monotonic())
        if pod["spec"].get("nodeName"):
            self.bound_s.setdefault(uid, time.monotonic())
        if metadata.get("deletionTimestamp"):
            return self._once(uid, "end", self._api.delete(PODS, NAMESPACE, metadata["name"]))
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            ready = [{"type": kind, "status": "True"} for kind in ("Ready", "PodScheduled")]
            status = {"status": {"phase": "Running", "conditions": ready}}
            name = metadata["name"]
            step = self._api.patch(PODS, NAMESPACE, name, status, "status")
            return self._once(uid, "start", step)
        return []

    @property
    def last_s(self) -> float:
        """When a pod was placed last."""
        return max(self.bound_s.values(), default=0.0)

    def waited_s(self, since_s: float) -> float:
        """How long pods of Deployments that were created since then had no node."""
        now_s, names = time.monotonic(), {uid for uid, pod in self.pods.items() if not _gang(pod)}
        seen = [(uid, at_s) for uid, at_s in self.seen_s.items() if at_s > since_s and uid in names]
        return sum(self.bound_s.get(uid, now_s) - at_s for uid, at_s in seen)

    def _once(self, uid: str, what: str, step: Any) -> list[Any]:
        if (uid, what) in self._done:
            step.close()
            return []
        self._done.add((uid, what))
        return [_quietly(step)]


async def _quietly(step: Any) -> None:
    """A pod that has gone meanwhile is no error."""
    with suppress(Exception):
        await step


class Cluster:
    """Nodes that are full in pieces. The seed of the task determines them."""

    def __init__(self, api: Api, kubelets: Kubelets, task: Task) -> None:
        self._api, self._kubelets = api, kubelets
        self._count, self._size = task.nodes, task.size
        self._rng = random.Random(task.seed)

    async def fill(self) -> None:
        """Create nodes and Deployments, and bind each of their pods here."""
        await self._api.many([partial(self._node, i) for i in range(self._count)])
        wanted = self._sizes()
        counts: defaultdict[int, int] = defaultdict(int)
        for sizes in wanted:
            for size in sizes:
                counts[size] += 1
        number = 0
        for size, count in counts.items():
            for start in range(0, count, REPLICAS):
                body = _deployment(f"app-{number}", size, min(REPLICAS, count - start))
                await self._api.create(body, NAMESPACE)
                number += 1
        total = sum(counts.values())
        while len(self._kubelets.pods) < total:  # noqa: ASYNC110 - other processes act
            await asyncio.sleep(POLL_S)
        of_size: defaultdict[int, list[Json]] = defaultdict(list)
        for pod in sorted(self._kubelets.pods.values(), key=lambda pod: pod["metadata"]["name"]):
            of_size[milli_of(pod)].append(pod)
        for pods in of_size.values():
            self._rng.shuffle(pods)
        steps = [
            partial(self._bind, of_size[size].pop(), row)
            for row, sizes in enumerate(wanted)
            for size in sizes
        ]
        await self._api.many(steps)
        while not all(map(is_ready, self._kubelets.pods.values())):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

    def _sizes(self) -> list[list[int]]:
        """The pods of each node."""
        found = []
        for _ in range(self._count):
            aim, sizes = NODE_MILLI * self._rng.uniform(FILLED - 0.05, FILLED + 0.05), list[int]()
            while sum(sizes) + min(SIZES) <= aim:
                size = self._rng.choice(SIZES)
                if sum(sizes) + size <= aim:
                    sizes.append(size)
            found.append(sizes)
        return found

    async def _node(self, index: int) -> None:
        name = f"node-{index:03}"
        offered = {"cpu": f"{NODE_MILLI}m", "memory": "64Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": offered, "capacity": offered},
        }
        await self._api.create(body, "")

    async def _bind(self, pod: Json, row: int) -> None:
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{row:03}"}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": target,
        }
        path = f"{collection(PODS, NAMESPACE)}/{name}/binding"
        reply = await self._api.request("POST", path, body)
        assert reply.status < 300, reply.body

    async def add_gang(self, number: int) -> None:
        name = f"gang-{number}"
        group = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": {"gang": {"minCount": self._size}}},
        }
        await self._api.create(group, NAMESPACE)
        for index in range(self._size):
            spec = {**_spec(GANG_MILLI), "schedulingGroup": {"podGroupName": name}}
            metadata = {"name": f"{name}-{index}", "labels": {"gang": name}}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await self._api.create(body, NAMESPACE)


def _spec(milli: int) -> Json:
    resources = {"requests": {"cpu": f"{milli}m", "memory": "64Mi"}}
    container = {"name": "main", "image": "app", "resources": resources}
    return {"schedulerName": SCHEDULER, "containers": [container]}


def _deployment(name: str, milli: int, replicas: int) -> Json:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _spec(milli)},
        },
    }


def milli_of(pod: Json) -> int:
    requests = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(requests[:-1]) if requests.endswith("m") else 1000 * int(requests)


def _gang(pod: Json) -> str:
    """The gang of a pod; empty for pods of Deployments."""
    return str(pod["metadata"].get("labels", {}).get("gang", ""))


def is_ready(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running")


async def deschedule(api: Api, kubelets: Kubelets, nodes: int) -> None:
    """HighNodeUtilization, as its README describes it, every INTERVAL_S."""
    threshold = None
    while True:
        used: defaultdict[str, int] = defaultdict(int)
        pods: defaultdict[str, list[Json]] = defaultdict(list)
        for pod in kubelets.pods.values():
            node = pod["spec"].get("nodeName")
            if node and not pod["metadata"].get("deletionTimestamp"):
                used[node] += milli_of(pod)
                pods[node].append(pod)
        names = sorted((f"node-{i:03}" for i in range(nodes)), key=lambda name: used[name])
        if threshold is None:
            threshold = used[names[int(BELOW * nodes)]]
        below = [name for name in names if used[name] < threshold]
        free = sum(NODE_MILLI - used[name] for name in names if used[name] >= threshold)
        for name in below:
            for pod in pods[name]:
                owners = pod["metadata"].get("ownerReferences")
                if owners and free >= milli_of(pod):
                    free -= milli_of(pod)
                    await _evict(api, pod)
        await asyncio.sleep(INTERVAL_S)


async def _evict(api: Api, pod: Json) -> None:
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await api.request("POST", f"{collection(PODS, NAMESPACE)}/{name}/eviction", body)


def _scheduler(arm: str, server: real.RealServer, folder: Path) -> Process:
    document = yaml.safe_load(CONFIG)
    document["clientConnection"] = {"kubeconfig": server.kubeconfig, "qps": 5000, "burst": 5000}
    document["leaderElection"] = {"leaderElect": False}
    profile: Json = {"schedulerName": SCHEDULER}
    if arm == "rebalance":
        limits = {"maxMovesPerUnit": 32, "maxMovesPerMinute": 100, "timeLimitSeconds": 300}
        limits |= {"maxMovesAtOncePerNamespace": 16, "maxMovesAtOncePerController": 2}
        args = {"namespaces": [NAMESPACE], "waitingSeconds": 5, "pauseSeconds": PAUSE_S, **limits}
        profile["plugins"] = {"multiPoint": {"enabled": [{"name": "Rebalance"}]}}
        profile["pluginConfig"] = [{"name": "Rebalance", "args": {**args, "backoffSeconds": 30}}]
    if arm == "descheduler":
        strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
        fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
        profile["pluginConfig"] = [fit]
    document["profiles"] = [profile]
    file = folder / f"{arm}.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    flags = (f"--config={file}", "--secure-port=0", f"--feature-gates={GATES}")
    if arm == "descheduler":
        return Process.of_kube_scheduler(server.binaries, server.kubeconfig, flags, folder)
    return Process.of_asched("asched", ("run", *flags), folder / "asched.log")


async def measure(arm: str, binaries: Path, task: Task) -> Result:
    """One arm, on a control plane of its own."""
    flags = (f"--feature-gates={GATES}", f"--runtime-config={RUNTIME}")
    async with real.RealServer(binaries, flags=flags) as server:
        with tempfile.TemporaryDirectory(prefix="asched-bench-") as work:
            return await _measured(arm, server, Path(work), task)


async def _measured(arm: str, server: real.RealServer, folder: Path, task: Task) -> Result:
    command = (
        str(server.binaries / "kube-controller-manager"),
        f"--kubeconfig={server.kubeconfig}",
        f"--controllers={CONTROLLERS}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
    )
    manager = Process("kube-controller-manager", command, folder / "controllers.log")
    scheduler = _scheduler(arm, server, folder)
    api = await Api.connected(server.kubeconfig)
    kubelets = Kubelets(api)
    tasks = [asyncio.ensure_future(kubelets.run())]
    try:
        await manager.start()
        cluster = Cluster(api, kubelets, task)
        await cluster.fill()
        await scheduler.start()
        youngest_s = max(kubelets.seen_s.values())
        await asyncio.sleep(max(youngest_s + PAUSE_S + 1 - time.monotonic(), 0))
        if arm == "descheduler":
            tasks.append(asyncio.ensure_future(deschedule(api, kubelets, task.nodes)))
        began_s = time.monotonic()
        for number in range(task.gangs):
            await cluster.add_gang(number)
        while not _is_over(kubelets, task, began_s):
            for process in (manager, scheduler):
                process.check()
            for loop in tasks:
                if loop.done():
                    loop.result()
            await asyncio.sleep(POLL_S)
        placed = _placed(kubelets, task.size)
        last_s = max((at_s for at_s in placed.values()), default=began_s) - began_s
        pods = [pod for pod in kubelets.pods.values() if not _gang(pod)]
        pending = sum(not pod["spec"].get("nodeName") for pod in pods)
        _report_waiting(kubelets)
        waited_s = kubelets.waited_s(began_s)
        return Result(arm, len(placed), len(kubelets.evicted), last_s, waited_s, pending)
    finally:
        for loop in tasks:
            loop.cancel()
        await scheduler.stop()
        await manager.stop()
        await api.close()


def _is_over(kubelets: Kubelets, task: Task, began_s: float) -> bool:
    now_s = time.monotonic()
    is_quiet = now_s > max(began_s, kubelets.last_s) + QUIET_S
    is_done = len(_placed(kubelets, task.size)) == task.gangs
    return is_done or is_quiet or now_s > began_s + task.seconds


def _report_waiting(kubelets: Kubelets) -> None:
    """Print why the first pod of a gang waits, if one does."""
    for pod in kubelets.pods.values():
        if _gang(pod) and not pod["spec"].get("nodeName"):
            conditions = pod["status"].get("conditions") or ()
            messages = [c.get("message", "") for c in conditions if c["type"] == "PodScheduled"]
            print(f"# {pod['metadata']['name']}: {' '.join(messages)}", file=sys.stderr, flush=True)
            return


def _placed(kubelets: Kubelets, size: int) -> dict[str, float]:
    """The gangs of which all pods have nodes, and when the last one got its node."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for uid, pod in kubelets.pods.items():
        gang = _gang(pod)
        if gang and pod["spec"].get("nodeName"):
            found[gang].append(kubelets.bound_s[uid])
    return {gang: max(times) for gang, times in found.items() if len(times) == size}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.descheduling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--gangs", type=int, default=5)
    parser.add_argument("--size", type=int, default=16, help="pods of a gang")
    parser.add_argument("--seconds", type=float, default=200.0, help="limit for each arm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    args = parser.parse_args()
    binaries = real.assets()
    if binaries is None:
        print("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver", file=sys.stderr)
        return 1
    task = Task(args.nodes, args.gangs, args.size, args.seconds, args.seed)
    heads = ("gangs placed", "evictions", "seconds until the last", "pod-seconds without a node")
    print(
        f"| {args.nodes} nodes, gangs of {args.size} | {' | '.join(heads)} | pending at the end |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    for arm in args.arms:
        found = asyncio.run(measure(arm, binaries, task))
        cells = [f"{found.placed} of {args.gangs}", str(found.evicted)]
        cells += [f"{found.seconds:.0f}" if found.placed else "-", f"{found.waited_s:.0f}"]
        print(f"| {ARMS[arm]} | {' | '.join(cells)} | {found.pending} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
