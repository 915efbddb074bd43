"""Intern strings and other values as small integers while they have holders; 0 means none.

A holder takes an id and releases it with its row. An id without holders is reused for the next new
value, the smallest first, so that a vocabulary is as long as the largest number of values at one
time; its unused end is cut off. Data by id must be checked against the births since its last use:
an id that was born again belongs to another value.
"""

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

A = TypeVar("A", bound=npt.NDArray[Any])
T = TypeVar("T", bound=Hashable)

#: Births stored at least, and per value; a reader that is further behind reads all.
BIRTHS_MIN: Final = 64
BIRTHS_PER_VALUE: Final = 2


class Vocab(Generic[T]):
    """`values[id]` is the value; `values[0]`, and those of ids without holders, mean none."""

    def __init__(self, none: T) -> None:
        self.values: list[T] = [none]
        #: of every value with holders; read-only
        self.ids: dict[T, int] = {}
        self._holders: list[int] = [0]
        self._free: list[int] = []  # a heap; may have ids beyond the end
        self._base = 0
        self._births: list[int] = []

    def take(self, value: T) -> int:
        """The id, with one more holder."""
        known = self.ids.get(value)
        if known is None:
            known = self.ids[value] = self._born(value)
        self._holders[known] += 1
        return known

    def take_all(self, values: Iterable[T | None]) -> list[int]:
        """The ids, each with one more holder; 0 for None."""
        ids, holders, taken = self.ids, self._holders, []
        for value in values:
            if value is None:
                taken.append(0)
                continue
            id_ = ids.get(value)
            if id_ is None:
                id_ = ids[value] = self._born(value)
            holders[id_] += 1
            taken.append(id_)
        return taken

    def release(self, id_: int) -> bool:
        """Remove one holder; whether that was the last one. Releasing 0 does nothing."""
        if not id_:
            return False
        self._holders[id_] -= 1
        if self._holders[id_]:
            return False
        del self.ids[self.values[id_]]
        self.values[id_] = self.values[0]
        heappush(self._free, id_)
        while len(self.values) > 1 and not self._holders[-1]:
            self.values.pop()
            self._holders.pop()
        if len(self.values) == 1:
            self._free.clear()
        return True

    def find(self, value: T) -> int:
        """The id, or 0 if the value has no holder."""
        return self.ids.get(value, 0)

    def held(self, id_: int) -> int:
        """The number of holders of an id."""
        return self._holders[id_] if id_ < len(self._holders) else 0

    def holders(self) -> dict[T, int]:
        """The number of holders of each value."""
        return {value: self._holders[id_] for value, id_ in self.ids.items()}

    @property
    def end(self) -> int:
        """Grows with every birth."""
        return self._base + len(self._births)

    def births(self, since: int) -> Iterable[int]:
        """Ids born after `end` was `since`, some of which may have been freed; all ids if that is
        too long ago.
        """
        if since < self._base:
            return range(len(self.values))
        size = len(self.values)
        return [id_ for id_ in self._births[since - self._base :] if id_ < size]

    def __len__(self) -> int:
        """One more than the largest id in use."""
        return len(self.values)

    def _born(self, value: T) -> int:
        free, size = self._free, len(self.values)
        id_ = heappop(free) if free else size
        if id_ >= size:  # this and all other free ids have been cut off
            free.clear()
            id_ = size
            self.values.append(value)
            self._holders.append(0)
        else:
            self.values[id_] = value
        self._births.append(id_)
        if len(self._births) > max(BIRTHS_MIN, BIRTHS_PER_VALUE * len(self.values)):
            cut = len(self._births) // 2
            del self._births[:cut]
            self._base += cut
        return id_


def with_room(by_id: A, size: int) -> A:
    """An array by id with at least this length: itself, or a larger one with spare entries."""
    if len(by_id) >= size:
        return by_id
    grown = np.zeros(max(size, 2 * len(by_id)), dtype=by_id.dtype)
    grown[: len(by_id)] = by_id
    return grown  # type: ignore[return-value]
