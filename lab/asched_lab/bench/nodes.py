"""createNodes: nodes with names, hostnames, and what the strategies add to them.

Rules   a strategy goes by position in the list of all nodes sorted by name, and starts after the
        nodes of earlier operations; so it may change a node of an earlier operation whose name
        sorts after the new ones.
"""

from collections.abc import Mapping
from typing import Any, Final

from asched_lab.bench.manifests import HOSTNAME_LABEL, JsonObject, merged, named
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
