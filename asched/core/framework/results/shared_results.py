"""Results of single plugins, shared by all classes for which a plugin has the same inputs.

A pod of the benchmark `decide-different` makes 517 calls; if classes share nothing, 656.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Size of a result besides its rows: objects, prepared data, key. Some 1.7 kB in
#: `python -m asched_lab.measure.churn`; in a small cluster nearly the whole size.
RESULT_BYTES: Final = 2 << 10


class Entry:
    """A result, and the number of classes that use it."""

    __slots__ = ("key", "result", "row_bytes", "users")

    def __init__(self, key: Hashable, result: Any, row_bytes: int) -> None:
        self.key = key
        self.result = result
        self.row_bytes = row_bytes
        self.users = 1


class SharedResults:
    """Results by plugin and its inputs of a class, with the number of classes that use each.

    Unused results stay until they are dropped: the next class may have the same inputs.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, Entry] = {}
        self._unused: OrderedDict[Hashable, None] = OrderedDict()  # unused for longest comes first
        #: bytes per row of all results, and of unused ones
        self.row_bytes = self.unused_row_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, key: Hashable, row_bytes: int, make: Callable[..., T], *of: Any) -> Entry:
        """Use the result of this key for one more class; `make(*of)` creates a missing one."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = Entry(key, make(*of), row_bytes)
            self.row_bytes += row_bytes
            return entry
        if not entry.users:
            del self._unused[key]
            self.unused_row_bytes -= entry.row_bytes
        entry.users += 1
        return entry

    def leave(self, entries: Iterable[Entry]) -> None:
        """One class less uses these."""
        for entry in entries:
            entry.users -= 1
            if not entry.users:
                self._unused[entry.key] = None
                self.unused_row_bytes += entry.row_bytes

    def bytes(self, height: int) -> int:
        """The size of all results for this number of rows."""
        return self.row_bytes * height + RESULT_BYTES * len(self._entries)

    def drop_unused(self, bytes_max: float, height: int) -> None:
        """Drop unused results beyond this size for this number of rows, those unused for longest
        first.
        """
        unused = self._unused
        while self.unused_row_bytes * height + RESULT_BYTES * len(unused) > bytes_max:
            entry = self._entries.pop(unused.popitem(last=False)[0])
            self.row_bytes -= entry.row_bytes
            self.unused_row_bytes -= entry.row_bytes
