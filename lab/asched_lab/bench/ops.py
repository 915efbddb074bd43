"""Runs the operations of a workload in a world, one after the other, and collects the
measurements.

Bounds  SCHEDULED_TIMEOUT_S for pods to be scheduled, as upstream; CHUNK objects are made at a time.
Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from asched_lab.bench import metrics, stand_ins
from asched_lab.bench.manifests import DEFAULT_NODE, DEFAULT_POD, JsonObject
from asched_lab.bench.metrics import DataItem
from asched_lab.bench.objects import NodeMaker, resource_of
from asched_lab.bench.opcodes import ATTEMPTED, Op
from asched_lab.bench.templates import Template
from asched_lab.bench.watching import Collection
from asched_lab.bench.workload import Workload
from asched_lab.bench.world import WorkloadFailedError, World

SCHEDULED_TIMEOUT_S: Final = 600.0
CHUNK: Final = 1000

#: Called when an operation begins: position, number of operations, opcode and purpose.
Progress = Callable[[int, int, str], None]


class OpRunner:
    """One running workload."""

    def __init__(self, workload: Workload, world: World, progress: Progress) -> None:
        self.workload = workload
        self.world = world
        self.items: list[DataItem] = []
        self.collected: list[Collection] = []
        self._progress = progress
        self._nodes = NodeMaker(world, workload)
        self._namespaces: set[str] = set()
        self._pod_namespaces: list[str] = []
        self._open: Collection | None = None
        self._run: Mapping[str, Callable[[int, Op], Awaitable[None]]] = {
            "createNodes": self._create_nodes,
            "createNamespaces": self._create_namespaces,
            "createPods": self._create_pods,
            "deletePods": self._delete_pods,
            "churn": self._churn,
            "barrier": self._barrier,
            "sleep": self._sleep,
            "startCollectingMetrics": self._start_collecting,
            "stopCollectingMetrics": self._stop_collecting,
            "createAny": self._create_any,
            "updateAny": self._update_any,
            "createResourceClaims": self._create_any,
            "createResourceDriver": self._create_driver,
            "allocResourceClaims": self._allocate_claims,
        }

    async def run(self) -> None:
        """Run all operations. Raises CannotRunError and WorkloadFailedError."""
        for index, op in enumerate(self.workload.ops):
            self._progress(index, len(self.workload.ops), op.opcode)
            try:
                await self._run[op.opcode](index, op)
            except ValueError as error:
                raise WorkloadFailedError(f"operation {index} ({op.opcode}): {error}") from error
        if self._open is not None:
            await self._stop_collecting(len(self.workload.ops), Op("stopCollectingMetrics", {}))

    # --- nodes and namespaces --------------------------------------------------------------------

    async def _create_nodes(self, index: int, op: Op) -> None:
        path = op["nodeTemplatePath"]
        template = Template.read(self.workload.path(path)) if path else None
        await self._nodes.create(op, template or _fixed(DEFAULT_NODE, f"node-{index}-"))

    async def _create_namespaces(self, _: int, op: Op) -> None:
        path = op["namespaceTemplatePath"]
        template = Template.read(self.workload.path(path)) if path else None
        for number in range(op["count"]):
            base = template.of(number, op["count"]) if template else {}
            await self._make_namespace(f"{op['prefix']}-{number}", base)

    async def _make_namespace(self, name: str, base: JsonObject | None = None) -> None:
        if name in self._namespaces or name == "default":
            return
        self._namespaces.add(name)
        base = base or {}
        metadata = {k: v for k, v in (base.get("metadata") or {}).items() if k != "generateName"}
        metadata["name"] = name
        manifest = {"apiVersion": "v1", "kind": "Namespace", **base, "metadata": metadata}
        await self.world.create([manifest])

    # --- pods ------------------------------------------------------------------------------------

    async def _create_pods(self, index: int, op: Op) -> None:
        namespace = op["namespace"] if op["namespace"] is not None else f"namespace-{index}"
        await self._make_namespace(namespace)
        self._pod_namespaces.append(namespace)
        world, count = self.world, op["count"]
        collection = None
        if op["collectMetrics"]:
            collection = self._begin(namespace, frozenset({namespace}), None)
        started_s = world.now_s
        while True:
            base = world.pods.scheduled_by_namespace[namespace]
            await self._make_pods(op, namespace)
            if not op["skipWaitToCompletion"]:
                await world.until(
                    lambda base=base: (  # type: ignore[misc]
                        world.pods.scheduled_by_namespace[namespace] >= base + count
                    ),
                    SCHEDULED_TIMEOUT_S,
                    f"{count} pods of {namespace} to be scheduled",
                )
            if not op["steadyState"] or world.now_s - started_s >= op["duration"]:
                break
            await self._remove_pods(namespace, None)
        if collection is not None:
            self._end(collection)

    async def _make_pods(self, op: Op, namespace: str) -> None:
        count = op["count"]
        path = op["podTemplatePath"]
        file = self.workload.path(path) if path else self.workload.default_pod_template
        template = Template.read(file) if file else _fixed(DEFAULT_POD, "")
        volumes = stand_ins.BoundVolumes.of(op, self.workload, namespace)
        for start in range(0, count, CHUNK):
            pods = []
            numbers = range(start, min(start + CHUNK, count))
            for number in numbers:
                pod = template.of(number, count)
                if volumes is not None:
                    pod = volumes.mounted(pod, number)
                pods.append(pod)
            if volumes is not None:
                await volumes.create(self.world, numbers)
            made = await self.world.create(pods, namespace)
            await stand_ins.make_claims(self.world, made)

    async def _remove_pods(self, namespace: str, selector: Mapping[str, str] | None) -> None:
        names = self._selected(namespace, selector)
        await self.world.many([partial(self.world.delete, "pods", namespace, n) for n in names])

    def _selected(self, namespace: str, selector: Mapping[str, str] | None) -> list[str]:
        return self.world.pods.names(namespace, selector)

    async def _delete_pods(self, _: int, op: Op) -> None:
        world, namespace = self.world, op["namespace"]
        names = self._selected(namespace, op["labelSelector"])
        names.reverse()

        async def delete_next() -> bool:
            if names:
                await world.delete("pods", namespace, names.pop())
            return bool(names)

        if not op["deletePodsPerSecond"]:
            while await delete_next():
                pass
            return
        world.every(1.0 / op["deletePodsPerSecond"], delete_next)
        if not op["skipWaitToCompletion"]:
            await world.until(lambda: not names, SCHEDULED_TIMEOUT_S, "pods to be deleted")

    async def _churn(self, index: int, op: Op) -> None:
        world, number = self.world, op["number"]
        namespace = op["namespace"] if op["namespace"] is not None else f"namespace-{index}"
        await self._make_namespace(namespace)
        templates = [Template.read(self.workload.path(path)) for path in op["templatePaths"]]
        slots: dict[tuple[int, int], tuple[str, str, str]] = {}
        tick = 0

        async def step() -> bool:
            nonlocal tick
            for position, template in enumerate(templates):
                slot = (position, tick % number) if op["mode"] == "recreate" else None
                if slot is not None and slot in slots:
                    await world.delete(*slots.pop(slot))
                    continue
                made = await world.create([template.of(tick, number)], namespace)
                if slot is not None:
                    slots[slot] = _place(made[0])
            tick += 1
            return op["mode"] == "recreate" or not number or tick < number

        world.every(op["intervalMilliseconds"] / 1000.0, step)

    # --- waiting ---------------------------------------------------------------------------------

    async def _barrier(self, _: int, op: Op) -> None:
        world = self.world
        namespaces = op["namespaces"] or tuple(self._pod_namespaces)
        is_attempted_enough = op["stageRequirement"] == ATTEMPTED
        next_count = 0

        def reached() -> bool:
            """Count pods only after enough progress that none could remain."""
            nonlocal next_count
            if world.pods.progress < next_count:
                return False
            waiting = world.pods.waiting(
                namespaces, op["labelSelector"], attempted_is_enough=is_attempted_enough
            )
            next_count = world.pods.progress + waiting
            return not waiting

        what = f"every pod to be {op['stageRequirement'].lower()}"
        await world.until(reached, SCHEDULED_TIMEOUT_S, what)

    async def _sleep(self, _: int, op: Op) -> None:
        await self.world.sleep(op["duration"])

    # --- measuring -------------------------------------------------------------------------------

    async def _start_collecting(self, _: int, op: Op) -> None:
        if self._open is not None:
            raise ValueError("metrics are being collected already")
        name = op["name"] or ",".join(op["namespaces"])
        self._open = self._begin(name, frozenset(op["namespaces"]), op["labelSelector"])

    async def _stop_collecting(self, _: int, op: Op) -> None:
        del op
        if self._open is None:
            raise ValueError("no metrics are being collected")
        self._end(self._open)
        self._open = None

    def _begin(
        self, name: str, namespaces: frozenset[str], selector: Mapping[str, str] | None
    ) -> Collection:
        self.world.forget_measured()
        collection = Collection(name, namespaces, selector, self.world.now_s)
        self.world.pods.collections.append(collection)
        return collection

    def _end(self, collection: Collection) -> None:
        """Close a collection and make its data items."""
        collection.stopped_s = self.world.now_s
        self.collected.append(collection)
        name = self.workload.full_name
        measured = metrics.throughput(collection, name, is_fine=self.world.has_fine_clock)
        engine_s = self.world.facts().get("engine_s")
        if engine_s:
            measured.data["Engine"] = len(collection.scheduled_at_s) / engine_s
        self.items.append(measured)
        run = f"{name}/{collection.name}"
        self.items += self.world.latencies(run)
        waited = metrics.latency("pod_created_to_scheduled", run, collection.waited_s)
        if waited is not None:
            self.items.append(waited)

    # --- any object ------------------------------------------------------------------------------

    async def _create_any(self, _: int, op: Op) -> None:
        template = Template.read(self.workload.path(op["templatePath"]))
        count = op["count"]
        if op["namespace"]:
            await self._make_namespace(op["namespace"])
        manifests = [template.of(number, count) for number in range(count)]
        for start in range(0, count, CHUNK):
            await self.world.create(manifests[start : start + CHUNK], op["namespace"])

    async def _update_any(self, _: int, op: Op) -> None:
        template = Template.read(self.workload.path(op["templatePath"]))
        for number in range(op["count"]):
            manifest = template.of(number, op["count"])
            await self.world.replace(manifest, op["namespace"], op["subresources"])
            if op["updatePerSecond"]:
                await self.world.sleep(1.0 / op["updatePerSecond"])

    # --- dynamic resources -----------------------------------------------------------------------

    async def _create_driver(self, _: int, op: Op) -> None:
        await stand_ins.publish_slices(
            self.world, op["driverName"], op["nodes"], op["maxClaimsPerNode"]
        )

    async def _allocate_claims(self, _: int, op: Op) -> None:
        await stand_ins.allocate_claims(self.world, op["namespace"])


def _fixed(manifest: JsonObject, prefix: str) -> Template:
    """A template that gives the same object for every index."""
    if prefix:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "generateName": prefix}}
    return Template.holding(manifest)


def _place(obj: JsonObject) -> tuple[str, str, str]:
    plural, namespaced = resource_of(obj)
    return plural, obj["metadata"]["namespace"] if namespaced else "", obj["metadata"]["name"]
