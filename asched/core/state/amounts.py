"""What pods ask for on each row: the columns `requested` and `nonzero`, moved pod by pod.

Sums are exact however large the amounts are, or small, where nobody refused one below nought. A
column shows what 64 bits hold: beyond that it stays at the last amount, never wraps, and the rest
is kept aside. Resources that no node names have no
place on axis R; what pods ask of them is kept by row, and moves to the axis when a node names them
(and back): memory follows what pods and nodes name now, however many names have come and gone.
"""

from collections.abc import Mapping
from typing import Protocol

from asched.core.model.quantity import INT64_MAX
from asched.core.state.columns import Columns
from asched.core.state.vocab import Vocab


class Accounted(Protocol):
    """What a row loses to a pod (`PodClass`), or to whom room is held for."""

    @property
    def accounted(self) -> Mapping[str, int]: ...

    @property
    def accounted_nonzero(self) -> tuple[int, int]: ...


class PodAmounts:
    """Only the room `state` calls the methods that change something."""

    __slots__ = ("_beyond", "_columns", "_resources", "_unlisted")

    def __init__(self, columns: Columns, resources: Vocab[str]) -> None:
        self._columns = columns
        self._resources = resources
        #: row -> (column, index) -> what the column cannot show
        self._beyond: dict[int, dict[tuple[str, int], int]] = {}
        self._unlisted: dict[str, dict[int, int]] = {}  # resource -> row -> amount

    # --- for readers -----------------------------------------------------------------------------

    def beyond(self, row: int) -> Mapping[tuple[str, int], int]:
        """(column, index) -> what the sums of a row are above what the columns show."""
        return self._beyond.get(row, _NOTHING)

    @property
    def rows_beyond(self) -> Mapping[int, Mapping[tuple[str, int], int]]:
        """The rows with such sums."""
        return self._beyond

    def unlisted(self, row: int) -> dict[str, int]:
        """What pods on a row ask for of resources that no node names."""
        return {name: rows[row] for name, rows in self._unlisted.items() if row in rows}

    @property
    def size(self) -> int:
        """Entries beside the columns."""
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
        """A resource has a place on axis R from now on."""
        for row, amount in self._unlisted.pop(name, {}).items():
            self._add("requested", index, row, amount)

    def unlist(self, name: str, index: int) -> None:
        """No node names the resource any more: its place is for others."""
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
        """Take what a column could not show."""
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
