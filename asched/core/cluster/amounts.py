"""Requests of pods by row: the columns `requested` and `nonzero`, updated pod by pod.

Sums are exact for amounts of any size, also negative ones of objects without validation. A column
has 64 bits: beyond that it stays at the last amount, never wraps, and the rest is stored apart.
Resources that no node has are not on axis R; requests for them are stored by row and move to the
axis when a node has the resource (and back). Memory therefore depends on the present resources of
pods and nodes only.
"""

from collections.abc import Mapping
from typing import Protocol

from asched.core.cluster.columns import Columns, Vocab
from asched.core.model.quantity import INT64_MAX


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
        left = rows.get(row, 0) + amount
        if left:
            rows[row] = left
        else:
            rows.pop(row, None)
            if not rows:
                del self._unlisted[name]


_NOTHING: Mapping[tuple[str, int], int] = {}
