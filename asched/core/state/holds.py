"""Held places: room that is counted as taken although no pod is there yet, each for one owner.

    put ──> counted on its rows, in every decision ──drop──> free again
              │  ^
             lift restore        while its owner's own pods are tried

A hold belongs to an object that was promised room: a place of an accepted request for capacity. It
counts in the same columns as pods placed and assumed do, so that no pod is decided for without it;
it is no pod, so that it cannot be evicted. A held place is either amounts (`HeldAmounts`) or a pod
to come (a `PodInfo`), which then counts in everything that pods count in: volumes, topology, what
its namespace uses.

The book of requests (`cycle/request_book.py`) decides what becomes of a hold. The ledger only notes
which owners have to be looked at: their node went, or others came to lie on their room (`touched`).
Nothing expires by itself.

Bounds  one hold per owner, one place per owner, node and pod or set of amounts.
"""

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import NamedTuple

import msgspec

from asched.core.state.nodes import NodeTable
from asched.core.state.pods import PodInfo


class HeldAmounts(NamedTuple):
    """Room without a pod: `accounted` as in `PodClass`, and so many `pods`."""

    accounted: Mapping[str, int]
    pods: int = 0

    @property
    def accounted_nonzero(self) -> tuple[int, int]:
        """What scorers see there: what is held, no more."""
        return self.accounted.get("cpu", 0), self.accounted.get("memory", 0)


class HeldPlace(NamedTuple):
    what: HeldAmounts | PodInfo
    node_name: str


class Hold(msgspec.Struct):
    """`places` that are held for an owner."""

    owner: str
    places: tuple[HeldPlace, ...]
    is_lifted: bool = False


#: Counts what is held on a row (+1), or no longer (-1).
Count = Callable[[HeldAmounts | PodInfo, int, int], None]


class Holds:
    """All holds, by owner. Only the cluster makes one; cycles and keepers call it."""

    def __init__(self, nodes: NodeTable, count: Count) -> None:
        self._nodes = nodes
        self._count = count
        self._holds: dict[str, Hold] = {}
        self._owners_on: dict[int, dict[str, int]] = {}  # row -> owner -> places of it
        #: Owners that the book has to look at; it takes them out.
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
        """Pods to come that are counted."""
        for hold in self._holds.values():
            for what, _ in () if hold.is_lifted else hold.places:
                if isinstance(what, PodInfo):
                    yield what

    @property
    def rows(self) -> KeysView[int]:
        """Rows on which something is counted."""
        return self._owners_on.keys()

    def owners_on(self, row: int) -> Iterable[str]:
        """Lifted holds are on no row."""
        return self._owners_on.get(row, ())

    def is_over(self, row: int) -> bool:
        """Whether more is counted on a row than it offers."""
        read = self._nodes.columns.read
        if read("pod_count")[row] > read("allowed_pods")[row]:
            return True
        return bool((read("requested")[:, row] > read("allocatable")[:, row]).any())

    # --- for the book ----------------------------------------------------------------------------

    def put(self, owner: str, places: Iterable[HeldPlace]) -> None:
        """Hold just these from now on, all of them counted. Places on unknown nodes are refused."""
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
        """Nothing is held for the owner any more; what was."""
        hold = self._holds.pop(owner, None)
        self.touched.pop(owner, None)
        if hold is None:
            return ()
        if not hold.is_lifted:
            self._move(hold, -1)
        return hold.places

    def lift(self, owner: str) -> bool:
        """Do not count the owner's places until `restore`; whether there is anything to restore."""
        hold = self._holds.get(owner)
        if hold is None or hold.is_lifted:
            return False
        self._move(hold, -1)
        hold.is_lifted = True
        return True

    def restore(self, owner: str) -> None:
        """Count them again. Nodes may have gone meanwhile: those places are lost."""
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
        """To be called while the row is still the node's."""
        for owner in tuple(self._owners_on.get(row, ())):
            hold = self._holds[owner]
            self._move(hold, -1)
            hold.places = tuple(place for place in hold.places if place.node_name != name)
            self._move(hold, 1)
            self.touched[owner] = None

    def row_moved(self, row: int) -> None:
        """Pods came to a row, or it offers something else: is there still room for all?"""
        owners = self._owners_on.get(row)
        if owners and self.is_over(row):
            self.touched.update(dict.fromkeys(owners))

    # --- inside ----------------------------------------------------------------------------------

    def _move(self, hold: Hold, sign: int) -> None:
        row_of = self._nodes.row_of
        for what, node_name in hold.places:
            row = row_of[node_name]
            self._count(what, row, sign)
            owners = self._owners_on.setdefault(row, {})
            left = owners.get(hold.owner, 0) + sign
            if left:
                owners[hold.owner] = left
            else:
                del owners[hold.owner]
                if not owners:
                    del self._owners_on[row]
