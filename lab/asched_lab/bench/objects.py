"""The objects of the decide mode: what an API server would store, as plain mappings.

Every write returns the facts of a watch for it. Versions are immutable: a change makes new mappings
along the changed path and shares the rest, so ten thousand pods of one template share one spec.

Work of kubelets and controllers that a run needs happens at once: deleted pods are gone unless they
have a finalizer, and claims are deleted with the pod that owns them.

createNodes makes nodes with names, hostnames, and what the strategies add to them. A strategy goes
by position in the list of all nodes sorted by name, and starts after the nodes of earlier
operations; so it may change a node of an earlier operation whose name sorts after the new ones.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from asched.core.cluster.facts import (
    Answer,
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
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    Create,
    Delete,
    DeletePod,
    Effect,
    Patch,
    PatchPodStatus,
    ReadPod,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_RESOURCE, Kind
from asched_lab.apiserver.resources import BY_KIND, find
from asched_lab.bench.manifests import (
    HOSTNAME_LABEL,
    JsonObject,
    Names,
    claims_of,
    in_namespace,
    merged,
    named,
    served_version,
    updated,
    with_defaults,
)
from asched_lab.bench.opcodes import Op
from asched_lab.bench.templates import Template
from asched_lab.bench.workload import Workload
from asched_lab.bench.world import World

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
CHUNK: Final = 1000


class NodeMaker:
    """Creates nodes and records their names."""

    def __init__(self, world: World, workload: Workload) -> None:
        self._world = world
        self._workload = workload
        self._names: list[str] = []

    async def create(self, op: Op, template: Template) -> None:
        """All nodes of one operation."""
        count = op["count"]
        fresh: dict[str, JsonObject] = {}
        for number in range(count):
            node = self._named(template.of(number, count))
            fresh[node["metadata"]["name"]] = node
        start = len(self._names)
        self._names = sorted([*self._names, *fresh])
        csi_nodes = []
        for position, name in enumerate(self._names[start : start + count]):
            patch = strategy_patch(op, position, name)
            if patch and name in fresh:
                fresh[name] = _with_allocatable(fresh[name], patch)
            elif patch:
                await self._world.patch("nodes", "", name, patch)
            csi_node = _csi_node(op["nodeAllocatableStrategy"], name)
            if csi_node is not None:
                csi_nodes.append(csi_node)
        for objects in (list(fresh.values()), csi_nodes):
            for at in range(0, len(objects), CHUNK):
                await self._world.create(objects[at : at + CHUNK])

    def _named(self, manifest: JsonObject) -> JsonObject:
        node = named(manifest, self._world.names)
        metadata = node["metadata"]
        labels = {**(metadata.get("labels") or {}), HOSTNAME_LABEL: metadata["name"]}
        metadata["labels"] = labels
        if self._workload.declared_features:
            features = sorted(f"Feature{i}" for i in range(self._workload.declared_features))
            node["status"] = {**(node.get("status") or {}), "declaredFeatures": features}
        return node


def strategy_patch(op: Op, position: int, name: str) -> JsonObject:
    """What a strategy adds to the node at a position, as a merge patch."""
    if op["labelNodePrepareStrategy"] is not None:
        strategy = op["labelNodePrepareStrategy"]
        values = strategy["labelValues"]
        return {"metadata": {"labels": {strategy["labelKey"]: values[position % len(values)]}}}
    if op["uniqueNodeLabelStrategy"] is not None:
        return {"metadata": {"labels": {op["uniqueNodeLabelStrategy"]["labelKey"]: name}}}
    if op["nodeAllocatableStrategy"] is not None:
        amounts = op["nodeAllocatableStrategy"].get("nodeAllocatable") or {}
        return {"status": {"allocatable": dict(amounts)}} if amounts else {}
    return {}


def _with_allocatable(node: JsonObject, patch: JsonObject) -> JsonObject:
    status = node.get("status") or {}
    if "status" in patch and "allocatable" not in status:
        node = {**node, "status": {**status, "allocatable": status.get("capacity") or {}}}
    result: JsonObject = merged(node, patch)
    return result


def _csi_node(strategy: Mapping[str, Any] | None, name: str) -> JsonObject | None:
    """The CSINode of a node, if the strategy configures drivers."""
    if strategy is None or not (
        strategy.get("csiNodeAllocatable") or strategy.get("migratedPlugins")
    ):
        return None
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": dict(limits)}
        for driver, limits in (strategy.get("csiNodeAllocatable") or {}).items()
    ]
    migrated = ",".join(strategy.get("migratedPlugins") or ())
    metadata: JsonObject = {"name": name}
    if migrated:
        metadata["annotations"] = {MIGRATED_PLUGINS: migrated}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata,
        "spec": {"drivers": drivers},
    }


NOT_FOUND: Final = 404
CONFLICT: Final = 409


def _name_of(kind: Kind) -> str:
    """A kind's resource name, as in `Resource.qualified`."""
    group = kind.group_version.rpartition("/")[0]
    return f"{kind.plural}.{group}" if group else kind.plural


#: Kinds that a scheduler watches, by resource name.
WATCHED: Final = {_name_of(kind): kind for kind in BY_RESOURCE.values()}


def resource_of(manifest: JsonObject) -> tuple[str, bool]:
    """The resource name of a manifest's kind (`podgroups.scheduling.k8s.io`, but plain `pods`), and
    whether it has namespaces. Raises ValueError.
    """
    kind = str(manifest.get("kind", ""))
    found = BY_KIND.get((str(manifest.get("apiVersion", "")), kind))
    if found is not None:
        return found.qualified, found.namespaced
    raise ValueError(f"{manifest.get('apiVersion')} {kind} is no kind of this server")


@cache
def _table(plural: str) -> str:
    """The full resource name for a name that may be the plural alone. Raises KeyError."""
    return find(plural).qualified


class Objects:
    """Mappings by resource name and (namespace, name). Callers may name resources by plural alone
    where one group has it; the first group wins.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[tuple[str, str], JsonObject]] = {}
        self._version = 0
        self._attempted: list[str] = []
        self._gone_pods: list[str] = []

    def get(self, plural: str, namespace: str, name: str) -> JsonObject | None:
        return self._tables.get(_table(plural), {}).get((namespace, name))

    def listed(self, plural: str, namespace: str = "") -> list[JsonObject]:
        """Objects by name, of one namespace or of all."""
        table = self._tables.get(_table(plural), {})
        return [table[key] for key in sorted(table) if not namespace or key[0] == namespace]

    def take_attempted(self) -> list[str]:
        """Keys of pods that got a scheduling condition since the last call."""
        taken, self._attempted = self._attempted, []
        return taken

    def take_gone_pods(self) -> list[str]:
        """Keys of pods that effects removed since the last call."""
        taken, self._gone_pods = self._gone_pods, []
        return taken

    # --- writes of workloads ---------------------------------------------------------------------

    def create(
        self, manifest: JsonObject, namespace: str, naming: Names
    ) -> tuple[JsonObject, list[Fact]]:
        """Store an object that does not exist yet. Raises ValueError."""
        manifest = with_defaults(served_version(manifest))
        plural, namespaced = resource_of(manifest)
        where = in_namespace(manifest, namespace) if namespaced else ""
        obj = named(manifest, naming, where)
        name = obj["metadata"]["name"]
        if self.get(plural, where, name) is not None:
            raise ValueError(f"{plural} {name!r} exists already")
        self._version += 1
        obj["metadata"]["uid"] = f"00000000-0000-4000-8000-{self._version:012x}"
        return obj, self._put(plural, (where, name), obj)

    def replace(self, manifest: JsonObject, namespace: str) -> list[Fact]:
        """Change what the manifest names. Raises ValueError if it does not exist."""
        plural, namespaced = resource_of(manifest)
        manifest = with_defaults(manifest)
        where = in_namespace(manifest, namespace) if namespaced else ""
        name = manifest["metadata"]["name"]
        old = self.get(plural, where, name)
        if old is None:
            raise ValueError(f"{plural} {name!r} is to be updated, but does not exist")
        return self._put(plural, (where, name), updated(old, manifest))

    def patch(
        self, plural: str, namespace: str, name: str, body: Mapping[str, Any]
    ) -> list[Fact] | None:
        """Apply a JSON merge patch; None if there is no such object."""
        obj = self.get(plural, namespace, name)
        return None if obj is None else self._put(plural, (namespace, name), merged(obj, body))

    def delete(self, plural: str, namespace: str, name: str) -> list[Fact]:
        """Remove an object; finalizers hold it back, marked as terminating."""
        obj = self.get(plural, namespace, name)
        if obj is None:
            return []
        metadata = obj["metadata"]
        if metadata.get("finalizers"):
            if metadata.get("deletionTimestamp"):
                return []
            marked = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
            return self._put(plural, (namespace, name), {**obj, "metadata": marked})
        return self._drop(plural, namespace, name)

    def _drop(self, plural: str, namespace: str, name: str) -> list[Fact]:
        """Remove an object for good, and the claims that it owns."""
        obj = self.get(plural, namespace, name)
        if obj is None:
            return []
        del self._tables[_table(plural)][namespace, name]
        facts = self._facts_of(_table(plural), obj, gone=True)
        if plural == "pods":
            self._gone_pods.append(f"{namespace}/{name}")
            for claim in claims_of(obj):
                facts += self._drop("resourceclaims", namespace, claim)
        return facts

    # --- effects of the scheduler ----------------------------------------------------------------

    def perform(self, effect: Effect) -> list[Fact]:
        """Perform an effect; return its answer, if it has one, and the facts of the watches."""
        facts = self._perform(effect)
        if effect.wants_answer:
            return facts
        return [fact for fact in facts if not isinstance(fact, Answer)]

    def _perform(self, effect: Effect) -> list[Fact]:
        match effect:
            case Bind():
                return self._bind(effect)
            case PatchPodStatus():
                return self._patch_pod_status(effect)
            case ReadPod():
                return [self._read(effect)]
            case DeletePod():
                facts = self.delete("pods", effect.pod.namespace, effect.pod.name)
                return [Done(effect.id), *facts] if facts else [_missing(effect.id)]
            case Delete():
                facts = self.delete(_name_of(effect.kind), effect.namespace, effect.name)
                return [Done(effect.id), *facts] if facts else [_missing(effect.id)]
            case Patch():
                return self._patch(effect)
            case Create():
                return self._create(effect)
            case AskExtender() | CallPlugin():
                return [Refused(effect.id, 0, "the decide mode has neither extenders nor plugins")]
            case _:
                return []

    def _bind(self, effect: Bind) -> list[Fact]:
        key = (effect.pod.namespace, effect.pod.name)
        pod = self.get("pods", *key)
        if pod is None or pod["metadata"]["uid"] != effect.pod.uid:
            return [_missing(effect.id)]
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            text = f'pod {effect.pod.name} is already assigned to node "{effect.node}"'
            return [Refused(effect.id, CONFLICT, text, "Conflict")]
        condition = {"type": "PodScheduled", "status": "True"}
        bound = {
            **pod,
            "spec": {**pod["spec"], "nodeName": effect.node},
            "status": _with_condition(pod["status"], condition),
        }
        return [Bound(effect.id), *self._put("pods", key, bound)]

    def _patch_pod_status(self, effect: PatchPodStatus) -> list[Fact]:
        key = (effect.pod.namespace, effect.pod.name)
        pod = self.get("pods", *key)
        if pod is None:
            return [_missing(effect.id)]
        status = pod["status"]
        if effect.condition is not None:
            status = _with_condition(status, effect.condition)
            self._attempted.append(effect.pod.key)
        if effect.nominated_node_name is not None:
            status = {**status, "nominatedNodeName": effect.nominated_node_name}
        return [Done(effect.id), *self._put("pods", key, {**pod, "status": status})]

    def _read(self, effect: ReadPod) -> Answer:
        pod = self.get("pods", effect.pod.namespace, effect.pod.name)
        if pod is None or pod["metadata"]["uid"] != effect.pod.uid:
            return ReadGone(effect.id)
        node = pod["spec"].get("nodeName")
        return ReadPlaced(effect.id, node) if node else ReadPending(effect.id)

    def _patch(self, effect: Patch) -> list[Fact]:
        key = (effect.namespace if effect.kind.namespaced else "", effect.name)
        name = _name_of(effect.kind)
        obj = self.get(name, *key)
        if obj is None:
            return [_missing(effect.id)]
        body = {k: v for k, v in effect.body.items() if k not in ("apiVersion", "kind")}
        expected = (body.get("metadata") or {}).get("resourceVersion")
        if expected and expected != obj["metadata"]["resourceVersion"]:
            text = "the object has been modified; please apply your changes to the latest version"
            return [Refused(effect.id, CONFLICT, text, "Conflict")]
        facts = self._put(name, key, merged(obj, body))
        return [Done(effect.id, self.get(name, *key)), *facts]

    def _create(self, effect: Create) -> list[Fact]:
        naming = Names(self._version)
        manifest = {
            "apiVersion": effect.kind.group_version,
            "kind": effect.kind.name,
            **effect.body,
        }
        try:
            obj, facts = self.create(manifest, effect.namespace, naming)
        except ValueError as error:
            return [Refused(effect.id, CONFLICT, str(error), "AlreadyExists")]
        return [Done(effect.id, obj), *facts]

    # --- versions --------------------------------------------------------------------------------

    def _put(self, plural: str, key: tuple[str, str], obj: JsonObject) -> list[Fact]:
        self._version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        name = _table(plural)
        self._tables.setdefault(name, {})[key] = obj
        return self._facts_of(name, obj, gone=False)

    def _facts_of(self, name: str, obj: JsonObject, *, gone: bool) -> list[Fact]:
        """The fact of a scheduler's watch; none for kinds it does not watch."""
        kind = WATCHED.get(name)
        if kind is None:
            return []
        record = decode(kind.record, obj)
        return [Gone(kind, record) if gone else Seen(kind, record)]


def _missing(effect_id: int) -> Answer:
    return Refused(effect_id, NOT_FOUND, "not found", "NotFound")


def _with_condition(status: JsonObject, condition: Mapping[str, Any]) -> JsonObject:
    remaining = [c for c in status.get("conditions") or () if c.get("type") != condition["type"]]
    return {**status, "conditions": [*remaining, dict(condition)]}
