"""Changes of nodes: labels, additional nodes, or fewer pods on a node."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.supposition import Supposition
from asched.core.model.kinds import CSI_NODE, NODE, POD_DISRUPTION_BUDGET, RESOURCE_SLICE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.requests import CPU, MEMORY
from asched.core.model.selector import (
    Labels,
    Requirement,
    compile_node_selector,
    compile_selector,
    integer,
    matches,
)
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.insight.explain.deciding import Deciding, smallest
from asched.insight.explain.of_pod import UNSCHEDULABLE
from asched.insight.explain.suggestions import SuggestedChange, Way
from asched.names import LABEL_HOSTNAME

#: The preemption policy of a pod that evicts no pods.
NEVER: Final = "Never"
#: The value of a label if any value suffices.
ANY: Final = "true"

#: Requirements that are evaluated in one budget step.
LOOKS_A_STEP: Final = 20

#: Key -> its new value, None to remove the label.
LabelChange = dict[str, str | None]


class Selecting:
    """A pod's requirements on node labels, compiled once. `keys`: the label keys of its selector
    and required node affinity. `charge` is called with budget steps before they are taken, and may
    raise.
    """

    def __init__(self, pod: Pod, charge: Callable[[float], None] = lambda _: None) -> None:
        self._terms = _wanted(pod)
        self._charge = charge
        self._steps = sum(len(r) for term in self._terms for r in term.values()) / LOOKS_A_STEP
        self._values: dict[tuple[int, str], tuple[str | None, ...]] = {}
        self.keys = tuple(dict.fromkeys(key for term in self._terms for key in term))

    def of(self, labels: Labels) -> tuple[str | None, ...]:
        """The values of the keys; nodes with equal values need equal changes."""
        self._charge(len(self.keys) / LOOKS_A_STEP)
        return tuple(labels.get(key) for key in self.keys)

    def fewest_changes(self, labels: Labels) -> list[LabelChange]:
        """For each term of the affinity the changes with which the pod selects a node with these
        labels; contradictory terms are left out.
        """
        self._charge(self._steps)
        found = []
        for at, term in enumerate(self._terms):
            change: LabelChange = {}
            for key, requirements in term.items():
                if not _all_accept(requirements, labels.get(key)):
                    values = self._value(at, key)
                    if not values:
                        break
                    change[key] = values[0]
            else:
                found.append(change)
        return found

    def _value(self, at: int, key: str) -> tuple[str | None, ...]:
        """The first value of a key that a term accepts; () if there is none."""
        known = self._values.get((at, key))
        if known is None:
            requirements, known = self._terms[at][key], ()
            for value in _candidates(requirements):
                self._charge(len(requirements) / LOOKS_A_STEP)
                if _all_accept(requirements, value):
                    known = (value,)
                    break
            self._values[at, key] = known
        return known


def relabelled(node: Node, change: LabelChange) -> Node:
    labels = {k: v for k, v in {**node.labels, **change}.items() if v is not None}
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _wanted(pod: Pod) -> list[dict[str, list[Requirement]]]:
    """For each term of the affinity the requirements by label, the selector included."""
    affinity = pod.spec.affinity
    wanted = affinity.node_affinity if affinity is not None else None
    terms = compile_node_selector(wanted.required if wanted is not None else None)
    selected = [
        Requirement(key, "In", frozenset((value,)))
        for key, value in (pod.spec.node_selector or {}).items()
    ]
    chosen = [()] if terms is None else [t.expressions for t in terms if not t.broken]
    found = []
    for expressions in chosen:
        by_key: dict[str, list[Requirement]] = {}
        for requirement in (*selected, *expressions):
            by_key.setdefault(requirement.key, []).append(requirement)
        found.append(by_key)
    return found


def _all_accept(requirements: Iterable[Requirement], value: str | None) -> bool:
    return all(requirement.accepts(value) for requirement in requirements)


def _candidates(requirements: Iterable[Requirement]) -> Iterator[str | None]:
    """Values among which one meets the requirements, if any does; None means no label."""
    for requirement in requirements:
        match requirement.operator:
            case "In":
                yield from sorted(requirement.values)
            case "Gt" | "Lt":
                bound = integer(min(requirement.values, default="")) or 0
                yield str(bound + (1 if requirement.operator == "Gt" else -1))
    yield ANY
    yield None


TRIES_MAX: Final = 64
#: Labels that state what a machine is; to write another value would make the node lie.
OF_THE_MACHINE: Final = frozenset(
    f"{prefix}kubernetes.io/{name}"
    for prefix in ("", "beta.", "node.")
    for name in ("arch", "os", "hostname", "instance-type", "windows-build")
)
#: ... and where it stands.
OF_ITS_PLACE: Final = ("topology.", "failure-domain.beta.kubernetes.io/")
#: The most new nodes that are suggested for a gang.
NODES_MAX: Final = 64
#: Filters with the same result for an empty copy of a node as for the node.
OF_THE_NODE: Final = (names.NODE_AFFINITY, names.TAINT_TOLERATION, names.NODE_UNSCHEDULABLE)
#: Filters with the same result after pods have left: claims keep their devices until they are
#: deallocated.
UNAFFECTED_BY_EVICTION: Final = (*OF_THE_NODE, names.DYNAMIC_RESOURCES)


# --- cordons -------------------------------------------------------------------------------------


def cordons(deciding: Deciding) -> Iterator[Way]:
    """Uncordon a node that only its cordon excludes."""
    refused = deciding.refusals(
        lambda name, _: name not in (names.NODE_UNSCHEDULABLE, names.TAINT_TOLERATION)
    )
    rows = np.flatnonzero(~refused).tolist()
    cordoned = [row for row in rows if deciding.node(row).spec.unschedulable]
    for row in cordoned[:TRIES_MAX]:
        node = deciding.node(row)
        taints = [taint for taint in node.spec.taints or () if taint.key != UNSCHEDULABLE.key]
        spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=tuple(taints))
        changed = msgspec.structs.replace(node, spec=spec)
        with deciding.cluster.supposing().seen(NODE, changed):
            fits = deciding.fits() and (deciding.is_gang or bool(deciding.rows()[row]))
        if fits:
            text, details = f"uncordon node {node.name}", {"node": node.name}
            change = SuggestedChange("cordon", text, details, 1, node.name)
            yield Way(change, of_cluster=partial(Supposition.seen, kind=NODE, obj=changed))
            return


# --- labels --------------------------------------------------------------------------------------


def labels(deciding: Deciding) -> Iterator[Way]:
    """The fewest label changes that make a node suitable which only its labels exclude; labels that
    state what the machine is, and where, are not changed.
    """
    selecting = Selecting(deciding.pod, deciding.cluster.budget.charge)
    if not selecting.keys:
        return
    refused = deciding.refusals(lambda _, reads: reads is not None and not reads & Aspect.LABELS)
    ways: list[tuple[int, int, LabelChange]] = []
    known: dict[tuple[str | None, ...], list[LabelChange]] = {}
    for row in np.flatnonzero(~refused).tolist():
        labels = deciding.node(row).labels
        values = selecting.of(labels)
        if values not in known:
            known[values] = selecting.fewest_changes(labels)
        ways.extend(
            (len(change), row, change)
            for change in known[values]
            if change and not any(map(_states_what_a_node_is, change))
        )
    ways.sort(key=lambda way: way[0])
    for _, row, change in ways[:TRIES_MAX]:
        changed = relabelled(deciding.node(row), change)
        with deciding.cluster.supposing().seen(NODE, changed):
            fits = deciding.fits() and (deciding.is_gang or bool(deciding.rows()[row]))
        if fits:
            parts = [f"{k}={v}" if v is not None else f"{k}-" for k, v in change.items()]
            text = f"label node {changed.name} {' '.join(parts)}"
            details = {"node": changed.name, "labels": change}
            suggestion = SuggestedChange("label", text, details, 1, changed.name)
            yield Way(suggestion, of_cluster=partial(Supposition.seen, kind=NODE, obj=changed))
            return


def _states_what_a_node_is(label: str) -> bool:
    return label in OF_THE_MACHINE or label.startswith(OF_ITS_PLACE)


# --- one more ------------------------------------------------------------------------------------


def nodes(deciding: Deciding) -> Iterator[Way]:
    """An empty copy of each kind of node, the smallest first; for a gang as many copies as it needs
    of the first kind that helps.
    """
    cluster, pod = deciding.cluster, deciding.pod
    asked = deciding.info(pod).cls.requests
    refused = deciding.refusals(lambda name, _: name in OF_THE_NODE)
    kinds: dict[Any, tuple[int, int, Node]] = {}
    have = _devices(cluster)
    for row in np.flatnonzero(~refused).tolist():
        node, offered = deciding.node(row), _offered(deciding, row)
        if any(offered.get(name, 0) < amount for name, amount in asked.items()):
            continue
        own_labels = frozenset((k, v) for k, v in node.labels.items() if k != LABEL_HOSTNAME)
        key = (
            tuple(offered.items()),
            node.spec.taints,
            own_labels,
            frozenset(have.get(node.name, {}).items()),
        )
        kinds.setdefault(key, (offered.get(CPU, 0), offered.get(MEMORY, 0), node))
    ordered = sorted(kinds.values(), key=lambda kind: (kind[0], kind[1], kind[2].name))
    tries = [node for _, _, node in ordered[:TRIES_MAX]]
    if not deciding.is_gang and not looks_around(pod):
        tries = _that_help(deciding, tries)
    for node in tries:
        most = min(deciding.needed, NODES_MAX)
        count = smallest(1, most, partial(_helps, deciding, node))
        if count is None:
            continue
        what = "one more node" if count == 1 else f"{count} more nodes"
        details = {"like": node.name, "count": count}
        change = SuggestedChange("node", f"{what} like {node.name}", details, count, node.name)
        yield Way(change, of_cluster=partial(_add, deciding, node, count))
        return


def looks_around(pod: Pod) -> bool:
    """Whether a node's suitability for the pod depends on other nodes."""
    affinity = pod.spec.affinity
    is_near = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity)
    return bool(is_near or pod.spec.topology_spread_constraints)


def _that_help(deciding: Deciding, tries: Sequence[Node]) -> list[Node]:
    """The nodes of which a copy would take the pod, tried with one decision for all copies, for a
    pod to which other nodes do not matter.
    """
    with deciding.cluster.supposing() as suppose:
        names = [_add(deciding, node, 1, suppose) for node in tries]
        rows, row_of = deciding.rows(), deciding.cluster.nodes.row_of
        return [node for node, name in zip(tries, names, strict=True) if rows[row_of[name]]]


def _helps(deciding: Deciding, node: Node, count: int) -> bool:
    with deciding.cluster.supposing() as suppose:
        fresh = _add(deciding, node, count, suppose)
        if deciding.is_gang:
            return deciding.fits()
        return bool(deciding.rows()[deciding.cluster.nodes.row_of[fresh]])


def _add(deciding: Deciding, node: Node, count: int, suppose: Supposition) -> str:
    """Add copies of a node with its drivers and devices; returns the name of the last copy."""
    cluster, name = deciding.cluster, ""
    driver = cluster.stored(CSI_NODE, node.name)
    published = cluster.all(RESOURCE_SLICE).values()
    slices = [slice_ for slice_ in published if slice_.spec.node_name == node.name]
    replace: Any = msgspec.structs.replace
    for _ in range(count):
        more = another(node, cluster.nodes.row_of)
        name = more.name
        suppose.seen(NODE, more)
        if driver is not None:
            suppose.seen(CSI_NODE, replace(driver, metadata=_renamed(driver.metadata, name)))
        for slice_ in slices:
            metadata = _renamed(slice_.metadata, f"{name}-{slice_.metadata.name}")
            pool = replace(slice_.spec.pool, name=f"{name}-{slice_.spec.pool.name}")
            spec = replace(slice_.spec, node_name=name, pool=pool)
            suppose.seen(RESOURCE_SLICE, replace(slice_, metadata=metadata, spec=spec))
    return name


def another(node: Node, taken: Iterable[str]) -> Node:
    """An empty copy of a node, with a new name."""
    known, name = frozenset(taken), f"{node.name}-another"
    while name in known:
        name += "-one"
    labels = node.labels
    if LABEL_HOSTNAME in labels:
        labels = {**labels, LABEL_HOSTNAME: name}
    metadata = msgspec.structs.replace(_renamed(node.metadata, name), labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _renamed(metadata: Any, name: str) -> Any:
    return msgspec.structs.replace(metadata, name=name, uid=name)


def _devices(cluster: Cluster) -> dict[str, Counter[str]]:
    """By node the number of its own devices by driver; devices of several nodes are left out."""
    found: dict[str, Counter[str]] = {}
    for slice_ in cluster.all(RESOURCE_SLICE).values():
        if slice_.spec.node_name:
            counts = found.setdefault(slice_.spec.node_name, Counter())
            counts[slice_.spec.driver] += len(slice_.spec.devices or ())
    return found


def _offered(deciding: Deciding, row: int) -> dict[str, int]:
    nodes, listed = deciding.cluster.nodes, deciding.node(row).status.allocatable or {}
    amounts = nodes.columns.read("allocatable")[:, row]
    places = {name: nodes.find_resource(name) for name in sorted(listed)}
    return {name: int(amounts[at]) for name, at in places.items() if at is not None}


# --- fewer pods ----------------------------------------------------------------------------------


def evictions(deciding: Deciding) -> Iterator[Way]:
    """Evict all pods up to a priority from one node: the lowest priority that suffices; among nodes
    first one whose evictions no disruption budget forbids, then the fewest pods.
    """
    if deciding.is_gang:  # several nodes would have to be left
        return
    cluster = deciding.cluster
    lines = cluster.singleton(PodsByPriority)
    lines.catch_up()
    live = np.flatnonzero(cluster.nodes.columns.read("live")[: cluster.nodes.height])
    never = deciding.refusals(lambda name, _: name in UNAFFECTED_BY_EVICTION)
    rows = live[~never[live]]
    bulks = lines.bulks[lines.places(rows)]
    priorities = lines.priorities[bulks]
    info = deciding.info(deciding.pod)
    levels = np.unique(priorities[bulks > 0]) if bulks.size else np.zeros(0, dtype=np.int64)
    for level in levels[:TRIES_MAX].tolist():
        goes = (bulks > 0) & (priorities <= level)
        touched = goes.any(axis=0)
        for resource, amount in info.cls.requests.items():
            at = cluster.nodes.find_resource(resource)
            if at is None or amount <= 0:
                continue
            freed = np.where(goes, lines.amounts[at, bulks], 0).sum(axis=0)
            read = cluster.nodes.columns.read
            free = read("allocatable")[at, rows] - read("requested")[at, rows] + freed
            touched &= free >= amount
        fewest = sorted((int(goes[:, i].sum()), int(rows[i])) for i in np.flatnonzero(touched))
        way = _evicting(deciding, lines, level, [row for _, row in fewest])
        if way is not None:
            yield way
            return


def _evicting(
    deciding: Deciding, lines: PodsByPriority, level: int, rows: Iterable[int]
) -> Way | None:
    """The first row that takes the pod without all pods up to a level, preferably a row where no
    budget forbids the evictions.
    """
    cluster, found = deciding.cluster, None
    for tries, row in enumerate(rows):
        leaving = [info for info in lines.pods(row) if info.pod.priority <= level]
        with cluster.supposing().gone(leaving, row):
            status = deciding.status_on(row)
        if status is not None:
            continue
        is_broken = _breaks_any(cluster, leaving)
        if found is None or not is_broken:
            found = row, leaving
        if not is_broken or tries >= TRIES_MAX:
            break
    if found is None:
        return None
    row, leaving = found
    broken = _broken(cluster, leaving) if _breaks_any(cluster, leaving) else []
    node = deciding.node(row)
    pods = "1 pod" if len(leaving) == 1 else f"{len(leaving)} pods"
    text = f"evict what has priority {level} or less on node {node.name} ({pods})"
    pod = deciding.pod
    if pod.spec.preemption_policy == NEVER and level < pod.priority:
        text += ", which the pod's preemptionPolicy Never keeps the scheduler from doing"
    if broken:
        text += f", which {'budget' if len(broken) == 1 else 'budgets'} {', '.join(broken)} forbids"
    keys = [info.pod.key for info in leaving[:TRIES_MAX]]
    details = {"node": node.name, "priority": level, "pods": keys, "budgets": broken}
    change = SuggestedChange("eviction", text, details, 1, node.name)
    return Way(change, of_cluster=lambda suppose: suppose.without(leaving))


def _breaks_any(cluster: Cluster, leaving: Sequence[PodInfo]) -> bool:
    """Whether a disruption budget forbids to evict all of these pods."""
    budgets = cluster.singleton(Budgets)
    budgets.catch_up()
    return any(budgets.violations(leaving))


def _broken(cluster: Cluster, leaving: Sequence[PodInfo]) -> list[str]:
    """The keys of the budgets that forbid it."""
    found, known = [], cluster.all(POD_DISRUPTION_BUDGET)
    for key in sorted(cluster.singleton(Budgets).keys_for(leaving)):
        budget = known[key]
        selector = compile_selector(budget.spec.selector)
        count = sum(
            info.pod.metadata.namespace == budget.metadata.namespace
            and info.pod.metadata.name not in (budget.status.disrupted_pods or {})
            and matches(selector, info.pod.labels)
            for info in leaving
        )
        if count > budget.status.disruptions_allowed:
            found.append(key)
    return found
