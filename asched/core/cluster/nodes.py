"""The node table: one row per node, with columns for all data that rules read of every node.

A row keeps its number while its node exists. Categories (taints, label values, features) are
interned, so that a rule evaluates each distinct value once and gathers; a row has the ids of its
values, and an id is freed with the last row that has it. Label columns are made on first use, and
dropped when no node has the label any more: labels that pods name and no node has cost nothing.

The requests of the pods on a row are summed in the columns `requested` and `nonzero`, pod by pod
(`PodAmounts`). Sums are exact for amounts of any size, also negative ones of objects without
validation: a column has 64 bits, beyond which it stays at the last amount, never wraps, and the
rest is stored apart. Resources that no node has are not on axis R; requests for them are stored by
row and move to the axis when a node has the resource (and back). Memory therefore depends on the
present resources of pods and nodes only.

`Aspect` names the parts of a row that can change; the log has the rows that changed in each aspect,
so that cached results are made again for those rows only.
"""

from collections.abc import Hashable, Iterable, Mapping
from enum import IntFlag
from heapq import heappop, heappush
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.columns import ROWS_MIN, Column, Columns
from asched.core.cluster.vocab import Vocab
from asched.core.model.arrays import I32, I64, Mask
from asched.core.model.node import Node
from asched.core.model.quantity import INT64_MAX, milli, whole
from asched.core.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar
from asched.core.model.selector import integer
from asched.core.model.taint import Taint

T = TypeVar("T", bound=Hashable)

#: Resource columns that always exist, in this order.
FIXED_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


class Aspect(IntFlag):
    """Parts of a node row on which a result may depend."""

    POD_AMOUNTS = 1  # of its pods: requested amounts, counts, ports, disks
    ALLOCATABLE = 2
    LABELS = 4
    TAINTS = 8  # spec.unschedulable too
    IMAGES = 16
    FEATURES = 32
    LIVE = 64  # a node was added or deleted
    ANNOTATIONS = 512  # of the node: data written by agents
    NODE = ALLOCATABLE | LABELS | TAINTS | IMAGES | FEATURES | LIVE | ANNOTATIONS
    START_TIMES = 128  # a pod on it was started: relevant for the choice of victims only
    POD_LABELS = 256  # of its pods; API servers label a pod when it is bound
    PODS = POD_AMOUNTS | POD_LABELS  # a pod was added or left
    ALL = NODE | PODS


#: Combining enum members is slow: the log and its readers use plain integers.
AMOUNTS: Final = int(Aspect.POD_AMOUNTS)
POD_LABELS: Final = int(Aspect.POD_LABELS)
PODS_MOVED: Final = int(Aspect.PODS)
START_TIMES: Final = int(Aspect.START_TIMES)
LIVE_ONLY: Final = int(Aspect.LIVE)
ALL_ASPECTS: Final = int(Aspect.ALL)

#: Up to this number of resources axis R has no spare length; beyond, each node may add its own.
RESOURCES_FEW: Final = 16
NO_LABELS: Final[dict[str, str]] = {}

NODE_COLUMNS: Final = (
    Column("live", np.bool_, (), "-", "Seen, Gone"),
    Column("unschedulable", np.bool_, (), "-", "Seen"),
    Column("allocatable", np.int64, ("R",), "milli-CPU, bytes, devices", "Seen"),
    Column("allowed_pods", np.int64, (), "pods", "Seen"),
    Column("taint_set", np.int32, (), "id of a tuple of taints", "Seen"),
    Column("feature_set", np.int32, (), "id of a set of declared features", "Seen"),
    Column("requested", np.int64, ("R",), "milli-CPU, bytes, devices", "pods placed or assumed"),
    Column("nonzero", np.int64, ("Z",), "milli-CPU; bytes", "pods placed or assumed"),
    Column("pod_count", np.int64, (), "pods", "pods placed or assumed"),
)


class LabelColumn:
    """One label key over all rows: `ids[row]` is the id of its value, 0 without the label."""

    def __init__(self, number: int, capacity: int) -> None:
        self._number = number
        self._integers: tuple[tuple[int, int], I64, Mask] | None = None
        self.ids: I32 = np.zeros(capacity, dtype=np.int32)
        self.values: Vocab[str] = Vocab("")

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes when a value gets an id: data by id may then belong to another value."""
        return self._number, self.values.end

    def integers(self) -> tuple[I64, Mask]:
        """(int64[V], bool[V]): the values by id as numbers, and which of them are numbers."""
        if self._integers is None or self._integers[0] != self.stamp:
            numbers = [integer(value) for value in self.values.values]
            found = np.array([number or 0 for number in numbers], dtype=np.int64)
            is_number = np.array([number is not None for number in numbers], dtype=np.bool_)
            self._integers = self.stamp, found, is_number
        return self._integers[1:]

    def write(self, row: int, value: str | None) -> None:
        """None: the row does not have the label."""
        old = int(self.ids[row])
        self.ids[row] = 0 if value is None else self.values.take(value)
        self.values.release(old)

    def reserve(self, capacity: int) -> None:
        if capacity > len(self.ids):
            grown = np.zeros(capacity, dtype=np.int32)
            grown[: len(self.ids)] = self.ids
            self.ids = grown


class ImageState(NamedTuple):
    """An image name: the size reported by its first node, and the rows that have it."""

    size_bytes: int
    rows: set[int]


class Accounted(Protocol):
    """The amounts that a pod (`PodClass`) or a reservation takes of a row."""

    @property
    def accounted(self) -> Mapping[str, int]: ...

    @property
    def accounted_nonzero(self) -> tuple[int, int]: ...


class PodAmounts:
    """Only `core/cluster` calls the methods that change something."""

    def __init__(self, columns: Columns, resources: Vocab[str]) -> None:
        self._columns = columns
        self._resources = resources
        #: row -> (column, index) -> amount beyond the column's range
        self._beyond: dict[int, dict[tuple[str, int], int]] = {}
        self._unlisted: dict[str, dict[int, int]] = {}  # resource -> row -> amount

    # --- for readers -----------------------------------------------------------------------------

    def beyond(self, row: int) -> Mapping[tuple[str, int], int]:
        """(column, index) -> the amount of a row's sum beyond the column's value."""
        return self._beyond.get(row, _NOTHING)

    @property
    def rows_beyond(self) -> Mapping[int, Mapping[tuple[str, int], int]]:
        """The rows with such sums."""
        return self._beyond

    def unlisted(self, row: int) -> dict[str, int]:
        """Requests of the pods on a row for resources that no node has."""
        return {name: rows[row] for name, rows in self._unlisted.items() if row in rows}

    @property
    def size(self) -> int:
        """The number of entries besides the columns."""
        return sum(map(len, self._beyond.values())) + sum(map(len, self._unlisted.values()))

    # --- for the owner ---------------------------------------------------------------------------

    def move(self, cls: Accounted, row: int, sign: int) -> None:
        """A pod appeared on (+1) or left (-1) a row."""
        ids, write = self._resources.ids, self._columns.write
        requested, nonzero = write["requested"], write["nonzero"]
        is_beyond = row in self._beyond
        for name, amount in cls.accounted.items():
            id_ = ids.get(name)
            if id_ is None:
                self._add_unlisted(name, row, sign * amount)
                continue
            index = id_ - 1
            total = requested.item(index, row) + sign * amount
            if is_beyond or not -INT64_MAX <= total <= INT64_MAX:
                self._add("requested", index, row, sign * amount)
            else:
                requested[index, row] = total
        for index, amount in enumerate(cls.accounted_nonzero):
            total = nonzero.item(index, row) + sign * amount
            if is_beyond or not -INT64_MAX <= total <= INT64_MAX:
                self._add("nonzero", index, row, sign * amount)
            else:
                nonzero[index, row] = total

    def list_(self, name: str, index: int) -> None:
        """A resource gets a place on axis R."""
        for row, amount in self._unlisted.pop(name, {}).items():
            self._add("requested", index, row, amount)

    def unlist(self, name: str, index: int) -> None:
        """No node has the resource any more: its place is reused."""
        held = self._columns.write["requested"][index]
        for row in held.nonzero()[0].tolist():
            surplus = self._surplus(row, ("requested", index))
            self._add_unlisted(name, row, int(held[row]) + surplus)
        held[:] = 0

    def _add(self, column: str, index: int, row: int, amount: int) -> None:
        array = self._columns.write[column]
        total = int(array[index, row]) + amount
        if row in self._beyond:
            total += self._surplus(row, (column, index))
        shown = max(-INT64_MAX, min(total, INT64_MAX))
        if shown != total:
            self._beyond.setdefault(row, {})[column, index] = total - shown
        array[index, row] = shown

    def _surplus(self, row: int, place: tuple[str, int]) -> int:
        """Take out the amount beyond the column's range."""
        places = self._beyond.get(row)
        surplus = 0 if places is None else places.pop(place, 0)
        if places is not None and not places:
            del self._beyond[row]
        return surplus

    def _add_unlisted(self, name: str, row: int, amount: int) -> None:
        rows = self._unlisted.setdefault(name, {})
        remaining = rows.get(row, 0) + amount
        if remaining:
            rows[row] = remaining
        else:
            rows.pop(row, None)
            if not rows:
                del self._unlisted[name]


_NOTHING: Mapping[tuple[str, int], int] = {}


class NodeTable:
    """All nodes. Only `core/cluster` calls the methods that change something."""

    def __init__(self) -> None:
        self.columns = Columns(NODE_COLUMNS, R=len(FIXED_RESOURCES), Z=2)
        self.log = RowLog()
        self.count = 0  # live nodes
        self.height = 0  # rows in use or freed; arrays are read up to here
        self.row_of: dict[str, int] = {}
        self.node_at: list[Node | None] = []
        self.resources: Vocab[str] = Vocab("")  # id - 1 is the row of axis R
        self.taint_sets: Vocab[tuple[Taint, ...]] = Vocab(())
        self.feature_sets: Vocab[frozenset[str]] = Vocab(frozenset())
        self.images: dict[str, ImageState] = {}
        self.generation = 0  # grows with every node fact that changes something
        self.labels_moved = 0  # grows with every change of labels or rows
        self.pod_amounts = PodAmounts(self.columns, self.resources)
        self._labels: dict[str, LabelColumn] = {}
        self._carried: dict[str, int] = {}  # label key -> number of nodes with it
        self.keys_moved = 0  # grows when a label key appears or disappears
        self._columns_made = 0
        self._no_label = LabelColumn(0, self.columns.capacity)  # for keys that no node has
        self._free: list[int] = []  # a heap: rows at the end are used last
        self._top = 0  # one more than the last row with a node
        for name in FIXED_RESOURCES:
            self.resources.take(name)  # permanently

    # --- for readers -----------------------------------------------------------------------------

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use. Must not be stored."""
        column = self._labels.get(key)
        if column is not None:
            return column
        if key not in self._carried:
            return self._no_label
        self._columns_made += 1
        column = self._labels[key] = LabelColumn(self._columns_made, self.columns.capacity)
        labels = [NO_LABELS if node is None else node.labels for node in self.node_at]
        values = [own.get(key) for own in labels]
        column.ids[: len(values)] = column.values.take_all(values)
        return column

    def has_column(self, key: str) -> bool:
        """Whether `label_column` has it without a pass over the nodes."""
        return key in self._labels or key not in self._carried

    def is_carried(self, key: str) -> bool:
        """Whether any node has a label with this key."""
        return key in self._carried

    def find_resource(self, name: str) -> int | None:
        """The place of a resource on axis R; None if no node has it."""
        index = self.resources.find(name)
        return index - 1 if index else None

    def nodes(self) -> Iterable[tuple[int, Node]]:
        """(row, node) of every live node."""
        for row, node in enumerate(self.node_at):
            if node is not None:
                yield row, node

    # --- for the owner ---------------------------------------------------------------------------

    def put(self, node: Node) -> tuple[int, bool]:
        """Add or update a node. Returns its row and whether it is new."""
        row = self.row_of.get(node.name)
        is_new = row is None
        if row is None:
            row = self._take_row(node.name)
        old = self.node_at[row]
        self.node_at[row] = node
        aspects = self._write_row(row, old, node)
        if is_new:
            self.count += 1
            self.columns.write["live"][row] = True
            aspects = Aspect.ALL
        if aspects:
            self.generation += 1
            self.log.add(row, int(aspects))
        return row, is_new

    def remove(self, name: str) -> int | None:
        """Free the row of a deleted node; None if it was unknown."""
        row = self.row_of.pop(name, None)
        if row is None:
            return None
        node = self.node_at[row]
        self.node_at[row] = None
        for image in set(_image_names(node)):  # a kubelet may list an image twice
            state = self.images[image]
            state.rows.discard(row)
            if not state.rows:
                del self.images[image]
        read = self.columns.read
        self.taint_sets.release(int(read("taint_set")[row]))
        self.feature_sets.release(int(read("feature_set")[row]))
        if node is not None:
            self._write_labels(row, node.labels, {})
            self._name_resources(_resource_names(node), frozenset())
        self.columns.clear(row)
        heappush(self._free, row)
        while self._top and self.node_at[self._top - 1] is None:
            self._top -= 1
        self.count -= 1
        self.generation += 1
        self.log.add(row, int(Aspect.ALL))
        return row

    def cut(self) -> bool:
        """Release the rows at the end if they are half of all rows and without nodes. All data by
        row becomes invalid; not to be called while a view is in use.
        """
        if self.height <= ROWS_MIN or self._top > self.height // 2:
            return False
        self.height = self._top
        del self.node_at[self.height :]
        self._free = sorted(row for row in self._free if row < self.height)
        if self.columns.cut(self.height):
            for column in (self._no_label, *self._labels.values()):
                column.ids = column.ids[: self.columns.capacity].copy()
        self.generation += 1
        self.log.forget()
        return True

    def _take_row(self, name: str) -> int:
        row = heappop(self._free) if self._free else self.height
        self._top = max(self._top, row + 1)
        if row == self.height:
            self.height += 1
            self.node_at.append(None)
            if self.columns.reserve(self.height):
                for column in (self._no_label, *self._labels.values()):
                    column.reserve(self.columns.capacity)
        self.row_of[name] = row
        return row

    def _write_row(self, row: int, old: Node | None, node: Node) -> Aspect:
        write = self.columns.write
        aspects = Aspect(0)
        is_new_set = _hold(self.taint_sets, write["taint_set"], row, tuple(node.spec.taints or ()))
        if is_new_set or node.spec.unschedulable != write["unschedulable"][row]:
            write["unschedulable"][row] = node.spec.unschedulable
            aspects |= Aspect.TAINTS
        features = frozenset(node.status.declared_features or ())
        if _hold(self.feature_sets, write["feature_set"], row, features):
            aspects |= Aspect.FEATURES
        if old is None or old.status.allocatable != node.status.allocatable:
            self._write_allocatable(row, old, node)
            aspects |= Aspect.ALLOCATABLE
        elif old.status.capacity != node.status.capacity:
            aspects |= Aspect.ALLOCATABLE
        if old is None or old.labels != node.labels:
            self._write_labels(row, old.labels if old is not None else {}, node.labels)
            aspects |= Aspect.LABELS
        if (old.status.images if old is not None else None) != node.status.images:
            self._write_images(row, old, node)
            aspects |= Aspect.IMAGES
        if old is None or old.metadata.annotations != node.metadata.annotations:
            aspects |= Aspect.ANNOTATIONS
        return aspects

    def _write_labels(self, row: int, old: dict[str, str], new: dict[str, str]) -> None:
        self.labels_moved += 1
        for key in old.keys() | new.keys():
            value = new.get(key)
            if old.get(key) == value:
                continue
            column = self._labels.get(key)
            if column is not None:
                column.write(row, value)
            carriers = self._carried.get(key, 0) + (key in new) - (key in old)
            self.keys_moved += not carriers or key not in self._carried
            if carriers:
                self._carried[key] = carriers
            else:
                del self._carried[key]
                self._labels.pop(key, None)

    def _write_allocatable(self, row: int, old: Node | None, node: Node) -> None:
        amounts = node.status.allocatable or {}
        before, wanted = _resource_names(old), _resource_names(node)
        offered = self.columns.write["allocatable"]
        for name in before:
            offered[self.resources.find(name) - 1, row] = 0
        self._name_resources(before, wanted)
        offered = self.columns.write["allocatable"]
        for name in wanted:
            amount = milli(amounts[name]) if name == CPU else whole(amounts[name])
            offered[self.resources.find(name) - 1, row] = min(amount, INT64_MAX)
        self.columns.write["allowed_pods"][row] = whole(amounts.get(PODS, 0))

    def _name_resources(self, before: frozenset[str], after: frozenset[str]) -> None:
        """Update axis R after a change of a node's resource names."""
        resources = self.resources
        for name in sorted(after - before):
            is_new = not resources.find(name)
            index = resources.take(name) - 1
            if is_new:
                self.columns.widen("R", index + 1, index // 2 if index >= RESOURCES_FEW else 0)
                self.pod_amounts.list_(name, index)
        for name in sorted(before - after):
            id_ = resources.find(name)
            if resources.release(id_):
                self.pod_amounts.unlist(name, id_ - 1)

    def _write_images(self, row: int, old: Node | None, node: Node) -> None:
        before, after = set(_image_names(old)), dict(_images(node))
        for name in before - after.keys():
            state = self.images[name]
            state.rows.discard(row)
            if not state.rows:
                del self.images[name]
        for name, size_bytes in after.items():
            self.images.setdefault(name, ImageState(size_bytes, set())).rows.add(row)


def _hold(vocab: Vocab[T], ids: I32, row: int, value: T) -> bool:
    """Set the value of a row; returns whether it changed."""
    old = int(ids[row])
    if vocab.values[old] == value:
        return False
    ids[row] = vocab.take(value) if value else 0
    vocab.release(old)
    return True


def _resource_names(node: Node | None) -> frozenset[str]:
    """The names in a node's allocatable that are counted, besides pods."""
    names = (node.status.allocatable if node is not None else None) or ()
    return frozenset(name for name in names if name in FIXED_RESOURCES or is_scalar(name))


def _images(node: Node | None) -> Iterable[tuple[str, int]]:
    for image in (node.status.images if node is not None else None) or ():
        for name in image.names or ():
            yield name, image.size_bytes


def _image_names(node: Node | None) -> Iterable[str]:
    return (name for name, _ in _images(node))
