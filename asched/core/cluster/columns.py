"""Columns: arrays of the same length, one entry per row, declared with type, axes and unit.

The owner of the columns assigns and frees rows. A freed row is zeroed. Readers get read-only
arrays; only `core/cluster` has the writable ones.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

#: Rows at the start; capacity doubles from there.
ROWS_MIN: Final = 64


class Column(NamedTuple):
    """One column. The row axis is the last one, so that each resource's amounts are adjacent."""

    name: str
    dtype: Any
    axes: tuple[str, ...]  # leading axes, e.g. ("R",)
    unit: str
    changed_by: str


class Columns:
    """The arrays of one table. `write[name]` is for the owner, `read(name)` for all others."""

    def __init__(self, declared: tuple[Column, ...], **sizes: int) -> None:
        self._declared = declared
        self._sizes = sizes
        self.capacity = ROWS_MIN
        self.write: dict[str, npt.NDArray[Any]] = {}
        self._shown: dict[str, npt.NDArray[Any]] = {}
        #: the whole column of a name, read-only, up to the capacity
        self.read: Callable[[str], npt.NDArray[Any]] = self._shown.__getitem__
        for column in declared:
            self._allocate(column)

    def size_of(self, axis: str) -> int:
        return self._sizes[axis]

    def reserve(self, rows: int) -> bool:
        """Ensure capacity for this many rows. True if the arrays were replaced."""
        if rows <= self.capacity:
            return False
        while self.capacity < rows:
            self.capacity *= 2
        for column in self._declared:
            self._allocate(column)
        return True

    def cut(self, rows: int) -> bool:
        """Shrink the capacity to this many rows; rows beyond are free. True if arrays changed."""
        before = self.capacity
        while self.capacity // 2 >= max(rows, ROWS_MIN):
            self.capacity //= 2
        if self.capacity == before:
            return False
        for column in self._declared:
            self._allocate(column)
        return True

    def widen(self, axis: str, size: int, spare: int = 0) -> bool:
        """Ensure capacity along a leading axis, with `spare` more if it must grow, to avoid a copy
        for each increment. True if the arrays were replaced.
        """
        if size <= self._sizes[axis]:
            return False
        self._sizes[axis] = size + spare
        for column in self._declared:
            if axis in column.axes:
                self._allocate(column)
        return True

    def clear(self, row: int) -> None:
        """Zero a freed row in every column."""
        for array in self.write.values():
            array[..., row] = 0

    def _allocate(self, column: Column) -> None:
        shape = (*(self._sizes[axis] for axis in column.axes), self.capacity)
        fresh: npt.NDArray[Any] = np.zeros(shape, dtype=column.dtype)
        old = self.write.get(column.name)
        if old is not None:
            both = tuple(slice(0, min(lengths)) for lengths in zip(old.shape, shape, strict=True))
            fresh[both] = old[both]
        self.write[column.name] = fresh
        shown = fresh.view()
        shown.flags.writeable = False
        self._shown[column.name] = shown
