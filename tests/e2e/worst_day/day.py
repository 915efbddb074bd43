"""What happens in the trial, and what is seen of it."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import yaml

from tests.e2e.control_plane import ControlPlane, Plane
from tests.e2e.worst_day.side import Side
from tests.e2e.worst_day.wire import Fault, Wire

Json = dict[str, Any]
NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
#: How long after a fault a binding is waited for before the trial goes on.
RECOVERY_MAX_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Order:
    """What is tried: how many of what, and for how long."""

    scheduler: str = "asched"
    pods: int = 20_000
    #: Another scheduler that the same happens to at the same time, and how many pods are its own.
    beside: str = ""
    beside_pods: int = 5_000
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
    """One fault: what it was, and how long after its end somebody was bound by whom."""

    cause: str
    who: str
    took_s: float


@dataclass
class Seen:
    """What an observer at the real server, not behind the wire, saw of pods."""

    sides: list[Side]
    node_of: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)

    def pod(self, pod: Json) -> None:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        known = self.node_of.get(name, "")
        if known and known != node:
            self.moved.append(f"{name}: {known}, then {node or 'none'}")
        if node and not known:
            asked = pod["spec"]["schedulerName"]
            side = next(one for one in self.sides if one.scheduler_name == asked)
            side.last_s = time.monotonic()
            side.bound += 1
        self.node_of[name] = node


def a_node(number: int) -> Json:
    resources = {"cpu": "16", "memory": "64Gi", "pods": "40"}
    labels = {
        "kubernetes.io/hostname": f"n{number}",
        "topology.kubernetes.io/zone": f"z{number % 3}",
        "disk": ("ssd", "hdd")[number % 2],
    }
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": f"n{number}", "labels": labels}, "status": status}


class Day:
    """The trial. `run`, then ask `seen`, `recoveries`, `words`."""

    def __init__(
        self,
        order: Order,
        plane: Plane,
        wire: Wire,
        folder: Path,
        told: Callable[[str], None],
    ) -> None:
        self._order = order
        self._plane = plane
        self._wire = wire
        self._folder = folder
        self._told = told
        self._kills = 0
        kubeconfig = folder / "kubeconfig"
        document = yaml.safe_load(Path(plane.kubeconfig).read_text(encoding="utf-8"))
        scheme = urlsplit(plane.client.url).scheme
        document["clusters"][0]["cluster"]["server"] = f"{scheme}://127.0.0.1:{wire.port}"
        kubeconfig.write_text(json.dumps(document), encoding="utf-8")
        counts = {order.scheduler: order.pods}
        if order.beside:
            counts[order.beside] = order.beside_pods
        self.sides = [
            Side(kind, count, plane, kubeconfig, folder, order.lease_s)
            for kind, count in counts.items()
        ]
        self.seen = Seen(self.sides)
        self.recoveries: list[Recovery] = []

    async def run(self) -> None:
        """Everything, until every pod has a node or nobody was bound for RECOVERY_MAX_S."""
        order = self._order
        await self._plane.create("/api/v1/nodes", map(a_node, range(order.nodes)))
        for side in self.sides:
            await side.begin()
        watching = asyncio.ensure_future(self._watch())
        streaming = asyncio.gather(*map(self._stream, self.sides))
        try:
            await self._bound_since(time.monotonic(), "start")
            await self._deaths()
            await self._on_the_wire()
            await streaming
            await self._the_rest()
        finally:
            watching.cancel()
            streaming.cancel()
            for side in self.sides:
                await side.end()

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
            await self._passes(self._order.calm_s)
            await getattr(self, f"_{cause}")()

    async def _kill(self) -> None:
        """SIGKILL, with bindings under way: both replicas of each side, or one by turns."""
        self._kills += 1
        both = bool(self._kills % 2)
        free_s = [await side.lease_free_s() for side in self.sides]
        for side in self.sides:
            await side.kill(both=both)
        await asyncio.sleep(0.2)
        cause = f"{'both replicas' if both else 'one replica'} killed; counted from the lease's end"
        each = zip(self.sides, free_s, strict=True)
        await asyncio.gather(*(self._recovered(side, since_s, cause) for side, since_s in each))

    async def _api(self) -> None:
        await self._plane.kill_and_restart(2.0)
        await self._bound_since(time.monotonic(), "API server killed, away for 2 s")

    async def _etcd(self) -> None:
        assert isinstance(self._plane, ControlPlane)
        await self._plane.kill_store(2.0)
        await self._bound_since(time.monotonic(), "etcd killed, away for 2 s")

    async def _on_the_wire(self) -> None:
        until_s = time.monotonic() + self._order.wire_s
        while True:
            for fault in Fault:
                if time.monotonic() > until_s:
                    return
                self._wire.fault = fault
                await self._passes(self._order.fault_s)
                self._wire.fault = None
                await self._bound_since(time.monotonic(), fault.value)
                await self._passes(self._order.calm_s)

    # --- what is seen ----------------------------------------------------------------------------

    async def _passes(self, seconds: float) -> None:
        """Time passes; who ends meanwhile, because it lost the lease, say, is started again."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            for side in self.sides:
                await side.tend()
            await asyncio.sleep(min(0.2, seconds))

    async def _bound_since(self, since_s: float, cause: str) -> None:
        await asyncio.gather(*(self._recovered(side, since_s, cause) for side in self.sides))

    async def _recovered(self, side: Side, since_s: float, cause: str) -> None:
        """Wait for a binding after that moment; note how long it took."""
        while side.last_s <= since_s or time.monotonic() < since_s:
            if time.monotonic() - since_s > RECOVERY_MAX_S:
                break
            if side.bound >= side.pods:
                return  # nobody is left to be bound
            await side.tend()
            await asyncio.sleep(0.05)
        took_s = max(0.0, side.last_s - since_s)
        if side.last_s <= since_s:
            took_s = RECOVERY_MAX_S
        self.recoveries.append(Recovery(cause, side.kind, took_s))
        words = (
            f"{side.kind}: {side.bound:6} of {side.created} bound  {took_s:6.2f} s after: {cause}"
        )
        self._told(f"{time.strftime('%H:%M:%S')} {words}")

    async def _stream(self, side: Side) -> None:
        """Pods of a side, evenly over the trial, created at the server itself."""
        order = self._order
        deaths = order.kills + order.api_restarts + order.etcd_kills
        a_death_s = order.calm_s + 5.0 + order.lease_s * order.kills / max(deaths, 1)
        expected_s = deaths * a_death_s + order.wire_s
        began_s = time.monotonic()
        while side.created < side.pods:
            due = min(side.pods, int((time.monotonic() - began_s) / expected_s * side.pods) + 1)
            while side.created < due:
                if not await self._create(side.a_pod(side.created)):
                    break
                side.created += 1
            await asyncio.sleep(0.1)

    async def _create(self, pod: Json) -> bool:
        try:
            status, _ = await self._plane.client.ask("POST", PODS, pod)
        except (aiohttp.ClientError, OSError):
            return False
        return status in (201, 409)  # 409: it was there before the answer was lost

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
        while any(side.bound < side.pods for side in self.sides):
            last_s = max(side.last_s for side in self.sides)
            if time.monotonic() - max(last_s, began_s) > RECOVERY_MAX_S:
                return
            await self._passes(0.2)

    @property
    def tracebacks(self) -> list[str]:
        """Logs of lives that hold one."""
        logs = sorted(self._folder.glob("life-*.log"))
        return [log.name for log in logs if "Traceback" in log.read_text(errors="replace")]
