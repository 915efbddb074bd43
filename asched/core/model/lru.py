"""A dictionary of limited size."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Drops the least recently used entries while their sizes exceed `size_max`; the newest entry
    stays, whatever its size.
    """

    __slots__ = ("_entries", "size", "size_max")

    def __init__(self, size_max: float) -> None:
        self.size_max = size_max
        #: the sum of all sizes; read-only
        self.size = 0.0
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._entries))  # `get` may be called meanwhile, which reorders them

    def get(self, key: K) -> V | None:
        """The value of a key, which becomes the most recently used; None without one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: float = 1) -> None:
        """Set the value of a key, which becomes the most recently used."""
        self.pop(key)
        self._entries[key] = value, size
        self.size += size
        while self.size > self.size_max and len(self._entries) > 1:
            self.size -= self._entries.popitem(last=False)[1][1]

    def pop(self, key: K) -> V | None:
        """Remove a key; returns its value."""
        value, size = self._entries.pop(key, (None, 0))
        self.size -= size
        return value
