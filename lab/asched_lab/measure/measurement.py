"""One measurement through an API server: a crowd, one client that binds it, and the watched times.

The times are those of this process's own watch: a pod is bound when the watch shows its node.
"""

import asyncio
import contextlib
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from asched_lab.bench.api import EVENTS_PATH, PODS_PATH, Api
from asched_lab.bench.processes import Process
from asched_lab.bench.run_bind import embedded_server, scheduler_config
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure.crowds import Crowd, JsonObject, node, plain

SCHEDULER = "asched-bench"
CHUNK = 1000
POLL_S = 0.01
#: A run ends after this time without a binding.
STUCK_S = 60.0
#: The target is 10 s; wait somewhat longer, so that a miss has a figure.
EVENTS_WAIT_S = 30.0
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@dataclass
class Row:
    """One row of the table. Times are seconds after the client was started."""

    name: str
    nodes: int
    pods: int
    bound: int = 0
    rate: float = 0.0  # bindings per second between the first and the last
    events_rate: float = 0.0  # pods per second from the first binding to the last event
    first_s: float = 0.0
    last_s: float = 0.0
    cpu_ms_per_pod: float = 0.0
    peak_rss_mb: float = 0.0
    events: int = 0
    events_after_s: float = 0.0  # seconds after the last binding until every event was there
    ratio: float | None = None  # `rate` divided by that of the bare client in the same run
    events_ratio: float | None = None  # the same for `events_rate`
    extra: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class EmbeddedServer:
    """The embedded API server as a process: for machines without a real one."""

    description = (
        "EMBEDDED API server of asched (no KUBEBUILDER_ASSETS): not comparable with a real one"
    )

    def __init__(self, *flags: str) -> None:
        self._flags = flags
        self._folder = tempfile.TemporaryDirectory(prefix="asched-bench-")
        self._process: Process | None = None
        self.kubeconfig = ""

    async def __aenter__(self) -> Self:
        self._process, self.kubeconfig = await embedded_server(
            Path(self._folder.name), *self._flags
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            await self._process.stop()
        self._folder.cleanup()


class ServerCosts:
    """The server's costs per pod, from the first binding to the last event: requests about pods,
    their groups and events as the server counts them, bytes on the wire, processor time of client
    and server.
    """

    def __init__(self, cluster: "Cluster", client: Process) -> None:
        self._cluster = cluster
        self._client = client
        self._before: tuple[int, int, int, int] | None = None
        self._cpu_s = 0.0, 0.0

    async def begin(self, bound: int) -> None:
        if self._before is None:
            self._cpu_s = self._spent()
            self._before = bound, *self._client.traffic(), await self._cluster.requests()

    async def report(self, row: Row) -> None:
        if self._before is None or row.bound <= self._before[0]:
            return
        bound, read, written, requests = self._before
        pods = row.bound - bound
        now_read, now_written = self._client.traffic()
        row.extra["bytes_in_per_pod"] = round((now_read - read) / pods)
        row.extra["bytes_out_per_pod"] = round((now_written - written) / pods)
        if requests:
            made = await self._cluster.requests() - requests
            row.extra["requests_per_pod"] = round(made / pods, 2)
        for owner, now_s, before_s in zip(
            ("client", "server"), self._spent(), self._cpu_s, strict=True
        ):
            row.extra[f"{owner}_ms_per_pod"] = round((now_s - before_s) * 1000 / pods, 3)

    def _spent(self) -> tuple[float, float]:
        return self._client.usage().get("cpu_s", 0.0), self._cluster.server_cpu_s()


class Cluster:
    """Nodes on one server, on which rows are measured one after the other."""

    def __init__(self, api: Api, kubeconfig: str, folder: Path) -> None:
        self.api = api
        self.kubeconfig = kubeconfig
        self.folder = folder
        self.bound_at_s: dict[str, float] = {}
        self.seen_at_s: dict[str, float] = {}
        self.event_at_s: dict[str, float] = {}  # by the pod's `Scheduled` event
        self.gates = ""  # of the schedulers
        self.server_cpu_s: Callable[[], float] = lambda: 0.0  # replaced where it is known
        self._namespaces = 0
        self._watches: list[asyncio.Task[None]] = []

    @classmethod
    async def filled(cls, kubeconfig: str, nodes: int, folder: Path) -> "Cluster":
        """A cluster with that many nodes."""
        cluster = cls(await Api.connected(kubeconfig, limit=64), kubeconfig, folder)
        await cluster.create((node(i) for i in range(nodes)), "")
        follows = (cluster._follow_pods(), cluster._follow_events())
        cluster._watches = [asyncio.create_task(follow) for follow in follows]
        return cluster

    async def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self.api.close()

    async def create(self, objects: Iterable[JsonObject], namespace: str) -> None:
        """Create objects in order, many at a time."""
        iterator = iter(objects)
        while chunk := list(islice(iterator, CHUNK)):
            await self.api.many([partial(self.api.create, o, namespace) for o in chunk])

    async def requests(self) -> int:
        """Requests about pods, groups and events so far; 0 if the server does not count them."""
        reply = await self.api.request("GET", "/metrics")
        lines = reply.body.decode().splitlines() if reply.status == 200 else ()
        counts = (line for line in lines if line.startswith("apiserver_request_total{"))
        ours = ('resource="pods"', 'resource="podgroups"', 'resource="events"')
        return sum(int(float(line.split()[-1])) for line in counts if any(o in line for o in ours))

    async def new_namespace(self) -> str:
        self._namespaces += 1
        name = f"bench-{self._namespaces}"
        await self.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, ""
        )
        return name

    async def empty(self, namespace: str) -> None:
        """Remove pods and events of a row, so that the next one starts in the same state."""
        for path in ("/api/v1", "/apis/events.k8s.io/v1"):
            plural = "pods" if path == "/api/v1" else "events"
            url = f"{path}/namespaces/{namespace}/{plural}?gracePeriodSeconds=0"
            with contextlib.suppress(WorkloadFailedError):  # objects that remain are tolerated
                await self.api.request("DELETE", url)

    async def _follow_pods(self) -> None:
        async for kind, pod in self.api.watch(PODS_PATH):
            if kind not in ("ADDED", "MODIFIED"):
                continue
            metadata = pod["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            now_s = time.monotonic()
            self.seen_at_s.setdefault(key, now_s)
            if pod["spec"].get("nodeName"):
                self.bound_at_s.setdefault(key, now_s)

    async def _follow_events(self) -> None:
        async for kind, event in self.api.watch(EVENTS_PATH):
            if kind == "ADDED" and event.get("reason") == "Scheduled":
                regarding = event["regarding"]
                key = f"{regarding['namespace']}/{regarding['name']}"
                self.event_at_s.setdefault(key, time.monotonic())

    def check(self) -> None:
        """Raises if a watch has ended."""
        for watch in self._watches:
            if watch.done():
                raise WorkloadFailedError(f"a watch ended: {watch.exception()}")


async def measure(
    cluster: Cluster,
    name: str,
    crowd: Crowd,
    *,
    is_bare: bool = False,
    scheduler: Callable[[Cluster], Process] | None = None,
) -> Row:
    """Create the waiting pods, start a client, and measure until they are bound. `scheduler` makes
    another client than `asched run`, for pods of SCHEDULER.
    """
    namespace = await cluster.new_namespace()
    row = Row(name, crowd.nodes, crowd.waiting_count)
    await cluster.create(crowd.also, "")
    await cluster.create(crowd.own, namespace)
    await cluster.create(crowd.placed_pods(), namespace)
    keys = set()

    def waiting() -> Iterable[JsonObject]:
        for pod in crowd.waiting_pods():
            keys.add(f"{namespace}/{pod['metadata']['name']}")
            yield {**pod, "spec": {**pod["spec"], "schedulerName": SCHEDULER}}

    await cluster.create(waiting(), namespace)
    mode = () if crowd.placed is None else ("preempt",)
    client = _bare(cluster, namespace, *mode) if is_bare else (scheduler or _scheduler)(cluster)
    bindable = {key for key in keys if "/giant-" not in key}
    costs = None if is_bare else ServerCosts(cluster, client)  # the bare client ends by itself
    try:
        with uncollected():
            await client.start()
            await _until_bound(cluster, client, bindable, is_bare=is_bare, costs=costs)
        _note_usage(row, client)
        _note_times(row, cluster, bindable, client.started_s)
        await _until_events(cluster, row, bindable)
        if costs is not None:
            await costs.report(row)
    finally:
        await client.stop()
    if crowd.placed is None:  # else the cluster belongs to this row
        await cluster.empty(namespace)
    return row


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch off garbage collection, whose pauses would count as the client's: up to 170 ms each
    among the objects of 5,000 nodes.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _scheduler(cluster: Cluster) -> Process:
    file = cluster.folder / "scheduler.yaml"
    file.write_text(scheduler_config(CONFIG, cluster.kubeconfig))
    gates = (f"--feature-gates={cluster.gates}",) if cluster.gates else ()
    arguments = ("run", f"--config={file}", "--secure-port=0", *gates)
    return Process.of_asched("scheduler", arguments, cluster.folder / "scheduler.log")


def _bare(cluster: Cluster, namespace: str, *more: str) -> Process:
    command = (
        sys.executable,
        "-m",
        "asched_lab.measure.bare",
        cluster.kubeconfig,
        namespace,
        *more,
    )
    return Process("bare client", command, cluster.folder / "bare.log")


async def _until_bound(
    cluster: Cluster,
    client: Process,
    keys: set[str],
    *,
    is_bare: bool,
    costs: ServerCosts | None = None,
) -> None:
    """Wait until all are bound, or STUCK_S pass without a binding."""
    unbound, count, already = set(keys), -1, len(cluster.bound_at_s)
    changed_s = time.monotonic()
    while unbound:
        client.check(may_end=is_bare)
        cluster.check()
        if len(cluster.bound_at_s) != count:
            count, changed_s = len(cluster.bound_at_s), time.monotonic()
            unbound.difference_update(cluster.bound_at_s)
            if costs is not None and count > already:
                await costs.begin(count - already)
        elif time.monotonic() - changed_s > STUCK_S:
            return
        await asyncio.sleep(POLL_S)


def _note_usage(row: Row, client: Process) -> None:
    usage = client.usage()
    row.cpu_ms_per_pod = round(usage.get("cpu_s", 0.0) * 1000 / max(row.pods, 1), 3)
    row.peak_rss_mb = round(usage.get("peak_rss_mb", 0.0))


def _note_times(row: Row, cluster: Cluster, keys: set[str], started_s: float) -> None:
    times_s = sorted(cluster.bound_at_s[key] for key in keys if key in cluster.bound_at_s)
    row.bound = len(times_s)
    if times_s:
        row.first_s = round(times_s[0] - started_s, 3)
        row.last_s = round(times_s[-1] - started_s, 3)
        row.rate = round((len(times_s) - 1) / max(times_s[-1] - times_s[0], 1e-9), 1)


async def _until_events(cluster: Cluster, row: Row, keys: set[str]) -> None:
    """Time from the last binding until every event exists."""
    bound = {key for key in keys if key in cluster.bound_at_s}
    waits_until_s = time.monotonic() + EVENTS_WAIT_S
    while time.monotonic() < waits_until_s and not bound <= cluster.event_at_s.keys():
        cluster.check()
        await asyncio.sleep(POLL_S)
    events_s = [cluster.event_at_s[key] for key in bound & cluster.event_at_s.keys()]
    row.events = len(events_s)
    if events_s:
        times_s = [cluster.bound_at_s[key] for key in bound]
        row.events_after_s = round(max(events_s) - max(times_s), 2)
        row.events_rate = round(row.events / max(max(events_s) - min(times_s), 1e-9), 1)


async def measure_arrival(
    cluster: Cluster, name: str, per_second: float, seconds: float, *, is_bare: bool = False
) -> Row:
    """Pods that arrive one by one while the client runs: how long each waits, and the pauses."""
    namespace = await cluster.new_namespace()
    count = int(per_second * seconds)
    row = Row(name, 0, count)
    client = _bare(cluster, namespace, "follow", str(count)) if is_bare else _scheduler(cluster)
    keys = {f"{namespace}/plain-{index:06d}" for index in range(count)}
    await client.start()
    try:
        await client.ready("synced")
        with uncollected():
            begun_s = time.monotonic()
            await _stream(cluster, namespace, count, begun_s, per_second)
            await _until_bound(cluster, client, keys, is_bare=is_bare)
        _note_usage(row, client)
        _note_times(row, cluster, keys, begun_s)
        row.extra = _waits(cluster, sorted(keys))
        await _until_events(cluster, row, keys)
    finally:
        await client.stop()
    await cluster.empty(namespace)
    return row


async def _stream(
    cluster: Cluster, namespace: str, count: int, begun_s: float, per_second: float
) -> None:
    """Create plain pods at even intervals."""
    creations = []
    for index in range(count):
        await asyncio.sleep(max(0.0, begun_s + index / per_second - time.monotonic()))
        pod = plain(index, 0)
        spec = {**pod["spec"], "schedulerName": SCHEDULER}
        creations.append(asyncio.create_task(cluster.api.create({**pod, "spec": spec}, namespace)))
    await asyncio.gather(*creations)


def _waits(cluster: Cluster, keys: list[str]) -> dict[str, float]:
    """Seen-to-bound percentiles, and the longest time without a binding while pods waited."""
    pairs = [
        (cluster.seen_at_s[key], cluster.bound_at_s[key])
        for key in keys
        if key in cluster.bound_at_s
    ]
    waits_ms = np.array([(bound - seen) * 1000 for seen, bound in pairs])
    seen, bound = np.sort([s for s, _ in pairs]), np.sort([b for _, b in pairs])
    pause_s = 0.0
    for start_s, end_s in pairwise(bound):
        # Pods wait from the first one seen after `start_s`, or already at it.
        at = int(np.searchsorted(bound, start_s, side="right"))
        waits_from_s = max(start_s, float(seen[at])) if at < len(seen) else end_s
        pause_s = max(pause_s, float(end_s - waits_from_s))
    return {
        "seen_to_bound_p50_ms": round(float(np.percentile(waits_ms, 50)), 2),
        "seen_to_bound_p99_ms": round(float(np.percentile(waits_ms, 99)), 2),
        "longest_pause_ms": round(pause_s * 1000, 1),
    }
