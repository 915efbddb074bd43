"""The smallest change of each kind that makes a pod fit, found by deciding and never by guessing.

    kind         what is changed                                  smallest is
    toleration   tolerations are added to the pod                 the fewest
    request      the pod asks for less of one resource            the least less
    maxSkew      one spread constraint of the pod is loosened     the least looser
    label        labels of one node are set or taken away         the fewest
    node         one more node like one that is there, empty      the least cpu, then memory
    eviction     pods up to a priority leave one node             the lowest priority

A kind that cannot help by itself is left out, and so is one whose smallest change was not found
within the bounds: whatever is told was decided, and nothing smaller of its kind does.

Bounds  those of `Deciding`, for each kind anew; TRIES_MAX ways of one kind.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched import names
from asched.core.explain.deciding import Deciding, smallest
from asched.core.explain.labels import fewest_changes, keys_read, relabelled
from asched.core.explain.words import spelt
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod, PodSpec
from asched.core.model.requests import CPU, MEMORY, pod_requests, written
from asched.core.model.taint import NO_SCHEDULE, Taint, Toleration, tolerated
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.state.budget import OutOfTurn
from asched.core.state.nodes import Aspect
from asched.core.state.nominated import Nominator

TRIES_MAX: Final = 64
HOSTNAME: Final = "kubernetes.io/hostname"
#: The taint by which a cordoned node is tolerated.
UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
DO_NOT_SCHEDULE: Final = "DoNotSchedule"


class Change(NamedTuple):
    """`text` for people, `details` in the API's words for programs; `nodes`: on how many the pod
    fits then, one of them `node`.
    """

    kind: str
    text: str
    details: dict[str, Any]
    nodes: int
    node: str


def changes(runner: Runner, nominator: Nominator, pod: Pod) -> list[Change]:
    """The smallest change of each kind that makes a waiting pod fit."""
    found: list[Change] = []
    for kind in (_tolerations, _requests, _skews, _labels, _nodes, _evictions):
        deciding = Deciding(runner, nominator, pod)
        try:
            with deciding.within_budget():
                if deciding.fits():
                    break
                found.extend(kind(deciding))
        except (OutOfTurn, PointError):
            continue
    return found


def _told(
    deciding: Deciding, kind: str, text: str, details: dict[str, Any], pod: Pod | None = None
) -> Change:
    rows = np.flatnonzero(deciding.rows(pod))
    node = deciding.cluster.nodes.node_at[int(rows[0])]
    assert node is not None
    return Change(kind, text, details, len(rows), node.name)


# --- the pod -------------------------------------------------------------------------------------


def _with(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def _tolerations(deciding: Deciding) -> Iterator[Change]:
    """Each set of taints that some node keeps the pod away with, the smallest first."""
    pod, cluster = deciding.pod, deciding.cluster
    own = pod.spec.tolerations or ()
    nodes = cluster.nodes
    refused = deciding.refusals(
        lambda name, _: name not in (names.TAINT_TOLERATION, names.NODE_UNSCHEDULABLE)
    )
    wanted: dict[tuple[Taint, ...], None] = {}
    for row in np.flatnonzero(~refused).tolist():
        node = nodes.node_at[row]
        assert node is not None
        hard = {taint: None for taint in node.spec.taints or () if taint.is_hard}
        if node.spec.unschedulable:
            hard[UNSCHEDULABLE] = None
        missing = tuple(taint for taint in hard if not tolerated(taint, own))
        if missing:
            wanted[missing] = None
    for missing in sorted(wanted, key=len)[:TRIES_MAX]:
        more = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in missing)
        changed = _with(pod, tolerations=(*own, *more))
        if deciding.fits(changed):
            listed = [msgspec.to_builtins(one) for one in more]
            said = ", ".join(map(spelt, missing))
            yield _told(
                deciding, "toleration", f"tolerate {said}", {"tolerations": listed}, changed
            )
            return


def _requests(deciding: Deciding) -> Iterator[Change]:
    """Less of one resource, asked for by the container that asks for most of it."""
    for resource in deciding.info(deciding.pod).cls.requests:
        chosen = _largest(deciding.pod, resource)
        if chosen is None:
            continue
        index, amount = chosen
        by = smallest(1, amount, _fits_with_less(deciding, resource, index, amount))
        if by is None:
            continue
        changed = _asking(deciding.pod, resource, index, amount - by)
        container = (deciding.pod.spec.containers or ())[index].name
        less, was, left = (written(resource, number) for number in (by, amount, amount - by))
        said = f"request {less} less {resource} in container {container} ({left} instead of {was})"
        details = {"resource": resource, "container": container, "from": was, "to": left}
        yield _told(deciding, "request", said, details, changed)


def _fits_with_less(
    deciding: Deciding, resource: str, index: int, amount: int
) -> Callable[[int], bool]:
    return lambda by: deciding.fits(_asking(deciding.pod, resource, index, amount - by))


def _largest(pod: Pod, resource: str) -> tuple[int, int] | None:
    """(index, amount in milli-CPU or whole units) of the container that asks for most."""
    asked = [
        (_asked(container, resource), -index)
        for index, container in enumerate(pod.spec.containers or ())
    ]
    amount, index = max(asked, default=(0, 0))
    return (-index, amount) if amount > 0 else None


def _asking(pod: Pod, resource: str, index: int, amount: int) -> Pod:
    """The pod whose container asks for so much."""
    containers = pod.spec.containers or ()
    own = containers[index].resources
    requests = {**(own.requests or {}), resource: written(resource, amount)}
    resources = msgspec.structs.replace(own, requests=requests)
    changed = msgspec.structs.replace(containers[index], resources=resources)
    return _with(pod, containers=(*containers[:index], changed, *containers[index + 1 :]))


def _asked(container: Container, resource: str) -> int:
    return pod_requests(Pod(spec=PodSpec(containers=(container,)))).get(resource, 0)


def _skews(deciding: Deciding) -> Iterator[Change]:
    """One hard constraint after the other, loosened as far as there are pods."""
    pod = deciding.pod
    constraints = pod.spec.topology_spread_constraints or ()
    loosest = len(deciding.cluster.placed) + 1

    for index, constraint in enumerate(constraints[:TRIES_MAX]):
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            continue

        def loosened(to: int, index: int = index) -> Pod:
            one = msgspec.structs.replace(constraints[index], max_skew=to)
            listed = (*constraints[:index], one, *constraints[index + 1 :])
            return _with(pod, topology_spread_constraints=listed)

        tightest = constraint.max_skew + 1
        high = max(loosest, tightest)
        found = smallest(tightest, high, lambda to: deciding.fits(loosened(to)))
        if found is not None:
            said = f"allow maxSkew {found} on {constraint.topology_key} (now {constraint.max_skew})"
            details = {"constraint": index, "from": constraint.max_skew, "to": found}
            yield _told(deciding, "maxSkew", said, details, loosened(found))


# --- the nodes -----------------------------------------------------------------------------------


def _labels(deciding: Deciding) -> Iterator[Change]:
    """Nodes that only labels can be in the way of, by how many would have to change."""
    pod, nodes = deciding.pod, deciding.cluster.nodes
    read = keys_read(pod)
    if not read:
        return
    refused = deciding.refusals(lambda _, reads: reads is not None and not reads & Aspect.LABELS)
    ways: list[tuple[int, int, dict[str, str | None]]] = []
    known: dict[tuple[str | None, ...], list[dict[str, str | None]]] = {}
    for row in np.flatnonzero(~refused).tolist():
        node = nodes.node_at[row]
        assert node is not None
        here = tuple(node.labels.get(key) for key in read)
        if here not in known:
            known[here] = fewest_changes(pod, node.labels)
        ways.extend((len(change), row, change) for change in known[here] if change)
    ways.sort(key=lambda way: way[0])
    for tries, (_, row, change) in enumerate(ways):
        if tries == TRIES_MAX:
            return
        node = nodes.node_at[row]
        assert node is not None
        with deciding.cluster.supposing().node(relabelled(node, change)):
            fits = bool(deciding.rows()[row])
        if fits:
            parts = [f"{k}={v}" if v is not None else f"{k}-" for k, v in change.items()]
            details = {"node": node.name, "labels": change}
            said = f"label node {node.name} {' '.join(parts)}"
            yield Change("label", said, details, 1, node.name)
            return


def _nodes(deciding: Deciding) -> Iterator[Change]:
    """An empty node like each kind of node there is, the smallest first."""
    cluster, pod = deciding.cluster, deciding.pod
    asked = deciding.info(pod).cls.requests
    refused = deciding.refusals(lambda name, _: name in _OF_THE_NODE)
    kinds: dict[Any, tuple[int, int, Node]] = {}
    for row in np.flatnonzero(~refused).tolist():
        node = cluster.nodes.node_at[row]
        assert node is not None
        offered = _offered(deciding, row)
        if any(offered.get(name, 0) < amount for name, amount in asked.items()):
            continue
        labels = frozenset((k, v) for k, v in node.labels.items() if k != HOSTNAME)
        key = (tuple(offered.items()), node.spec.taints, labels)
        kinds.setdefault(key, (offered.get(CPU, 0), offered.get(MEMORY, 0), node))
    ordered = sorted(kinds.values(), key=lambda kind: (kind[0], kind[1], kind[2].name))
    for tries, (_, _, node) in enumerate(ordered):
        if tries == TRIES_MAX:
            return
        more = another(node, cluster.nodes.row_of)
        with cluster.supposing().node(more):
            fits = bool(deciding.rows()[cluster.nodes.row_of[more.name]])
        if fits:
            said = f"one more node like {node.name}"
            yield Change("node", said, {"like": node.name}, 1, node.name)
            return


#: Filters of which a node that holds no pods is judged as the node that it is like.
_OF_THE_NODE: Final = (names.NODE_AFFINITY, names.TAINT_TOLERATION, names.NODE_UNSCHEDULABLE)


def another(node: Node, taken: Iterable[str]) -> Node:
    """An empty node like one, by a name of its own."""
    known, name = frozenset(taken), f"{node.name}-another"
    while name in known:
        name += "-one"
    labels = node.labels
    if HOSTNAME in labels:
        labels = {**labels, HOSTNAME: name}
    metadata = msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _offered(deciding: Deciding, row: int) -> dict[str, int]:
    nodes = deciding.cluster.nodes
    amounts = nodes.columns.read("allocatable")[:, row]
    node = nodes.node_at[row]
    listed = (node.status.allocatable or {}) if node is not None else {}
    places = {name: nodes.find_resource(name) for name in sorted(listed)}
    return {name: int(amounts[at]) for name, at in places.items() if at is not None}


def _evictions(deciding: Deciding) -> Iterator[Change]:
    """All pods up to a priority leave one node: the lowest priority that does."""
    cluster = deciding.cluster
    lines = cluster.singleton(PodsByPriority)
    lines.catch_up()
    live = np.flatnonzero(cluster.nodes.columns.read("live")[: cluster.nodes.height])
    never = deciding.refusals(lambda name, _: name in _OF_THE_NODE)
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
            left = read("allocatable")[at, rows] - read("requested")[at, rows] + freed
            touched &= left >= amount
        fewest = sorted((int(goes[:, i].sum()), i) for i in np.flatnonzero(touched).tolist())
        for _, index in fewest:
            row = int(rows[index])
            leaving = [p for p in lines.pods(row) if p.pod.priority <= level]
            with cluster.supposing().gone(leaving, row):
                fits = deciding.fits_on(row)
            if fits:
                yield _evicted(deciding, row, level, [p.pod.key for p in leaving])
                return


def _evicted(deciding: Deciding, row: int, level: int, leaving: list[str]) -> Change:
    node = deciding.cluster.nodes.node_at[row]
    assert node is not None
    said = f"evict what has priority {level} or less on node {node.name} ({len(leaving)} pods)"
    details = {"node": node.name, "priority": level, "pods": leaving[:TRIES_MAX]}
    return Change("eviction", said, details, 1, node.name)
