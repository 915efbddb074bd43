"""Changes to a cluster before the simulation: nodes added and removed, workloads to come.

    like       N copies of an existing node: healthy, empty except for pods of DaemonSets
    drain      the node is cordoned; its pods leave, except those of DaemonSets and static pods
    lose       the node is gone with everything on it
    workload   manifests: controllers of pods become the pods they would make

A pod that leaves is recreated if a controller owns it (`stand_ins.py`); a bare pod is lost. Budgets
do not stop a simulated drain; budgets that it would violate are reported.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from asched.core.model.meta import LabelSelector
from asched.core.model.selector import compile_selector, matches
from asched.names import LABEL_HOSTNAME
from asched_lab.apiserver.resources import BUDGETS, NODES, PODS, find
from asched_lab.whatif.objects import Json
from asched_lab.whatif.store import Store
from asched_lab.whatif.workloads import Made, WorkloadError, make

CSI_NODES: Final = find("csinodes")
SLICES: Final = find("resourceslices")
#: Marks the mirror of a static pod.
MIRROR: Final = "kubernetes.io/config.mirror"
#: Taints that report a node condition, which a new node does not have.
CONDITION_TAINTS: Final = "node.kubernetes.io/"
NODES_MAX: Final = 100_000


class ScenarioError(ValueError):
    """A scenario that is invalid for this cluster, in one line."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`like`: node to number of copies. `workloads`: manifests, `replicas` of each if given, in
    `namespace` where they have none.
    """

    like: Mapping[str, int] = field(default_factory=dict)
    drain: tuple[str, ...] = ()
    lose: tuple[str, ...] = ()
    workloads: tuple[Json, ...] = ()
    replicas: int | None = None
    namespace: str = ""


@dataclass(slots=True)
class Applied:
    """The result of the changes. `left`: keys of the pods that had to leave their nodes."""

    made: Made = field(default_factory=Made)
    left: list[str] = field(default_factory=list)
    #: budget -> (how many pods may go, how many would)
    budgets: dict[str, tuple[int, int]] = field(default_factory=dict)


def apply(scenario: Scenario, store: Store) -> Applied:
    """Change the store. Raises ScenarioError."""
    applied, new_nodes = Applied(), []
    for name in (*scenario.like, *scenario.drain, *scenario.lose):
        if store.get(NODES, "", name) is None:
            raise ScenarioError(f"there is no node {name!r}")
    for name, count in scenario.like.items():
        new_nodes += _more_nodes(store, name, count)
    going: list[Json] = []
    for name in scenario.drain:
        going += _drain(store, name)
    applied.budgets = dict(_broken_budgets(store, going))
    for name in scenario.lose:
        going += _lose(store, name)
    for pod in going:
        store.remove(PODS, pod)
        if _leaves(pod):
            applied.left.append(_key(pod))
    try:
        applied.made = make(
            scenario.workloads, store, replicas=scenario.replicas, namespace=scenario.namespace
        )
    except WorkloadError as error:
        raise ScenarioError(str(error)) from None
    applied.made.nodes[:0] = new_nodes
    return applied


# --- add nodes -----------------------------------------------------------------------------------


def _more_nodes(store: Store, name: str, count: int) -> list[str]:
    like = store.get(NODES, "", name)
    assert like is not None
    taken = {node["metadata"]["name"] for node in store.listed(NODES)}
    if len(taken) + count > NODES_MAX:
        raise ScenarioError(f"more than {NODES_MAX} nodes")
    residents = [pod for pod in _pods_on(store, name) if _owner(pod) == "DaemonSet"]
    csi = store.get(CSI_NODES, "", name)
    slices = [s for s in store.listed(SLICES) if s["spec"].get("nodeName") == name]
    made: list[str] = []
    number = 0
    while len(made) < count:
        number += 1
        fresh = f"{name}-like-{number}"
        if fresh in taken:
            continue
        made.append(fresh)
        store.put(NODES, _another(like, fresh))
        if csi is not None:
            store.put(CSI_NODES, _renamed(csi, fresh))
        for part in slices:
            store.put(SLICES, _slice_of(part, name, fresh))
        for pod in residents:
            store.put(PODS, _resident(pod, fresh))
    return made


def _another(like: Json, name: str) -> Json:
    """An empty, healthy copy of a node."""
    node = _renamed(like, name)
    labels = node["metadata"].get("labels") or {}
    if LABEL_HOSTNAME in labels:
        node["metadata"]["labels"] = {**labels, LABEL_HOSTNAME: name}
    taints = [
        t for t in like["spec"].get("taints") or () if not t["key"].startswith(CONDITION_TAINTS)
    ]
    spec = {n: v for n, v in like["spec"].items() if n not in ("taints", "unschedulable")}
    node["spec"] = {**spec, "taints": taints} if taints else spec
    node["status"] = {n: v for n, v in like["status"].items() if n != "images"}
    return node


def _renamed(obj: Json, name: str) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "name": name, "uid": name}}


def _slice_of(part: Json, old: str, new: str) -> Json:
    """The same devices on another node; pools are mostly named for their node."""
    made = _renamed(part, f"{new}-{part['metadata']['name']}")
    pool = dict(part["spec"].get("pool") or {})
    pool["name"] = new if pool.get("name") == old else f"{new}-{pool.get('name', '')}"
    made["spec"] = {**part["spec"], "nodeName": new, "pool": pool}
    return made


def _resident(pod: Json, node: str) -> Json:
    made = _renamed(pod, f"{pod['metadata']['name']}-{node}")
    made["spec"] = {**pod["spec"], "nodeName": node}
    return made


# --- remove nodes --------------------------------------------------------------------------------


def _drain(store: Store, name: str) -> list[Json]:
    node = store.get(NODES, "", name)
    assert node is not None
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    taints = [t for t in node["spec"].get("taints") or () if t["key"] != cordon["key"]]
    store.put(
        NODES,
        {**node, "spec": {**node["spec"], "unschedulable": True, "taints": [*taints, cordon]}},
    )
    return [pod for pod in _pods_on(store, name) if _leaves(pod)]


def _lose(store: Store, name: str) -> list[Json]:
    node = store.get(NODES, "", name)
    if node is not None:
        store.remove(NODES, node)
    csi = store.get(CSI_NODES, "", name)
    if csi is not None:
        store.remove(CSI_NODES, csi)
    for part in store.listed(SLICES):
        if part["spec"].get("nodeName") == name:
            store.remove(SLICES, part)
    return list(_pods_on(store, name))


def _leaves(pod: Json) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return _owner(pod) != "DaemonSet" and MIRROR not in annotations


def _pods_on(store: Store, node: str) -> Iterator[Json]:
    return (pod for pod in store.listed(PODS) if pod["spec"].get("nodeName") == node)


def _owner(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(o.get("kind", "")) for o in owners if o.get("controller")), "")


def _broken_budgets(store: Store, going: Iterable[Json]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Budgets that allow fewer disruptions than the drain needs."""
    gone = list(going)
    for budget in store.listed(BUDGETS) if gone else ():
        selector = budget["spec"].get("selector")
        allowed = int((budget.get("status") or {}).get("disruptionsAllowed") or 0)
        count = sum(
            pod["metadata"]["namespace"] == budget["metadata"]["namespace"]
            and selects(selector, pod["metadata"].get("labels") or {})
            for pod in gone
        )
        if count > allowed:
            yield _key(budget), (allowed, count)


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a label selector of the API matches; no selector matches nothing."""
    if selector is None:
        return False
    return matches(compile_selector(msgspec.convert(selector, LabelSelector)), dict(labels))


def _key(obj: Json) -> str:
    namespace = obj["metadata"].get("namespace", "")
    return f"{namespace}/{obj['metadata']['name']}" if namespace else str(obj["metadata"]["name"])
