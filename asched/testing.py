"""Test plugins with a small cluster in memory, the real scheduling machine and a simulated clock.

    from asched.testing import given, node, pod

    world = given([node("n1", cpu=4), node("n2", cpu=8)], plugins=[MyPlugin])
    outcome = world.schedule(pod("web", cpu="500m"))
    assert outcome.node == "n2"

Everything between the API server and the plugin is what runs in production; bindings and other
writes succeed at once. Coroutines of plugins are run to their end before `schedule` returns.
"""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asched import names
from asched.core.cluster.facts import (
    Bound,
    Done,
    Fact,
    Gone,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Seen,
)
from asched.core.config.v1 import API_VERSION, KIND
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import (
    Bind,
    CallPlugin,
    CancelCall,
    DeletePod,
    Effect,
    EmitEvent,
    Patch,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.plugin_calls import answer_now
from asched.host.user_plugins.catalogue import Catalogue, of_class

Json = dict[str, Any]
#: A quantity as written in manifests: 4, 0.5, "500m", "8Gi".
Amount = str | int | float

#: The clock of a new world, seconds since 1970.
START_S: Final = 1_800_000_000.0
#: Turns until a world that does not settle fails.
TURNS_MAX: Final = 10_000


def node(
    name: str,
    *,
    cpu: Amount = 4,
    memory: Amount = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    resources: Mapping[str, Amount] | None = None,
) -> Json:
    """The manifest of a node. Taints as kubectl prints them: `gpu=yes:NoSchedule`."""
    offered = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {names.LABEL_HOSTNAME: name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": [_taint(text) for text in taints]},
        "status": {"allocatable": {key: str(amount) for key, amount in offered.items()}},
    }


def pod(
    name: str,
    *,
    cpu: Amount = "100m",
    memory: Amount = "128Mi",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    on: str = "",
    **spec: Any,
) -> Json:
    """The manifest of a pod with one container; `on` a node it runs there already.

    Further keywords go to its spec in the API's spelling, e.g. `priority=5`, `nodeSelector={…}`.
    """
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": {"cpu": str(cpu), "memory": str(memory)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "schedulerName": names.OUR_SCHEDULER_NAME,
            "containers": [container],
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


@dataclass(frozen=True)
class Outcome:
    """Outcome for a pod: its node, or why it has none."""

    node: str
    #: of the PodScheduled condition, e.g. `0/2 nodes are available: 2 too hot.`
    message: str
    #: `Unschedulable` or `SchedulerError`; empty for a pod that is bound
    reason: str


@dataclass
class World(Observer):
    """A cluster under test. `effects` and `events` are all requests to the API so far; `raised` has
    (plugin, point, exception) of plugins that failed.
    """

    now_s: float = START_S
    effects: list[Effect] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    raised: list[tuple[str, str, BaseException]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pods: dict[str, Json] = {}
        self._nodes: dict[str, Json] = {}
        self._machine: Any = None
        self._parts = Parts.fresh()
        self._version = 0

    # --- for tests -------------------------------------------------------------------------------

    def schedule(self, manifest: Json) -> Outcome:
        """Create a pod and run the scheduler until nothing changes any more."""
        self.add(manifest)
        return self.outcome(manifest["metadata"]["name"], manifest["metadata"]["namespace"])

    def outcome(self, name: str, namespace: str = "default") -> Outcome:
        """Outcome for a pod so far."""
        stored = self._pods[f"{namespace}/{name}"]
        where = stored["spec"].get("nodeName", "")
        conditions = [] if where else stored["status"].get("conditions", [])
        condition: Json = next((c for c in conditions if c.get("type") == names.POD_SCHEDULED), {})
        return Outcome(where, condition.get("message", ""), condition.get("reason", ""))

    def add(self, *manifests: Json) -> None:
        """Create or change nodes and pods."""
        facts: list[Fact] = []
        for manifest in manifests:
            stored = copy.deepcopy(manifest)
            if stored["kind"] == "Pod":
                self._pods[_key(stored)] = stored
            else:
                self._nodes[stored["metadata"]["name"]] = stored
            facts.append(self._written(stored))
        self._settle(facts)

    def remove(self, manifest: Json) -> None:
        """Delete a node or a pod."""
        if manifest["kind"] == "Node":
            self._nodes.pop(manifest["metadata"]["name"], None)
            self._settle([Gone(NODE, decode(Node, manifest))])
            return
        stored = self._pods.pop(_key(manifest))
        self._settle([Gone(POD, decode(Pod, stored))])

    def wait(self, seconds: float) -> None:
        """Let time pass: backoffs end, pods are retried."""
        until_s = self.now_s + seconds
        for _ in range(TURNS_MAX):
            next_s = self._machine.next_deadline_s()
            if next_s is None or next_s > until_s:
                break
            self.now_s = max(self.now_s, next_s)
            self._settle([])
        self.now_s = until_s
        self._settle([])

    def asked(self, kind: type[Effect]) -> list[Any]:
        """The effects of one class so far, e.g. `world.asked(Patch)`."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        self.raised.append((plugin, point, error))

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self.raised.append(("", f"{part} {about}", error))

    # --- inside ----------------------------------------------------------------------------------

    def start(self, configuration: Any, plugins: Catalogue, seed: int) -> None:
        """Create the machine; `given` calls this."""
        runners = build_runners(
            configuration, self._parts, factories=plugins.factories, known=plugins.known
        )
        self._machine = build_machine(
            configuration,
            self._parts,
            runners,
            monotonic_s=lambda: 0.0,
            observer=self,
            seed=seed,
        )

    def _settle(self, facts: list[Fact]) -> None:
        for _ in range(TURNS_MAX):
            effects = self._machine.handle(facts, self.now_s)
            facts = [fact for effect in effects for fact in self._performed(effect)]
            due_s = self._machine.next_deadline_s()
            if not facts and (due_s is None or due_s > self.now_s):
                return
        raise AssertionError(f"the world did not come to rest within {TURNS_MAX} turns")

    def _performed(self, effect: Effect) -> list[Fact]:
        """What the API server and the event loop would answer to an effect."""
        self.effects.append(effect)
        match effect:
            case EmitEvent():
                self.events.append(f"{effect.type} {effect.reason}: {effect.note}")
                return []
            case Bind():
                bound = self._changed(effect.pod, spec={"nodeName": effect.node})
                return [Bound(effect.id), *bound]
            case ReadPod():
                return [self._read(effect)]
            case PatchPodStatus():
                return [*self._patched_status(effect), *_done(effect)]
            case Patch() if effect.kind is POD:
                ref = PodRef(namespace=effect.namespace, name=effect.name, uid="")
                return [*_done(effect, dict(effect.body)), *self._changed(ref, **effect.body)]
            case Patch() if effect.kind is NODE:
                return self._patched_node(effect)
            case DeletePod():
                stored = self._pods.pop(effect.pod.key, None)
                gone = [Gone(POD, decode(Pod, stored))] if stored else []
                return [*_done(effect), *gone]
            case CallPlugin():
                return [answer_now(effect, effect.timeout_s)]
            case CancelCall():  # calls have ended already
                return []
        return _done(effect, dict(getattr(effect, "body", {})))

    def _written(self, stored: Json) -> Fact:
        """The watch event of a new version."""
        self._version += 1
        stored["metadata"]["resourceVersion"] = str(self._version)
        if stored["kind"] == "Node":
            return Seen(NODE, decode(Node, stored))
        return Seen(POD, decode(Pod, stored))

    def _read(self, effect: ReadPod) -> Fact:
        stored = self._pods.get(effect.pod.key)
        if stored is None or stored["metadata"]["uid"] != effect.pod.uid:
            return ReadGone(effect.id)
        node = stored["spec"].get("nodeName")
        return ReadPlaced(effect.id, node) if node else ReadPending(effect.id)

    def _changed(self, ref: PodRef, **parts: Any) -> list[Fact]:
        stored = self._pods.get(ref.key)
        if stored is None:
            return []
        _merge(stored, parts)
        return [self._written(stored)]

    def _patched_node(self, effect: Patch) -> list[Fact]:
        stored = self._nodes.get(effect.name)
        if stored is None:
            return [Refused(effect.id, 404, f'nodes "{effect.name}" not found')]
        meant = effect.body.get("metadata", {}).get("resourceVersion")
        if meant not in {None, stored["metadata"]["resourceVersion"]}:
            return [Refused(effect.id, 409, "the object has been modified")]
        _merge(stored, effect.body)
        return [*_done(effect, dict(effect.body)), self._written(stored)]

    def _patched_status(self, effect: PatchPodStatus) -> list[Fact]:
        stored = self._pods.get(effect.pod.key)
        if stored is None:
            return []
        conditions = stored["status"].setdefault("conditions", [])
        if effect.condition is not None:
            kind = effect.condition.get("type")
            present = next((c for c in conditions if c["type"] == kind), None)
            if present is None:
                present = {}
                conditions.append(present)
            present.update(effect.condition)
        if effect.nominated_node_name is not None:
            stored["status"]["nominatedNodeName"] = effect.nominated_node_name
        return [self._written(stored)]


def given(
    nodes: Iterable[Json] = (),
    pods: Iterable[Json] = (),
    *,
    plugins: Sequence[type[Any] | str] = (),
    args: Mapping[str, Mapping[str, Any]] | None = None,
    profile: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> World:
    """A cluster with these nodes and pods, scheduled with these plugins: classes of your own, names
    of in-tree plugins.

    `args` by plugin name, as in pluginConfig. `profile` is the `plugins` part of a profile; without
    it the plugins run at all their points after the default ones. `seed` decides among equals.
    """
    own = [plugin for plugin in plugins if not isinstance(plugin, str)]
    catalogue = Catalogue([of_class(cls, cls.__module__) for cls in own])
    in_tree = [plugin for plugin in plugins if isinstance(plugin, str)]
    enabled = [{"name": name} for name in (*in_tree, *catalogue.plugins)]
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [
            {
                "schedulerName": names.OUR_SCHEDULER_NAME,
                "plugins": dict(profile or {"multiPoint": {"enabled": enabled}}),
                "pluginConfig": [{"name": n, "args": dict(a)} for n, a in (args or {}).items()],
            }
        ],
    }
    loaded = load_config(text=json.dumps(document), known=catalogue.known)
    world = World()
    world.start(loaded.configuration, catalogue, seed)
    world.add(*nodes, *pods)
    return world


def _done(effect: Effect, obj: Json | None = None) -> list[Fact]:
    return [Done(effect.id, obj)] if effect.answers and effect.wants_answer else []


def _merge(stored: Json, parts: Mapping[str, Any]) -> None:
    """A JSON merge patch."""
    for key, value in parts.items():
        if value is None:
            stored.pop(key, None)
        elif isinstance(value, Mapping):
            _merge(stored.setdefault(key, {}), value)
        else:
            stored[key] = value


def _key(manifest: Json) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"


def _taint(text: str) -> Json:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}
