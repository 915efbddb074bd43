"""Held places: reservations counted as used although no pod is there yet, each for one owner.

    put ──> counted on its rows, in every decision ──drop──> released
              │  ^
             lift restore        while its owner's own pods are tried

A hold belongs to an object that was promised room: a slot of an accepted request for capacity. It
is counted in the same columns as placed and assumed pods, so that every decision respects it; it is
not a pod, so that it cannot be evicted. A held place is either amounts (`HeldAmounts`) or a future
pod (a `PodInfo`), which then also counts in volumes, topology and the usage of its namespace.

The book of requests (`batch/provisioning/book.py`) decides about holds. This class only marks
owners to be checked (`touched`): their node was deleted, or other pods use their room. Holds do not
expire.

Bounds  one hold per owner, one place per owner, node and pod or set of amounts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, vector
from asched.core.model.arrays import I64


class HeldAmounts(NamedTuple):
    """Reserved amounts without a pod: `accounted` as in `PodClass`, and a number of `pods`."""

    accounted: Mapping[str, int]
    pods: int = 0

    @property
    def accounted_nonzero(self) -> tuple[int, int]:
        """The amounts for scorers: exactly what is held."""
        return self.accounted.get("cpu", 0), self.accounted.get("memory", 0)


class HeldPlace(NamedTuple):
    what: HeldAmounts | PodInfo
    node_name: str

    def need(self, nodes: NodeTable) -> I64:
        """int64[R+1]: the amounts that are held, as in `room.py`."""
        what = self.what
        if isinstance(what, HeldAmounts):
            return vector(nodes, what.accounted, what.pods)
        return vector(nodes, what.cls.accounted, 1)


class Hold(msgspec.Struct):
    """The `places` held for an owner."""

    owner: str
    places: tuple[HeldPlace, ...]
    is_lifted: bool = False


#: Counts a held place on a row (+1), or no longer (-1).
Count = Callable[[HeldAmounts | PodInfo, int, int], None]


class Holds:
    """All holds, by owner. Only the cluster creates it; cycles and keepers use it."""

    def __init__(self, nodes: NodeTable, count: Count) -> None:
        self._nodes = nodes
        self._count = count
        self._holds: dict[str, Hold] = {}
        #: row -> owner -> places of it; read-only. Lifted holds are on no row.
        self.by_row: dict[int, dict[str, int]] = {}
        #: Owners that the book has to check; it removes them.
        self.touched: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._holds)

    def __iter__(self) -> Iterator[Hold]:
        return iter(self._holds.values())

    def all(self) -> list[Hold]:
        """A copy, for readers in other threads."""
        return list(self._holds.values())

    def of(self, owner: str) -> Hold | None:
        return self._holds.get(owner)

    def pods(self) -> Iterator[PodInfo]:
        """Future pods that are counted."""
        for hold in self._holds.values():
            for what, _ in () if hold.is_lifted else hold.places:
                if isinstance(what, PodInfo):
                    yield what

    def is_over(self, place: HeldPlace, free: I64) -> bool:
        """Whether a row does not have the amounts that a place counted there asks for; `free`
        int64[R+1]: the free amounts of the row.
        """
        need = place.need(self._nodes)
        return not has_room(free + need, need)

    # --- for the book ----------------------------------------------------------------------------

    def put(self, owner: str, places: Iterable[HeldPlace]) -> None:
        """Hold exactly these places from now on. Places on unknown nodes are refused."""
        before = self._holds.get(owner)
        hold = Hold(owner, tuple(places))
        for place in hold.places:
            if place.node_name not in self._nodes.row_of:
                raise KeyError(place.node_name)
        is_moved = before is None or before.is_lifted or before.places != hold.places
        if before is not None and not before.is_lifted and is_moved:
            self._move(before, -1)
        self._holds[owner] = hold
        if is_moved:
            self._move(hold, 1)

    def drop(self, owner: str) -> tuple[HeldPlace, ...]:
        """Release the owner's places; returns them."""
        hold = self._holds.pop(owner, None)
        self.touched.pop(owner, None)
        if hold is None:
            return ()
        if not hold.is_lifted:
            self._move(hold, -1)
        return hold.places

    def lift(self, owner: str) -> bool:
        """Do not count the owner's places until `restore`; returns whether there are any."""
        hold = self._holds.get(owner)
        if hold is None or hold.is_lifted:
            return False
        self._move(hold, -1)
        hold.is_lifted = True
        return True

    def restore(self, owner: str) -> None:
        """Count them again. Places on nodes deleted meanwhile are lost."""
        hold = self._holds.get(owner)
        if hold is None or not hold.is_lifted:
            return
        known = tuple(place for place in hold.places if place.node_name in self._nodes.row_of)
        if len(known) != len(hold.places):
            self.touched[owner] = None
        hold.places, hold.is_lifted = known, False
        self._move(hold, 1)

    # --- for the cluster -------------------------------------------------------------------------

    def node_goes(self, row: int, name: str) -> None:
        """Call it while the row still belongs to the node."""
        for owner in tuple(self.by_row.get(row, ())):
            hold = self._holds[owner]
            self._move(hold, -1)
            hold.places = tuple(place for place in hold.places if place.node_name != name)
            self._move(hold, 1)
            self.touched[owner] = None

    def row_moved(self, row: int) -> None:
        """Pods came to a row with held places, or its amounts changed: mark the owners whose places
        have no room there any more.
        """
        free = free_amounts(self._nodes, row)
        if (free >= 0).all():
            return
        for owner in self.by_row[row]:
            places = self._holds[owner].places
            on_row = (place for place in places if self._nodes.row_of.get(place.node_name) == row)
            if any(self.is_over(place, free) for place in on_row):
                self.touched[owner] = None

    # --- inside ----------------------------------------------------------------------------------

    def _move(self, hold: Hold, sign: int) -> None:
        row_of = self._nodes.row_of
        for what, node_name in hold.places:
            row = row_of[node_name]
            self._count(what, row, sign)
            owners = self.by_row.setdefault(row, {})
            remaining = owners.get(hold.owner, 0) + sign
            if remaining:
                owners[hold.owner] = remaining
            else:
                del owners[hold.owner]
                if not owners:
                    del self.by_row[row]
