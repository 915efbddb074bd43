"""What happens in the trial, and what is seen of it."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from asched.lab.bench.processes import Process
from asched.lab.bench.world import WorkloadFailedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.worst_day.wire import Fault, Wire

Json = dict[str, Any]
NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
#: How long after a fault a binding is waited for before the trial goes on.
RECOVERY_MAX_S: Final = 120.0
FORMS: Final = 8


@dataclass(frozen=True, slots=True)
class Order:
    """What is tried: how many of what, and for how long."""

    scheduler: str = "asched"
    pods: int = 20_000
    nodes: int = 1_000
    kills: int = 20
    api_restarts: int = 5
    etcd_kills: int = 3
    wire_s: float = 600.0
    fault_s: float = 15.0
    calm_s: float = 10.0
    lease_s: int = 15


@dataclass(slots=True)
class Recovery:
    """One fault: what it was, and how long after its end somebody was bound."""

    cause: str
    took_s: float


@dataclass
class Seen:
    """What an observer at the real server, not behind the wire, saw of pods."""

    node_of: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    last_s: float = 0.0

    def pod(self, pod: Json) -> None:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        known = self.node_of.get(name, "")
        if known and known != node:
            self.moved.append(f"{name}: {known}, then {node or 'none'}")
        if node and not known:
            self.last_s = time.monotonic()
        self.node_of[name] = node

    @property
    def bound(self) -> int:
        return sum(map(bool, self.node_of.values()))


def a_node(number: int) -> Json:
    resources = {"cpu": "16", "memory": "64Gi", "pods": "40"}
    labels = {
        "kubernetes.io/hostname": f"n{number}",
        "topology.kubernetes.io/zone": f"z{number % 3}",
        "disk": ("ssd", "hdd")[number % 2],
    }
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": f"n{number}", "labels": labels}, "status": status}


def a_pod(number: int, scheduler: str) -> Json:
    """One of several forms: most are plain, some spread, keep apart or choose nodes."""
    form = number % FORMS
    labels = {"app": f"a{number // 400}"} if form == 1 else {}
    spec: Json = {
        "schedulerName": scheduler,
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{300 + form * 25}m"}}}
        ],
    }
    selector = {"matchLabels": labels}
    if form == 1:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 3,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    if form == 2 and number % (FORMS * 4) == 2:
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"alone": "y"}},
        }
        labels["alone"] = "y"
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": rule}
    if form == 3:
        spec["nodeSelector"] = {"disk": "ssd"}
    return {
        "metadata": {"name": f"p{number}", "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }


class Day:
    """The trial. `run`, then ask `seen`, `recoveries`, `words`."""

    def __init__(
        self,
        order: Order,
        plane: ControlPlane,
        wire: Wire,
        folder: Path,
        told: Callable[[str], None],
    ) -> None:
        self._order = order
        self._plane = plane
        self._wire = wire
        self._folder = folder
        self._told = told
        self._lives = 0
        self._kills = 0
        self._replicas: list[Process] = []
        self._kubeconfig = folder / "kubeconfig"
        document = json.loads(Path(plane.kubeconfig).read_text(encoding="utf-8"))
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{wire.port}"
        self._kubeconfig.write_text(json.dumps(document), encoding="utf-8")
        self.seen = Seen()
        self.recoveries: list[Recovery] = []
        self.created = 0

    async def run(self) -> None:
        """Everything, until every pod has a node or nobody was bound for RECOVERY_MAX_S."""
        order = self._order
        await self._plane.create("/api/v1/nodes", map(a_node, range(order.nodes)))
        for _ in range(2):
            self._replicas.append(await self._born())
        watching = asyncio.ensure_future(self._watch())
        streaming = asyncio.ensure_future(self._stream())
        try:
            await self._bound_since(time.monotonic(), "start")
            await self._deaths()
            await self._on_the_wire()
            await streaming
            await self._the_rest()
        finally:
            watching.cancel()
            streaming.cancel()
            for process in self._replicas:
                await process.stop()

    # --- the scheduler ---------------------------------------------------------------------------

    async def _born(self) -> Process:
        """A replica that reaches the server by the wire alone."""
        self._lives += 1
        name = f"life-{self._lives}"
        lease = self._order.lease_s
        flags = (
            f"--kubeconfig={self._kubeconfig}",
            "--secure-port=0",
            f"--leader-elect-lease-duration={lease}s",
            f"--leader-elect-renew-deadline={lease * 2 // 3}s",
            "--leader-elect-retry-period=2s",
        )
        log = self._folder / f"{name}.log"
        if self._order.scheduler == "asched":
            process = Process.of_asched(name, ("run", *flags), log)
        else:
            binary = str(Path(os.environ["KUBEBUILDER_ASSETS"]) / "kube-scheduler")
            process = Process(name, (binary, *flags), log)
        await process.start()
        return process

    async def _tend(self) -> None:
        """As a kubelet does: what ended is started again, at once."""
        for place, process in enumerate(self._replicas):
            try:
                process.check()
            except WorkloadFailedError:
                self._replicas[place] = await self._born()

    async def _lease_free_s(self) -> float:
        """The monotonic time at which the lease as it stands runs out."""
        name = "asched" if self._order.scheduler == "asched" else "kube-scheduler"
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
        _, lease = await self._plane.client.ask("GET", path)
        moment = lease["spec"]["renewTime"].rstrip("Z").partition(".")
        renewed = time.mktime(time.strptime(moment[0], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        left = renewed + float(f"0.{moment[2] or 0}") + self._order.lease_s - time.time()
        return time.monotonic() + max(0.0, left)

    # --- what goes wrong -------------------------------------------------------------------------

    def _causes(self) -> Iterator[str]:
        """Kills, restarts and kills of the store, mixed evenly."""
        order = self._order
        counts = {"kill": order.kills, "api": order.api_restarts, "etcd": order.etcd_kills}
        slots = [
            ((turn + 0.5) / count, cause)
            for cause, count in counts.items()
            for turn in range(count)
        ]
        yield from (cause for _, cause in sorted(slots))

    async def _deaths(self) -> None:
        for cause in self._causes():
            await asyncio.sleep(self._order.calm_s)
            await getattr(self, f"_{cause}")()

    async def _kill(self) -> None:
        """SIGKILL, with bindings under way: both replicas, or the one that was born first."""
        free_s = await self._lease_free_s()
        self._kills += 1
        oldest = min(self._replicas, key=lambda process: process.started_s)
        both = self._kills % 2
        for process in self._replicas if both else [oldest]:
            os.kill(process.pid, signal.SIGKILL)
        await asyncio.sleep(0.2)
        await self._tend()
        who = "both replicas" if both else "one replica"
        await self._bound_since(free_s, f"{who} killed; counted from the lease's end")

    async def _api(self) -> None:
        await self._plane.kill_and_restart(2.0)
        await self._bound_since(time.monotonic(), "kube-apiserver killed, away for 2 s")

    async def _etcd(self) -> None:
        await self._plane.kill_store(2.0)
        await self._bound_since(time.monotonic(), "etcd killed, away for 2 s")

    async def _on_the_wire(self) -> None:
        until_s = time.monotonic() + self._order.wire_s
        while True:
            for fault in Fault:
                if time.monotonic() > until_s:
                    return
                self._wire.fault = fault
                await asyncio.sleep(self._order.fault_s)
                self._wire.fault = None
                await self._bound_since(time.monotonic(), fault.value)
                await asyncio.sleep(self._order.calm_s)

    # --- what is seen ----------------------------------------------------------------------------

    async def _bound_since(self, since_s: float, cause: str) -> None:
        """Wait for a binding after that moment; note how long it took."""
        while self.seen.last_s <= since_s or time.monotonic() < since_s:
            if time.monotonic() - since_s > RECOVERY_MAX_S:
                break
            if self.seen.bound >= self._order.pods:
                return  # nobody is left to be bound
            await self._tend()
            await asyncio.sleep(0.05)
        took_s = max(0.0, self.seen.last_s - since_s)
        if self.seen.last_s <= since_s:
            took_s = RECOVERY_MAX_S
        self.recoveries.append(Recovery(cause, took_s))
        self._told(f"{self.seen.bound:6} of {self.created} bound  {took_s:6.2f} s after: {cause}")

    async def _stream(self) -> None:
        """Pods, evenly over the trial, created at the server itself."""
        order = self._order
        deaths = order.kills + order.api_restarts + order.etcd_kills
        a_death_s = order.calm_s + 5.0 + order.lease_s * order.kills / max(deaths, 1)
        expected_s = deaths * a_death_s + order.wire_s
        began_s = time.monotonic()
        while self.created < order.pods:
            due = min(order.pods, int((time.monotonic() - began_s) / expected_s * order.pods) + 1)
            while self.created < due:
                if not await self._create(self.created):
                    break
                self.created += 1
            await asyncio.sleep(0.1)

    async def _create(self, number: int) -> bool:
        try:
            pod = a_pod(number, self._scheduler_name)
            status, _ = await self._plane.client.ask("POST", PODS, pod)
        except (aiohttp.ClientError, OSError):
            return False
        return status in (201, 409)  # 409: it was there before the answer was lost

    @property
    def _scheduler_name(self) -> str:
        return "asched" if self._order.scheduler == "asched" else "default-scheduler"

    async def _watch(self) -> None:
        """List and watch pods, again and again, until cancelled."""
        client = self._plane.client
        while True:
            try:
                _, listed = await client.ask("GET", PODS)
                for pod in listed["items"]:
                    self.seen.pod(pod)
                version = listed["metadata"]["resourceVersion"]
                url = f"{client.url}{PODS}?watch=true&resourceVersion={version}"
                limits = aiohttp.ClientTimeout(total=None, sock_read=30)
                async with client.session.get(url, timeout=limits) as answer:
                    async for line in answer.content:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        self.seen.pod(event["object"])
            except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError):
                await asyncio.sleep(0.3)

    async def _the_rest(self) -> None:
        """Until all are bound, or none was for so long."""
        began_s = time.monotonic()
        while self.seen.bound < self._order.pods:
            if time.monotonic() - max(self.seen.last_s, began_s) > RECOVERY_MAX_S:
                return
            await self._tend()
            await asyncio.sleep(0.2)

    @property
    def tracebacks(self) -> list[str]:
        """Logs of lives that hold one."""
        logs = sorted(self._folder.glob("life-*.log"))
        return [log.name for log in logs if "Traceback" in log.read_text(errors="replace")]
