"""Nodes, pods and clusters in one line each, for tables of cases.

    a_node("n1").taints("gpu=yes:NoSchedule").labels(zone="a").allocatable(cpu="4", pods="3")
    a_pod("web").tolerates("gpu=yes").requests(cpu="500m").on("n1")
    a_cluster(node, other, pods=[pod])

Builders write the API's JSON and decode it, so that tests see what a watch would deliver. Each call
changes the builder it is called on and returns it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_PLURAL, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod

Json = dict[str, Any]

#: What a node offers unless the test says otherwise: enough for everything.
PLENTY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}


class Builder:
    """An object's JSON under construction."""

    def __init__(self, name: str, namespace: str = "") -> None:
        self.json: Json = {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {},
            "status": {},
        }
        if namespace:
            self.json["metadata"]["namespace"] = namespace

    def labels(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """A mapping where a key is no Python name, or keywords."""
        self.json["metadata"].setdefault("labels", {}).update({**(labels or {}), **more})
        return self

    def metadata(self, **fields: Any) -> Self:
        self.json["metadata"].update(fields)
        return self

    def spec(self, **fields: Any) -> Self:
        self.json["spec"].update(fields)
        return self

    def status(self, **fields: Any) -> Self:
        self.json["status"].update(fields)
        return self


class NodeBuilder(Builder):
    def taints(self, text: str) -> Self:
        """`"gpu=yes:NoSchedule dry:NoExecute"`, as kubectl prints them."""
        for word in text.split():
            pair, _, effect = word.partition(":")
            key, _, value = pair.partition("=")
            taint = {"key": key, "value": value, "effect": effect}
            self.json["spec"].setdefault("taints", []).append(taint)
        return self

    def cordoned(self) -> Self:
        return self.spec(unschedulable=True)

    def allocatable(self, resources: Mapping[str, str] | None = None, **amounts: str) -> Self:
        """Replaces what is named; `ephemeral_storage` stands for `ephemeral-storage`."""
        stored = self.json["status"].setdefault("allocatable", dict(PLENTY))
        stored.update(resources or {})
        stored.update({name.replace("_", "-"): amount for name, amount in amounts.items()})
        return self

    def offering_only(self, **amounts: str) -> Self:
        self.json["status"]["allocatable"] = {}
        return self.allocatable(**amounts)

    def image(self, *names: str, mib: int) -> Self:
        images = self.json["status"].setdefault("images", [])
        images.append({"names": list(names), "sizeBytes": mib << 20})
        return self

    def features(self, text: str) -> Self:
        return self.status(declaredFeatures=text.split())

    def build(self) -> Node:
        self.json["status"].setdefault("allocatable", dict(PLENTY))
        return decode(Node, self.json)


class PodBuilder(Builder):
    """A pod with one container `c0` that requests nothing, until told otherwise."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, namespace)
        self.json["spec"]["containers"] = [{"name": "c0", "image": "app"}]

    @property
    def first(self) -> Json:
        """The JSON of the first container."""
        container: Json = self.json["spec"]["containers"][0]
        return container

    def requests(self, resources: Mapping[str, str] | None = None, **amounts: str) -> Self:
        """Of the first container."""
        self.first["resources"] = {"requests": _amounts(resources, amounts)}
        return self

    def container(self, image: str = "app", **amounts: str) -> Self:
        """One more container."""
        self._append("containers", image, amounts)
        return self

    def init(self, image: str = "app", *, sidecar: bool = False, **amounts: str) -> Self:
        container = self._append("initContainers", image, amounts)
        if sidecar:
            container["restartPolicy"] = "Always"
        return self

    def image(self, name: str) -> Self:
        self.first["image"] = name
        return self

    def host_port(self, port: int, protocol: str = "", ip: str = "") -> Self:
        """Of the first container."""
        entry = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": ip}
        self.first.setdefault("ports", []).append({k: v for k, v in entry.items() if v})
        return self

    def tolerates(self, text: str) -> Self:
        """Like taints; no value means Exists, no effect every effect, `*` every key."""
        for word in text.split():
            pair, _, effect = word.partition(":")
            key, equals, value = pair.partition("=")
            parts = {"key": key.strip("*"), "value": value, "effect": effect}
            toleration = {name: part for name, part in parts.items() if part}
            toleration["operator"] = "Equal" if equals else "Exists"
            self.json["spec"].setdefault("tolerations", []).append(toleration)
        return self

    def selects(self, **labels: str) -> Self:
        """nodeSelector."""
        return self.spec(nodeSelector=labels)

    def requires_nodes(self, *terms: Json) -> Self:
        """Required node affinity; see `term`."""
        self._node_affinity()["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": list(terms)
        }
        return self

    def prefers_nodes(self, *weighted: tuple[int, Json]) -> Self:
        self._node_affinity()["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": preference} for weight, preference in weighted
        ]
        return self

    def gated(self, text: str) -> Self:
        return self.spec(schedulingGates=[{"name": name} for name in text.split()])

    def priority(self, value: int) -> Self:
        return self.spec(priority=value)

    def on(self, node: str) -> Self:
        return self.spec(nodeName=node)

    def build(self) -> Pod:
        return decode(Pod, self.json)

    def _append(self, where: str, image: str, amounts: Mapping[str, str]) -> Json:
        containers = self.json["spec"].setdefault(where, [])
        container: Json = {"name": f"{where[0]}{len(containers)}", "image": image}
        if amounts:
            container["resources"] = {"requests": _amounts(None, amounts)}
        containers.append(container)
        return container

    def _node_affinity(self) -> Json:
        affinity = self.json["spec"].setdefault("affinity", {})
        node_affinity: Json = affinity.setdefault("nodeAffinity", {})
        return node_affinity


def a_node(name: str) -> NodeBuilder:
    return NodeBuilder(name)


def room(name: str, cpu: int = 4) -> NodeBuilder:
    """A node of so many CPUs, on which nothing else runs out."""
    return a_node(name).allocatable(cpu=str(cpu), memory="64Gi", pods="100")


def a_pod(name: str = "web", namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def term(*expressions: str, fields: Iterable[str] = ()) -> Json:
    """A node selector term: `term("zone In a,b", "gpu Exists", fields=["metadata.name In n1"])`."""
    written: Json = {}
    if expressions:
        written["matchExpressions"] = [_requirement(text) for text in expressions]
    if listed := [_requirement(text) for text in fields]:
        written["matchFields"] = listed
    return written


def a_cluster(
    *nodes: NodeBuilder, pods: Iterable[PodBuilder] = (), **others: Iterable[Json]
) -> Cluster:
    """A cluster that has seen these; `others` by plural, e.g. `deviceclasses=[{…}]`."""
    cluster = Cluster()
    for node in nodes:
        cluster.apply(Seen(NODE, node.build()))
    for pod in pods:
        cluster.apply(Seen(POD, pod.build()))
    for plural, objects in others.items():
        kind = BY_PLURAL[plural]
        for mapping in objects:
            cluster.apply(Seen(kind, decode(kind.record, mapping)))
    return cluster


def pending(cluster: Cluster, pod: PodBuilder) -> PodInfo:
    """The pod as plugins are handed it."""
    return cluster.classes.info_of(pod.build())


def all_rows(cluster: Cluster) -> NodeView:
    return NodeView(cluster.nodes)


def _amounts(resources: Mapping[str, str] | None, amounts: Mapping[str, str]) -> Json:
    return {**(resources or {}), **{n.replace("_", "-"): a for n, a in amounts.items()}}


def _requirement(text: str) -> Json:
    key, operator, *values = text.split(" ", 2)
    requirement: Json = {"key": key, "operator": operator}
    if values:
        requirement["values"] = values[0].split(",")
    return requirement
