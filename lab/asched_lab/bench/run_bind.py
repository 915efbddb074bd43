"""The bind mode: a workload through an API server, with the scheduler as a process of its own.

    this process ──objects──> API server <──watch, bindings, events── asched run
         ^────────── a watch of pods ──┘

The server is the embedded one, also as a process, or the cluster of a kubeconfig. Pods that name no
scheduler, or the default one, get our scheduler's name, so that a scheduler of that cluster does
not take them. A pod counts as scheduled when this process's own watch shows its node.
"""

import asyncio
import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from asched import names
from asched.kube.errors import ConnectError
from asched_lab.apiserver.resources import find
from asched_lab.bench import histograms
from asched_lab.bench.api import PODS_PATH, Api, resource_of
from asched_lab.bench.manifests import (
    JsonObject,
    claims_of,
    in_namespace,
    named,
    scheduled_by,
    served_version,
    updated,
)
from asched_lab.bench.metrics import DataItem
from asched_lab.bench.processes import Process
from asched_lab.bench.suite import Prepared
from asched_lab.bench.world import Step, WorkloadFailedError, World

#: Histograms of the scheduler that become data items.
LATENCIES: Final = (
    "scheduler_scheduling_attempt_duration_seconds",
    "scheduler_scheduling_algorithm_duration_seconds",
)
SCHEDULER_NAME: Final = "asched-bench"
POLL_S: Final = 0.02
SHOW_EVERY_S: Final = 0.5


class BindWorld(World):
    """An API server with our scheduler."""

    mode = "bind"
    has_fine_clock = False

    def __init__(self, api: Api, folder: Path, server: Process | None) -> None:
        super().__init__()
        self.api = api
        self.scheduler: Process | None = None
        self._folder = folder
        self._server = server
        self._tasks: list[asyncio.Task[None]] = []
        self._made: list[tuple[str, str, str]] = []
        #: (namespace, name) of claims whose pods are deleted
        self._orphaned_claims: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._usage_before: Mapping[str, float] = {}
        self._priorities: set[int] = set()
        self._metrics_url = ""
        self._histograms: dict[str, histograms.Histogram] = {}

    @classmethod
    async def started(cls, prepared: Prepared, *, kubeconfig: str = "") -> "BindWorld":
        """Start server, watch and scheduler until all are ready. Raises WorkloadFailedError."""
        folder = Path(tempfile.mkdtemp(prefix="asched-bench-"))
        server = None
        try:
            if not kubeconfig:
                server, kubeconfig = await embedded_server(folder)
            api = await Api.connected(kubeconfig)
        except (ConnectError, WorkloadFailedError) as error:
            if server is not None:
                await server.stop()
            shutil.rmtree(folder, ignore_errors=True)
            raise WorkloadFailedError(str(error)) from error
        world = cls(api, folder, server)
        try:
            world._tasks.append(asyncio.create_task(world._watch()))
            world._tasks.append(asyncio.create_task(world._drop_claims()))
            await world._start_scheduler(prepared, kubeconfig)
        except BaseException:
            await world.close()
            raise
        return world

    async def _start_scheduler(self, prepared: Prepared, kubeconfig: str) -> None:
        file = self._folder / "scheduler.yaml"
        file.write_text(scheduler_config(prepared.config_text, kubeconfig), encoding="utf-8")
        port = free_port()
        self._metrics_url = f"https://127.0.0.1:{port}/metrics"
        arguments = [
            *("run", f"--config={file}", f"--secure-port={port}", "--bind-address=127.0.0.1"),
            f"--cert-dir={self._folder}",
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
        ]
        if prepared.gates:
            pairs = (f"{gate}={str(value).lower()}" for gate, value in prepared.gates.items())
            arguments.append("--feature-gates=" + ",".join(pairs))
        self.scheduler = Process.of_asched("scheduler", arguments, self._folder / "scheduler.log")
        await self.scheduler.start()
        await self.scheduler.ready("synced")

    @property
    def now_s(self) -> float:
        return time.monotonic()

    # --- objects ---------------------------------------------------------------------------------

    async def create(
        self, manifests: Sequence[JsonObject], namespace: str = ""
    ) -> list[JsonObject]:
        for value in {_own_priority(manifest) for manifest in manifests} - {0}:
            await self._make_priority_class(value)
        return await self.api.many([self._creation(each, namespace) for each in manifests])

    async def _make_priority_class(self, value: int) -> None:
        """Upstream's harness switches priority admission off; here a class gives the priority."""
        if value not in self._priorities:
            self._priorities.add(value)
            await self.api.create(_priority_class(value), "")
            self._made.append(("priorityclasses", "", _priority_class(value)["metadata"]["name"]))

    def _creation(self, manifest: JsonObject, namespace: str) -> Callable[[], Any]:
        manifest = served_version(manifest)
        res = resource_of(manifest)
        where = in_namespace(manifest, namespace) if res.namespaced else ""
        obj = named(manifest, self.names, where)
        name = obj["metadata"]["name"]
        if res.kind == "Pod":
            obj = _with_class(scheduled_by(obj, SCHEDULER_NAME))

        async def create() -> JsonObject:
            if res.kind == "Pod":
                self.pods.created(f"{where}/{name}", obj["metadata"].get("labels"), self.now_s)
            made = await self.api.create(obj, where)
            self._made.append((res.qualified, where, name))
            return made

        return create

    async def replace(
        self, manifest: JsonObject, namespace: str, subresources: Iterable[str]
    ) -> None:
        manifest = served_version(manifest)
        res = resource_of(manifest)
        where = in_namespace(manifest, namespace) if res.namespaced else ""
        name = manifest["metadata"]["name"]
        old = await self.api.read(res, where, name)
        body = updated(old, manifest)
        has_status = res.kind == "Node" and "status" in manifest
        for sub in tuple(subresources) or ("", *(("status",) if has_status else ())):
            await self.api.replace(res, where, name, body, sub)

    async def patch(
        self, plural: str, namespace: str, name: str, body: JsonObject, subresource: str = ""
    ) -> None:
        await self.api.patch(find(plural), namespace, name, body, subresource)

    async def delete(self, plural: str, namespace: str, name: str) -> None:
        await self.api.delete(find(plural), namespace, name)
        if plural == "pods":
            self.pods.deleted(f"{namespace}/{name}")

    async def many(self, steps: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        return await self.api.many(steps)

    async def listed(self, plural: str, namespace: str = "") -> list[JsonObject]:
        return await self.api.listed(find(plural), namespace)

    async def _watch(self) -> None:
        async for kind, pod in self.api.watch(PODS_PATH):
            metadata = pod["metadata"]
            key = f"{metadata.get('namespace')}/{metadata.get('name')}"
            if kind == "DELETED":
                self.pods.deleted(key)
                for name in claims_of(pod):
                    self._orphaned_claims.put_nowait((metadata["namespace"], name))
            elif kind in ("ADDED", "MODIFIED"):
                if pod["spec"].get("nodeName"):
                    self.pods.scheduled(key, self.now_s)
                elif any(
                    condition["type"] == names.POD_SCHEDULED
                    for condition in pod.get("status", {}).get("conditions") or ()
                ):
                    self.pods.attempted(key)

    async def _drop_claims(self) -> None:
        """Delete claims of deleted pods, as the resource claim and garbage collection controllers
        do.
        """
        orphaned = self._orphaned_claims
        while True:
            claims = [
                await orphaned.get(),
                *(orphaned.get_nowait() for _ in range(orphaned.qsize())),
            ]
            await self.api.many([partial(self._drop_claim, *claim) for claim in claims])

    async def _drop_claim(self, namespace: str, name: str) -> None:
        claims = find("resourceclaims")
        await self.api.delete(claims, namespace, name)
        with contextlib.suppress(WorkloadFailedError):  # gone already if nothing protects it
            unused = {"status": {"allocation": None, "reservedFor": None}}
            await self.api.patch(claims, namespace, name, unused, "status")
            await self.api.patch(claims, namespace, name, {"metadata": {"finalizers": None}})

    # --- time ------------------------------------------------------------------------------------

    async def until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline_s = self.now_s + timeout_s
        show_s = self.now_s + SHOW_EVERY_S
        while not reached():
            self._check()
            if self.now_s > deadline_s:
                raise WorkloadFailedError(f"waited {timeout_s:.0f} s for {what}")
            if self.now_s > show_s:
                show_s = self.now_s + SHOW_EVERY_S
                self.on_progress()
            await asyncio.sleep(POLL_S)

    def _check(self) -> None:
        """Raises if the scheduler, or a task of this world, has ended."""
        if self.scheduler is not None:
            self.scheduler.check()
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise WorkloadFailedError(str(error)) from error

    async def sleep(self, seconds: float) -> None:
        self._check()
        await asyncio.sleep(seconds)

    def every(self, interval_s: float, step: Step) -> None:
        self._tasks.append(asyncio.create_task(self._repeat(interval_s, step)))

    async def _repeat(self, interval_s: float, step: Step) -> None:
        due_s = self.now_s
        while await step():
            due_s += interval_s
            await asyncio.sleep(max(0.0, due_s - self.now_s))

    # --- figures ---------------------------------------------------------------------------------

    def latencies(self, run: str) -> list[DataItem]:
        now = histograms.fetch(self._metrics_url)
        found = (
            histograms.item(metric, run, now[metric].since(self._histograms.get(metric)))
            for metric in LATENCIES
            if metric in now
        )
        return [item for item in found if item is not None]

    def forget_measured(self) -> None:
        self._histograms = histograms.fetch(self._metrics_url)
        if self.scheduler is not None:
            self._usage_before = self.scheduler.usage()

    def facts(self) -> dict[str, Any]:
        if self.scheduler is None:
            return {}
        usage = self.scheduler.usage()
        cpu_s = usage.get("cpu_s", 0.0) - self._usage_before.get("cpu_s", 0.0)
        return {
            "server": "embedded" if self._server is not None else self.api.session.url,
            "scheduler_cpu_s": round(cpu_s, 2),
            "scheduler_peak_rss_mb": round(usage.get("peak_rss_mb", 0.0)),
            "pods_scheduled": self.pods.scheduled_count,
        }

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.scheduler is not None:
            await self.scheduler.stop()
        if self._server is None:
            await self._clean_up()
        await self.api.close()
        if self._server is not None:
            await self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _clean_up(self) -> None:
        """Remove our objects from the user's cluster, the newest first."""
        made, self._made = self._made[::-1], []
        with contextlib.suppress(WorkloadFailedError):
            for plural in dict.fromkeys(plural for plural, _, _ in made):
                places = [(ns, name) for kind, ns, name in made if kind == plural]
                await self.api.many([self._removal(plural, *place) for place in places])

    def _removal(self, plural: str, namespace: str, name: str) -> Callable[[], Any]:
        return lambda: self.api.delete(find(plural), namespace, name)


async def embedded_server(folder: Path, *more: str) -> tuple[Process, str]:
    """Start the embedded API server as a process, without kubelets and with `more` flags; return it
    and its kubeconfig.
    """
    kubeconfig = folder / "kubeconfig"
    arguments = ["apiserver", "--no-kubelet", "--kubeconfig-out", str(kubeconfig), *more]
    server = Process.of_asched("API server", arguments, folder / "apiserver.log")
    await server.start()
    await server.ready("export KUBECONFIG")
    return server, str(kubeconfig)


def _own_priority(manifest: JsonObject) -> int:
    """The numeric priority of a pod without a class; else 0."""
    spec = manifest.get("spec") or {}
    if manifest.get("kind") != "Pod" or spec.get("priorityClassName"):
        return 0
    return int(spec.get("priority") or 0)


def _priority_class(value: int) -> JsonObject:
    name = f"asched-bench-{'minus-' if value < 0 else ''}{abs(value)}"
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _with_class(pod: JsonObject) -> JsonObject:
    value = _own_priority(pod)
    if not value:
        return pod
    spec = {k: v for k, v in pod["spec"].items() if k != "priority"}
    return {
        **pod,
        "spec": {**spec, "priorityClassName": _priority_class(value)["metadata"]["name"]},
    }


def free_port() -> int:
    """A free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scheduler_config(text: str, kubeconfig: str) -> str:
    """The configuration with the server's address and the scheduler name of this measurement."""
    document = yaml.safe_load(text)
    document["clientConnection"] = {
        **(document.get("clientConnection") or {}),
        "kubeconfig": kubeconfig,
    }
    document["leaderElection"] = {"leaderElect": False}
    profiles = document.get("profiles") or [{}]
    for profile in profiles:
        if profile.get("schedulerName", names.DEFAULT_SCHEDULER_NAME) == (
            names.DEFAULT_SCHEDULER_NAME
        ):
            profile["schedulerName"] = SCHEDULER_NAME
    document["profiles"] = profiles
    written: str = yaml.safe_dump(document, sort_keys=False)
    return written
