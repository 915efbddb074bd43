"""A cluster, and beside it the plain objects a twin recounts from. For tests of affinity and
spread.

`World` is driven by hand, `RandomWorld` by a seed: nodes come, go and are relabelled, pods come,
go, are relabelled, start to terminate, and stay behind on nodes that went.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import msgspec

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE, NODE, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace

ZONE, HOST, RACK = names.LABEL_ZONE, names.LABEL_HOSTNAME, "example.com/rack"
SHORT = {"zone": ZONE, "host": HOST, "rack": RACK}
Json = dict[str, Any]


def labels_of(text: str) -> dict[str, str]:
    """`zone=a disk=ssd` as a map; `zone`, `host` and `rack` stand for the usual keys."""
    pairs = (word.partition("=") for word in text.split())
    return {SHORT.get(key, key): value for key, _, value in pairs}


def selector_of(text: str | None) -> Json | None:
    """`app=web tier !gone a!=b` as a label selector: words are ANDed; None stays None."""
    if text is None:
        return None
    expressions = []
    for word in text.split():
        if "!=" in word:
            key, _, value = word.partition("!=")
            expressions.append({"key": key, "operator": "NotIn", "values": value.split(",")})
        elif "=" in word:
            key, _, value = word.partition("=")
            expressions.append({"key": key, "operator": "In", "values": value.split(",")})
        elif word.startswith("!"):
            expressions.append({"key": word[1:], "operator": "DoesNotExist"})
        else:
            expressions.append({"key": word, "operator": "Exists"})
    return {"matchExpressions": expressions}


def a_node(name: str, labels: str = "", taints: str = "", **spec: Any) -> Node:
    """`taints` as kubectl prints them: `key=value:Effect`."""
    listed = []
    for word in taints.split():
        front, _, effect = word.partition(":")
        key, _, value = front.partition("=")
        listed.append({"key": key, "value": value, "effect": effect})
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels_of(labels)}
    return decode(Node, {"metadata": metadata, "spec": {"taints": listed, **spec}})


def a_pod(
    name: str,
    labels: str = "",
    *,
    namespace: str = "default",
    node: str = "",
    terminating: bool = False,
    nominated: str = "",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """`spec` is the rest of the spec, as the API writes it."""
    meta: Json = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": labels_of(labels),
        **(metadata or {}),
    }
    if terminating:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"nominatedNodeName": nominated} if nominated else {}
    return decode(Pod, {"metadata": meta, "spec": {"nodeName": node, **spec}, "status": status})


def spread(
    key: str, skew: int = 1, *, soft: bool = False, on: str | None = "app=web", **more: Any
) -> Json:
    """One topology spread constraint; `on` is its selector."""
    return {
        "maxSkew": skew,
        "topologyKey": SHORT.get(key, key),
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": selector_of(on),
        **more,
    }


def term(key: str, on: str | None = "app=web", **more: Any) -> Json:
    """One pod affinity term; `on` is its selector, `within` that of namespaces."""
    if "within" in more:
        more["namespaceSelector"] = selector_of(more.pop("within"))
    return {"topologyKey": SHORT.get(key, key), "labelSelector": selector_of(on), **more}


def affinity(
    *,
    near: list[Json] | None = None,
    apart: list[Json] | None = None,
    drawn: list[tuple[int, Json]] | None = None,
    put_off: list[tuple[int, Json]] | None = None,
) -> Json:
    """spec.affinity with required (`near`, `apart`) and preferred (`drawn`, `put_off`) terms."""

    def stanza(required: list[Json] | None, preferred: list[tuple[int, Json]] | None) -> Json:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": required or [],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": wanted} for weight, wanted in preferred or []
            ],
        }

    return {"podAffinity": stanza(near, drawn), "podAntiAffinity": stanza(apart, put_off)}


class World:
    """A cluster with the objects it was told of."""

    def __init__(self, *objects: Record) -> None:
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}  # "namespace/name" -> placed ones, on unknown nodes too
        self.namespaces: dict[str, Namespace] = {}
        self.see(*objects)

    def see(self, *objects: Record) -> None:
        for obj in objects:
            if isinstance(obj, Node):
                self.nodes[obj.name] = obj
                self.cluster.apply(Seen(NODE, obj))
            elif isinstance(obj, Pod):
                self.pods[obj.key] = obj
                self.cluster.apply(Seen(POD, obj))
            elif isinstance(obj, Namespace):
                self.namespaces[obj.metadata.name] = obj
                self.cluster.apply(Seen(NAMESPACE, obj))
            else:
                raise TypeError(f"{type(obj).__name__} has no store here; use `see_other`")

    def see_other(self, kind: Kind, **mapping: Any) -> None:
        self.cluster.apply(Seen(kind, decode(kind.record, mapping)))

    def lose(self, *objects: Node | Pod | Namespace) -> None:
        for obj in objects:
            if isinstance(obj, Node):
                del self.nodes[obj.name]
                self.cluster.apply(Gone(NODE, obj))
            elif isinstance(obj, Pod):
                del self.pods[obj.key]
                self.cluster.apply(Gone(POD, obj))
            else:
                del self.namespaces[obj.metadata.name]
                self.cluster.apply(Gone(NAMESPACE, obj))

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.classes.info_of(pod)

    def namespace(self, name: str, labels: str = "") -> None:
        metadata = {"name": name, "labels": labels_of(labels)}
        self.see(decode(Namespace, {"metadata": metadata}))

    def on_nodes(self) -> Iterator[tuple[Pod, Node]]:
        """Every placed pod whose node is there."""
        for pod in self.pods.values():
            node = self.nodes.get(pod.spec.node_name)
            if node is not None:
                yield pod, node

    def by_node(self, by_row: Any) -> dict[str, int]:
        """The entries of an array over all rows, by name of node."""
        return {name: int(by_row[self.cluster.nodes.row_of[name]]) for name in self.nodes}


class RandomWorld(World):
    """A world that changes by a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = Random(seed)
        self._made = 0
        for name in ("default", "other", "third"):
            self.namespace(name, self.rng.choice(("", "team=a", "team=b", "team=a env=prod")))
        for _ in range(self.rng.randint(2, 8)):
            self.see(self.some_node())
        for _ in range(self.rng.randint(0, 25)):
            self.see(self.some_pod())

    def step(self) -> None:
        """One change, of any kind."""
        rng = self.rng
        nodes, pods = list(self.nodes.values()), list(self.pods.values())
        what = rng.random()
        if what < 0.35 or not pods:
            self.see(self.some_pod())
        elif what < 0.55:
            self.lose(rng.choice(pods))
        elif what < 0.65:
            self._alter(rng.choice(pods), labels=labels_of(self.some_labels()))
        elif what < 0.72:
            self._alter(rng.choice(pods), deletion_timestamp="2026-01-01T00:00:00Z")
        elif what < 0.8 or not nodes:
            self.see(self.some_node())
        elif what < 0.87:
            self.lose(rng.choice(nodes))
        elif what < 0.95:
            self.see(self.some_node(rng.choice(nodes).name))
        else:
            self.namespace(
                rng.choice(("default", "other", "third", "fourth")),
                rng.choice(("", "team=a", "team=b", "team=a env=prod")),
            )

    def _alter(self, pod: Pod, **metadata: Any) -> None:
        changed = msgspec.structs.replace(pod.metadata, **metadata)
        self.see(msgspec.structs.replace(pod, metadata=changed))

    def some_node(self, name: str = "") -> Node:
        rng = self.rng
        if not name:
            self._made += 1
            gone = f"n{rng.randint(1, self._made)}"  # maybe one that was there before
            name = gone if gone not in self.nodes and rng.random() < 0.3 else f"n{self._made}"
        labels = [f"host={name}"] if rng.random() < 0.93 else []
        labels += [f"zone={rng.choice(('a', 'b', 'c', ''))}"] if rng.random() < 0.85 else []
        labels += [f"rack={rng.choice('123')}"] if rng.random() < 0.6 else []
        labels += [f"disk={rng.choice(('ssd', 'hdd'))}"] if rng.random() < 0.5 else []
        taints = rng.choice(("", "", "", "gpu=yes:NoSchedule", "soft=yes:PreferNoSchedule"))
        return a_node(name, " ".join(labels), taints)

    def some_labels(self) -> str:
        rng = self.rng
        labels = [f"app={rng.choice(('web', 'db', 'job'))}"] if rng.random() < 0.85 else []
        labels += [f"tier={rng.choice('xy')}"] if rng.random() < 0.5 else []
        return " ".join(labels)

    def some_selector(self) -> str | None:
        texts = (
            "app=web",
            "app=db",
            "app=web,db",
            "app=web tier=x",
            "tier",
            "!tier",
            "app!=web",
            "",
        )
        return self.rng.choice((*texts, None))

    def some_pod(self, node: str | None = None, **spec: Any) -> Pod:
        """Placed on some node (even one that is not there), with terms of its own at times."""
        rng = self.rng
        self._made += 1
        if node is None:
            node = rng.choice([*self.nodes, f"n{self._made + 1}"])
        if "affinity" not in spec and rng.random() < 0.5:
            spec["affinity"] = self.some_affinity()
        return a_pod(
            f"p{self._made}",
            self.some_labels(),
            namespace=rng.choice(("default", "default", "other", "third", "unknown")),
            node=node,
            terminating=rng.random() < 0.1,
            **spec,
        )

    def some_affinity(self) -> Json:
        rng = self.rng

        def terms() -> list[Json]:
            return [self.some_term() for _ in range(rng.choice((0, 0, 1, 1, 2)))]

        def weighted() -> list[tuple[int, Json]]:
            return [(rng.choice((1, 5, 100)), wanted) for wanted in terms()]

        return affinity(near=terms(), apart=terms(), drawn=weighted(), put_off=weighted())

    def some_term(self) -> Json:
        rng = self.rng
        more: Json = {}
        if rng.random() < 0.3:
            more["namespaces"] = rng.sample(("default", "other", "third"), rng.randint(1, 2))
        if rng.random() < 0.3:
            more["within"] = rng.choice(("team=a", "env=prod", "!env", "team!=a", ""))
        return term(rng.choice(("zone", "host", "rack")), self.some_selector(), **more)

    def some_constraint(self) -> Json:
        rng = self.rng
        more: Json = {}
        soft = rng.random() < 0.5
        if not soft and rng.random() < 0.4:
            more["minDomains"] = rng.randint(1, 4)
        if rng.random() < 0.4:
            more["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.4:
            more["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.3:
            more["matchLabelKeys"] = rng.sample(("app", "tier", "absent"), rng.randint(1, 2))
        key = rng.choice(("zone", "host", "rack"))
        return spread(key, rng.randint(1, 3), soft=soft, on=self.some_selector(), **more)

    @contextmanager
    def trial(self) -> Iterator[tuple[str, list[Pod], list[Pod]]]:
        """Some pods of a node away, and some others on it: (node, removed, added)."""
        rng, cluster = self.rng, self.cluster
        name = rng.choice(list(self.nodes))
        row = cluster.nodes.row_of[name]
        there = list(cluster.pods_on(row).values())
        away = rng.sample(there, rng.randint(0, min(3, len(there))))
        added = [self.info(self.some_pod("")) for _ in range(rng.randint(0, 2))]
        with ExitStack() as stack:
            stack.enter_context(cluster.supposing().gone(away, row))
            stack.enter_context(cluster.supposing().there(added, row))
            yield name, [i.pod for i in away], [i.pod for i in added]
