"""Strings and other values become small integers once; 0 always means none."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Vocab(Generic[T]):
    """Ids in order of first appearance, from 1.

    `values[id]` is the value; `values[0]` stands for none.
    """

    __slots__ = ("_ids", "values")

    def __init__(self, none: T) -> None:
        self.values: list[T] = [none]
        self._ids: dict[T, int] = {}

    def id_of(self, value: T) -> int:
        """The id, given on first sight."""
        known = self._ids.get(value)
        if known is None:
            known = self._ids[value] = len(self.values)
            self.values.append(value)
        return known

    def find(self, value: T) -> int:
        """The id, or 0 if the value was never seen."""
        return self._ids.get(value, 0)

    def __len__(self) -> int:
        return len(self.values)
