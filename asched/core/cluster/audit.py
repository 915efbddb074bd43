"""The audit: whether the columns equal a fresh count, and the state equals the API's.

    recount(cluster)           counts everything again, in a second cluster, from the same objects,
                               and names each difference
    recount_row(cluster, row)  the same for one node, by its own pods and holds
    compare(cluster, listed)   names each object that differs between the cluster and a list
    known(cluster, kind)       the objects of a kind as last received from the API

All columns are updated pod by pod; an error would stay forever. So every simulation ends with an
audit, and an operator can request one. It costs as much as listing everything, and changes nothing.

Bounds  FINDINGS_MAX lines; one broken counter may differ on every node.
"""

# ruff: noqa: SLF001 - an audit reads all private state of the package

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.holds import HeldPlace
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.tallies import Tally
from asched.core.cluster.vocab import Vocab
from asched.core.cluster.volumes import UNLIMITED
from asched.core.model.kinds import BY_RESOURCE, NODE, POD, Kind
from asched.core.model.meta import Record

#: A longer report is no more useful. A guess.
FINDINGS_MAX: Final = 50

#: Columns that are equal in every cluster; ids and resource axes are compared by name.
_PLAIN: Final = ("live", "unschedulable", "allowed_pods", "pod_count")


def recount(cluster: Cluster) -> list[str]:
    """Differences of columns and counters from a fresh count of the same objects.

    Call it between two turns, not during a trial.
    """
    assert not cluster.topology.on_trial
    twin = _twin_of(cluster)
    return list(islice(_differences(cluster, twin), FINDINGS_MAX))


def recount_row(cluster: Cluster, row: int) -> list[str]:
    """Differences of a node's row from a fresh count of the node, its pods and holds; as fast as
    its pods are few. Not during a trial.
    """
    node = cluster.nodes.node_at[row]
    assert node is not None
    assert not cluster.topology.on_trial
    twin = Cluster()
    twin._see_node(node)
    for info in cluster.pods_on(row).values():
        twin._put(PodInfo(info.pod, twin.classes.class_of(info.pod)), node.name)
    for owner in cluster.holds.by_row.get(row, ()):
        hold = cluster.holds.of(owner)
        assert hold is not None
        _hold_again(twin, owner, (place for place in hold.places if place.node_name == node.name))
    again = _row(twin, twin.nodes.row_of[node.name])
    return list(_unlike(f"node {node.name}", _row(cluster, row), again))


def compare(cluster: Cluster, listed: Mapping[Kind, Iterable[Record]]) -> list[str]:
    """Differences between the cluster and lists of the API at the same version."""
    return list(islice(_disagreements(cluster, listed), FINDINGS_MAX))


def known_as(cluster: Cluster, kind: Kind, key: str) -> Any:
    """One object as last received from the API, or None."""
    if kind is POD:
        return cluster.pods_seen.get(key)
    return cluster.node_of(key) if kind is NODE else cluster.stored(kind, key)


def known(cluster: Cluster, kind: Kind) -> Mapping[str, Any]:
    """The objects of a kind by key, as last received from the API."""
    if kind is POD:
        return cluster.pods_seen
    if kind is NODE:
        return {node.name: node for _, node in cluster.nodes.nodes()}
    return cluster._stored(kind)


# --- against the API -----------------------------------------------------------------------------


def _disagreements(cluster: Cluster, listed: Mapping[Kind, Iterable[Record]]) -> Iterator[str]:
    for kind, objects in listed.items():
        in_api: dict[str, Any] = {obj.metadata.key: obj for obj in objects}  # type: ignore[attr-defined]
        cached_objects = {key: obj.metadata for key, obj in known(cluster, kind).items()}
        for key in sorted(in_api.keys() | cached_objects.keys()):
            cached, real = cached_objects.get(key), in_api.get(key)
            if cached is None or real is None:
                where = "exists only in the API" if cached is None else "does not exist in the API"
                yield f"{kind.plural} {key}: {where}"
            elif (cached.uid, cached.resource_version) != (
                real.metadata.uid,
                real.metadata.resource_version,
            ):
                yield (
                    f"{kind.plural} {key}: known at version {cached.resource_version},"
                    f" the API is at {real.metadata.resource_version}"
                )
        if kind is POD:
            yield from _misplaced(cluster, in_api)


def _misplaced(cluster: Cluster, in_api: Mapping[str, Any]) -> Iterator[str]:
    placed = {uid: info for uid, info in cluster.placed.items() if not info.assumed}
    for key, pod in in_api.items():
        info = placed.pop(pod.metadata.uid, None)
        counted = info.node_name if info is not None else ""
        if counted != pod.spec.node_name:
            yield f"pod {key}: counted on {counted!r}, the API says {pod.spec.node_name!r}"
    for info in placed.values():  # another pod of the same name may be in the list
        yield f"pod {info.pod.key}: counted on {info.node_name!r}, the API has no such pod"


# --- against a fresh count -----------------------------------------------------------------------


def _twin_of(cluster: Cluster) -> Cluster:
    """A cluster with the same objects, all added at once."""
    twin = Cluster()
    for resource, objects in cluster._objects.items():
        for obj in objects.values():
            twin._put_object(BY_RESOURCE[resource], obj)
    for _, node in cluster.nodes.nodes():
        twin._see_node(node)
    for info in cluster.placed.values():
        twin._put(PodInfo(info.pod, twin.classes.class_of(info.pod)), info.node_name)
    for hold in cluster.holds:
        assert not hold.is_lifted
        _hold_again(twin, hold.owner, hold.places)
    for key in cluster.topology._counters:
        twin.topology.counter(key)
    return twin


def _hold_again(twin: Cluster, owner: str, places: Iterable[HeldPlace]) -> None:
    """Hold the same places in the twin."""
    again = [
        HeldPlace(twin.classes.info_of(what.pod) if isinstance(what, PodInfo) else what, node_name)
        for what, node_name in places
    ]
    twin.holds.put(owner, again)


def _differences(cluster: Cluster, twin: Cluster) -> Iterator[str]:
    yield from _unlike("nodes", set(cluster.nodes.row_of), set(twin.nodes.row_of))
    yield from _dead_rows(cluster)
    yield from _vocabularies(cluster)
    for name, row in cluster.nodes.row_of.items():
        yield from _unlike(f"node {name}", _row(cluster, row), _row(twin, twin.nodes.row_of[name]))
    yield from _places(cluster, twin)
    yield from _unlike("priorities", dict(cluster.priorities), dict(twin.priorities))
    yield from _unlike("images", _images(cluster), _images(twin))
    yield from _counters(cluster, twin)
    yield from _unlike("host ports", _ports(cluster), _ports(twin))
    claims = [
        {key: _by_node(c, rows) for key, rows in c.occupancy.claims.items()}
        for c in (cluster, twin)
    ]
    yield from _unlike("claims in use", *claims)
    yield from _unlike("volumes", _volumes(cluster), _volumes(twin))


def _unlike(what: str, kept: Any, counted: Any) -> Iterator[str]:
    """One line per difference; mappings and sets are compared by entry."""
    if kept == counted:
        return
    if isinstance(kept, dict) and isinstance(counted, dict):
        for key in sorted(kept.keys() | counted.keys(), key=str):
            yield from _unlike(f"{what}, {key}", kept.get(key), counted.get(key))
    elif isinstance(kept, set) and isinstance(counted, set):
        yield f"{what}: kept {sorted(kept - counted)} too much, lack {sorted(counted - kept)}"
    else:
        yield f"{what}: kept {kept}, counted {counted}"


def _row(cluster: Cluster, row: int) -> dict[str, Any]:
    """One node's row in terms that are equal in every cluster."""
    nodes, read = cluster.nodes, cluster.nodes.columns.read
    counted: dict[str, Any] = {name: int(read(name)[row]) for name in _PLAIN}
    counted["nonzero"] = [int(amount) for amount in read("nonzero")[:, row]]
    counted["taints"] = nodes.taint_sets.values[int(read("taint_set")[row])]
    counted["features"] = set(nodes.feature_sets.values[int(read("feature_set")[row])])
    for name in ("allocatable", "requested"):
        amounts = read(name)[:, row]
        counted[name] = {
            nodes.resources.values[index + 1]: int(amounts[index])
            for index in np.flatnonzero(amounts)
        }
    counted["requested"] |= nodes.pod_amounts.unlisted(row)
    counted["beyond 64 bits"] = sorted(nodes.pod_amounts.beyond(row).values())
    node = nodes.node_at[row]
    labels = node.labels if node is not None else {}
    counted["label columns that differ from the node"] = {
        key: column.values.values[int(column.ids[row])]
        for key, column in nodes._labels.items()
        if column.values.values[int(column.ids[row])] != labels.get(key, "")
    }
    counted["pods"] = set(cluster._rows[row])
    return counted


def _dead_rows(cluster: Cluster) -> Iterator[str]:
    nodes = cluster.nodes
    dead = np.ones(nodes.columns.capacity, dtype=np.bool_)
    dead[list(nodes.row_of.values())] = False
    for name, array in nodes.columns.write.items():
        if array[..., dead].any():
            yield f"column {name}: a row without a node is not zero"
    for key, column in nodes._labels.items():
        if column.ids[dead[: len(column.ids)]].any():
            yield f"label column {key}: a row without a node is not zero"
    for row in np.flatnonzero(dead[: len(cluster._rows)]):
        if cluster._rows[row]:
            yield f"row {row}: pods without a node: {sorted(cluster._rows[row])}"


def _vocabularies(cluster: Cluster) -> Iterator[str]:
    """Every id has as many holders as there are rows with it."""
    nodes, read = cluster.nodes, cluster.nodes.columns.read
    held: list[tuple[str, Vocab[Any], Any]] = [("taints", nodes.taint_sets, read("taint_set"))]
    held.append(("features", nodes.feature_sets, read("feature_set")))
    held += [(f"label {key}", column.values, column.ids) for key, column in nodes._labels.items()]
    for what, vocab, ids in held:
        counted = Counter(vocab.values[id_] for id_ in ids[ids > 0].tolist())
        yield from _unlike(f"holders of {what}", vocab.holders(), dict(counted))


def _places(cluster: Cluster, twin: Cluster) -> Iterator[str]:
    """Where pods are, and whether each pod agrees with the place it is stored under."""
    orphans = [{n: set(pods) for n, pods in c._orphans.items()} for c in (cluster, twin)]
    yield from _unlike("pods on unknown nodes", *orphans)
    for uid, info in cluster.placed.items():
        row = cluster.nodes.row_of.get(info.node_name, -1)
        if info.pod.uid != uid or info.row != row:
            yield f"pod {info.pod.key}: says row {info.row}, node {info.node_name!r} is row {row}"


def _images(cluster: Cluster) -> dict[str, Any]:
    return {name: _names(cluster, image.rows) for name, image in cluster.nodes.images.items()}


def _ports(cluster: Cluster) -> dict[Any, Any]:
    return {port: _by_node(cluster, rows) for port, rows in cluster.occupancy.ports.items()}


def _counters(cluster: Cluster, twin: Cluster) -> Iterator[str]:
    for key, counter in cluster.topology._counters.items():
        if counter.is_filling:
            continue
        again = _tally(twin, twin.topology._counters[key], counter)
        yield from _unlike(f"counter {key}", _tally(cluster, counter), again)
    terms, fresh_terms = (
        {key: term for key, term in c.topology._terms.items() if term.total}
        for c in (cluster, twin)
    )
    yield from _unlike("terms that pods carry", set(terms), set(fresh_terms))
    for term_key in terms.keys() & fresh_terms.keys():
        term = terms[term_key]
        again = _tally(twin, fresh_terms[term_key], term)
        yield from _unlike(f"term {term_key}", _tally(cluster, term), again)
    populations = [_populations(c) for c in (cluster, twin)]
    yield from _unlike("label sets", *populations)


def _tally(cluster: Cluster, tally: Tally, like: Tally | None = None) -> dict[str, Any]:
    """A tally by node and by domain, for the label keys that `like` counts by."""
    nodes = cluster.nodes
    counted: dict[str, Any] = {
        "total": tally.total,
        "rows": _by_node(cluster, tally._by_row),
        "dense": _by_node(cluster, _by_row(tally)),
    }
    for key in (like or tally)._domains:
        values = nodes.label_column(key).values.values
        counts = _nonzero(tally.domain(key))
        counted[key] = {values[value]: number for value, number in counts.items()}
    return counted


def _by_row(tally: Tally) -> Mapping[int, int]:
    """The dense column if it exists; an audit does not make one."""
    return tally._by_row if tally._dense is None else _nonzero(tally.rows())


def _populations(cluster: Cluster) -> dict[str, Any]:
    counted: dict[str, Any] = {}
    populations = cluster.topology._populations
    for label_set in populations:
        population = populations.of(label_set)
        assert population is not None
        name = f"{label_set.namespace} {sorted(label_set.labels.items())}"
        counted[name] = {
            "staying": _by_node(cluster, population.staying),
            "terminating": _by_node(cluster, population.terminating),
        }
    return counted


def _volumes(cluster: Cluster) -> dict[str, Any]:
    index = cluster.volumes
    counts = {driver: _nonzero(column) for driver, column in index._counts.items()}
    limits = {
        driver: {int(row): int(column[row]) for row in np.flatnonzero(column != UNLIMITED)}
        for driver, column in index._limits.items()
    }
    masks = [
        {name: set(_names(cluster, np.flatnonzero(mask))) for name, mask in masks.items()}
        for masks in (index._moved, index._installed)
    ]
    return {
        "disks": {disk: _by_node(cluster, rows) for disk, rows in index.disks.items()},
        "claims": {str(use): _by_node(cluster, rows) for use, rows in index._uses.items()},
        "held": {volume: _by_node(cluster, rows) for volume, rows in index._held.items()},
        "attached": {volume: _by_node(cluster, rows) for volume, rows in index._attached.items()},
        "counts": {d: _by_node(cluster, rows) for d, rows in counts.items() if rows},
        "limits": {d: _by_node(cluster, rows) for d, rows in limits.items() if rows},
        "moved": {plugin: rows for plugin, rows in masks[0].items() if rows},
        "installed": {driver: rows for driver, rows in masks[1].items() if rows},
    }


def _nonzero(array: Any) -> dict[int, int]:
    return {int(index): int(array[index]) for index in np.flatnonzero(array)}


def _by_node(cluster: Cluster, rows: Mapping[int, Any]) -> dict[str, Any]:
    return {_name(cluster, row): amount for row, amount in rows.items()}


def _names(cluster: Cluster, rows: Iterable[int]) -> set[str]:
    return {_name(cluster, int(row)) for row in rows}


def _name(cluster: Cluster, row: int) -> str:
    node = cluster.nodes.node_at[row] if row < len(cluster.nodes.node_at) else None
    return f"dead row {row}" if node is None else node.name
