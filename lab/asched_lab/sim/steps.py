"""Steps of a scenario: changes to its world. A step happens at once; then time passes.

Objects are plain API mappings; `wait_s` is the time until the next step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asched.core.framework.effects import Bind, PodRef
from asched.core.model.kinds import BY_PLURAL
from asched.kube.transport import WireRequest
from asched.kube.writes import bind
from asched_lab.apiserver import crud
from asched_lab.apiserver.resources import NODES, PODS, find
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.wire import send
from asched_lab.sim.world import SCHEDULER, World

Json = dict[str, Any]

ZONES: Final = ("a", "b", "c")
APPS: Final = ("web", "db", "job")
GRACE_S: Final = 30
ANY_CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Base of all steps. `wait_s` of None is drawn: mostly short, sometimes long."""

    wait_s: float | None = None

    def do(self, world: World) -> None:  # noqa: ARG002 - for subclasses
        raise AssertionError(f"{type(self).__name__} does not define do()")


@dataclass(frozen=True, slots=True)
class Wait(Step):
    def do(self, world: World) -> None:
        """Do nothing; time passes."""


@dataclass(frozen=True, slots=True)
class AddNodes(Step):
    """Nodes of a few sizes in a few zones; `name`: one node that is created again."""

    count: int = 1
    name: str = ""
    cpu: tuple[int, ...] = (1, 2, 4)
    pods: tuple[int, ...] = (3, 10, 110)
    offers: Mapping[str, str] = field(default_factory=dict)

    def do(self, world: World) -> None:
        for _ in range(self.count):
            name = self.name or f"node-{next(world.numbers)}"
            if self.name in world.node_names():
                continue
            amounts = {
                "cpu": str(world.rng.choice(self.cpu)),
                "memory": "8Gi",
                "pods": str(world.rng.choice(self.pods)),
                **self.offers,
            }
            labels = {"kubernetes.io/hostname": name, "disk": world.rng.choice(("ssd", "hdd"))}
            if world.rng.random() < 0.9:
                labels["topology.kubernetes.io/zone"] = world.rng.choice(ZONES)
            status = {"capacity": amounts, "allocatable": amounts}
            world.server.create(
                "nodes", {"metadata": {"name": name, "labels": labels}, "status": status}
            )


@dataclass(frozen=True, slots=True)
class AddPods(Step):
    """Pods of this scheduler. `make` changes each spec; `name`: one pod that is created again."""

    count: int = 1
    name: str = ""
    cpu: tuple[str, ...] = ("100m", "300m", "700m")
    priority: int = 0
    make: Callable[[World, Json], None] | None = field(default=None, compare=False)

    def do(self, world: World) -> None:
        for _ in range(self.count):
            name = self.name or f"pod-{next(world.numbers)}"
            if world.server.get("pods", "default", name) is not None:
                continue
            pod = pod_manifest(name, world.rng.choice(self.cpu))
            if self.priority:
                pod["spec"]["priorityClassName"] = priority_class(world, self.priority)
            if self.make is not None:
                self.make(world, pod)
            world.server.create("pods", pod)


@dataclass(frozen=True, slots=True)
class Drain(Step):
    """Cordon a node, delete its pods, and remove it when they are gone, or even before."""

    node: str
    is_patient: bool = True

    def do(self, world: World) -> None:
        world.note(f"drain {self.node}")
        cordon(world, self.node, unschedulable=True)
        end_pods(world, [p for p in world.placed() if p["spec"]["nodeName"] == self.node])
        wait_s = world.rng.uniform(5.0, 15.0) if self.is_patient else world.rng.uniform(0.0, 2.0)
        world.clock.after(wait_s, lambda: remove(world, "nodes", self.node))


@dataclass(frozen=True, slots=True)
class RemoveNode(Step):
    """Delete a node without a drain."""

    node: str

    def do(self, world: World) -> None:
        world.note(f"node {self.node} is gone")
        remove(world, "nodes", self.node)


@dataclass(frozen=True, slots=True)
class Cordon(Step):
    node: str
    unschedulable: bool = True

    def do(self, world: World) -> None:
        cordon(world, self.node, unschedulable=self.unschedulable)


@dataclass(frozen=True, slots=True)
class DeletePods(Step):
    """Delete some pods, also waiting ones; `share_waiting`: the share of these."""

    count: int = 1
    waiting_too: bool = True

    def do(self, world: World) -> None:
        chosen = world.pods() if self.waiting_too else world.placed()
        end_pods(world, world.some(chosen, self.count))


@dataclass(frozen=True, slots=True)
class FinishPods(Step):
    """Some running pods complete."""

    count: int = 1

    def do(self, world: World) -> None:
        for pod in world.some(world.placed(), self.count):
            phase = world.rng.choice(("Succeeded", "Failed"))
            world.server.ctx.put(PODS, {**pod, "status": {**pod["status"], "phase": phase}})


@dataclass(frozen=True, slots=True)
class Relabel(Step):
    """Change the app label of some pods, also placed ones, as a user might do."""

    count: int = 1

    def do(self, world: World) -> None:
        for pod in world.some(world.waiting() + world.placed(), self.count):
            labels = {**(pod["metadata"].get("labels") or {}), "app": world.rng.choice(APPS)}
            world.server.ctx.put(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})


@dataclass(frozen=True, slots=True)
class Amend(Step):
    """Change some waiting pods, the youngest among them, in a way that may make them fit: smaller
    requests, a toleration of cordons, or another app.
    """

    count: int = 1

    def do(self, world: World) -> None:
        waiting = sorted(world.waiting(), key=lambda pod: pod["metadata"]["creationTimestamp"])
        for pod in [*world.some(waiting[:-1], self.count - 1), *waiting[-1:]][: self.count]:
            metadata, spec = pod["metadata"], pod["spec"]
            roll = world.rng.random()
            if roll < 0.5:
                first, *rest = spec["containers"]
                requests = {**first["resources"]["requests"], "cpu": "50m"}
                first = {**first, "resources": {**first["resources"], "requests": requests}}
                spec = {**spec, "containers": [first, *rest]}
            elif roll < 0.7:
                labels = {**(metadata.get("labels") or {}), "app": world.rng.choice(APPS)}
                metadata = {**metadata, "labels": labels}
            else:
                spec = {**spec, "tolerations": [*(spec.get("tolerations") or ()), ANY_CORDON]}
            world.server.ctx.put(PODS, {**pod, "metadata": metadata, "spec": spec})


@dataclass(frozen=True, slots=True)
class MoveNode(Step):
    """Change a node's zone and disk."""

    node: str

    def do(self, world: World) -> None:
        known = world.server.get("nodes", "", self.node)
        if known is not None:
            labels = {**known["metadata"]["labels"], "disk": world.rng.choice(("ssd", "hdd"))}
            labels["topology.kubernetes.io/zone"] = world.rng.choice(ZONES)
            metadata = {**known["metadata"], "labels": labels}
            world.server.ctx.put(NODES, {**known, "metadata": metadata})


@dataclass(frozen=True, slots=True)
class OpenGates(Step):
    """Remove the scheduling gates of every pod."""

    def do(self, world: World) -> None:
        for pod in world.waiting():
            if pod["spec"].get("schedulingGates"):
                spec = {k: v for k, v in pod["spec"].items() if k != "schedulingGates"}
                world.server.ctx.put(PODS, {**pod, "spec": spec})


@dataclass(frozen=True, slots=True)
class Rival(Step):
    """A second scheduler places pods: some of its own, some of this scheduler's. It reads the API
    and never overcommits by what it reads.
    """

    count: int = 1
    takes_ours: float = 0.3

    def do(self, world: World) -> None:
        for _ in range(self.count):
            if world.rng.random() < self.takes_ours and world.waiting():
                pod = world.rng.choice(world.waiting())
            else:
                name = f"rival-{next(world.numbers)}"
                made = pod_manifest(name, world.rng.choice(("100m", "500m")))
                made["spec"]["schedulerName"] = "rival"
                pod = world.server.create("pods", made)
            self._place(world, pod)

    def _place(self, world: World, pod: Json) -> None:
        end = EndState(world.nodes(), [p for p in world.pods() if not is_through(p)])
        nodes = [name for name in end.nodes if end.has_place(name, pod)]
        if not nodes:
            return
        bind_theirs(world, pod, world.rng.choice(nodes))


# --- parts of steps ------------------------------------------------------------------------------


def pod_manifest(name: str, cpu: str) -> Json:
    """A pod of this scheduler that requests some CPU."""
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name.partition("-")[0]}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [container], "schedulerName": SCHEDULER},
    }


def priority_class(world: World, value: int, policy: str = "PreemptLowerPriority") -> str:
    """The name of a class of this priority, created at the first use."""
    name = f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"
    if world.server.get("priorityclasses", "", name) is None:
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        world.server.create("priorityclasses", made)
    return name


def cordon(world: World, node: str, *, unschedulable: bool) -> None:
    known = world.server.get("nodes", "", node)
    if known is not None:
        spec = {k: v for k, v in known["spec"].items() if k != "unschedulable"}
        if unschedulable:
            spec["unschedulable"] = True
        world.server.ctx.put(NODES, {**known, "spec": spec})


def end_pods(world: World, pods: list[Json]) -> None:
    """Delete with grace, as a user or a controller would."""
    for pod in pods:
        metadata = pod["metadata"]
        record = world.server.ctx.get(PODS, metadata["namespace"], metadata["name"])
        if record is not None:
            crud.delete(world.server.ctx, PODS, record, {"gracePeriodSeconds": GRACE_S})


def remove(world: World, plural: str, name: str, namespace: str = "") -> None:
    kind = BY_PLURAL[plural]
    if world.server.ctx.get(find(plural), namespace, name) is not None:
        send(world.server.ctx, WireRequest("DELETE", kind.object_path(namespace, name), None))


def wipe(world: World, pod: Json) -> None:
    """Delete a pod at once."""
    record = world.server.ctx.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
    if record is not None:
        world.inhabitants.remove(record)


def bind_theirs(world: World, pod: Json, node: str) -> bool:
    """Bind a pod as another scheduler; return whether the server accepted it."""
    metadata = pod["metadata"]
    ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
    is_bound = send(world.server.ctx, bind(Bind(pod=ref, node=node))).status < 300
    if is_bound:
        world.note(f"the rival binds {metadata['name']} to {node}")
    return is_bound


def cpu_of(pod: Json) -> str:
    """The CPU request in a manifest."""
    cpu: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return cpu


def runs(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running")
