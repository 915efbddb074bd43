"""Strings and other values become small integers while somebody holds them; 0 always means none.

A holder takes an id and gives it back with its row. An id that nobody holds any more is given to
the next new value, the smallest first, so that a vocabulary is as long as it has ever held values
at one time, however many have come and gone; its free end is cut off. Whoever keeps something by
id asks for the births since it last looked: an id that was born again means another value.
"""

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=Hashable)
A = TypeVar("A", bound=npt.NDArray[Any])

#: Births remembered at least, and for each value that lives; who looks more rarely reads them all.
BIRTHS_MIN: Final = 64
BIRTHS_PER_VALUE: Final = 2


class Vocab(Generic[T]):
    """`values[id]` is the value; `values[0]`, and that of an id nobody holds, stands for none."""

    __slots__ = ("_base", "_births", "_free", "_holders", "ids", "values")

    def __init__(self, none: T) -> None:
        self.values: list[T] = [none]
        #: of every value that somebody holds; only to be read
        self.ids: dict[T, int] = {}
        self._holders: list[int] = [0]
        self._free: list[int] = []  # a heap; ids beyond the end have been cut off
        self._base = 0
        self._births: list[int] = []

    def take(self, value: T) -> int:
        """The id, held once more than before."""
        known = self.ids.get(value)
        if known is None:
            known = self.ids[value] = self._born(value)
        self._holders[known] += 1
        return known

    def take_all(self, values: Iterable[T | None]) -> list[int]:
        """The ids, each held once more; 0 for None."""
        ids, holders, found = self.ids, self._holders, []
        for value in values:
            if value is None:
                found.append(0)
                continue
            id_ = ids.get(value)
            if id_ is None:
                id_ = ids[value] = self._born(value)
            holders[id_] += 1
            found.append(id_)
        return found

    def release(self, id_: int) -> bool:
        """Held once less. Whether that was the last; giving back 0 does nothing."""
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
        """The id, or 0 if nobody holds the value."""
        return self.ids.get(value, 0)

    def held(self, id_: int) -> int:
        """How often an id is held; one that was cut off is not."""
        return self._holders[id_] if id_ < len(self._holders) else 0

    def holders(self) -> dict[T, int]:
        """How often each value is held."""
        return {value: self._holders[id_] for value, id_ in self.ids.items()}

    @property
    def end(self) -> int:
        """Moves with every birth."""
        return self._base + len(self._births)

    def births(self, since: int) -> Iterable[int]:
        """Ids born after `end` was `since`, some of which may have died; all if that is too long
        ago.
        """
        if since < self._base:
            return range(len(self.values))
        size = len(self.values)
        return [id_ for id_ in self._births[since - self._base :] if id_ < size]

    def __len__(self) -> int:
        """One more than the largest id that is held."""
        return len(self.values)

    def _born(self, value: T) -> int:
        free, size = self._free, len(self.values)
        id_ = heappop(free) if free else size
        if id_ >= size:  # this and all others that are free have been cut off
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
    """An array by id with at least so many entries: itself, or one with room to spare."""
    if len(by_id) >= size:
        return by_id
    grown = np.zeros(max(size, 2 * len(by_id)), dtype=by_id.dtype)
    grown[: len(by_id)] = by_id
    return grown  # type: ignore[return-value]
