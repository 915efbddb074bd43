"""Logs of changes in order, so that readers need not compare everything.

Readers keep a cursor and read the entries after it. The version of the logged data is the log's
`end`: equal ends mean no change. A cursor before the first entry, -2, is never valid.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

E = TypeVar("E")
#: Entries stored before the older half is dropped (readers then start again). A guess: 64 Ki
#: decisions between two reads of one reader.
LOG_ENTRIES_MAX: Final = 1 << 16


class ChangeLog(Generic[E]):
    """Entries of one kind; the oldest are dropped."""

    __slots__ = ("_base", "_entries", "_entries_max", "end")

    def __init__(self, entries_max: int | None = None) -> None:
        self._entries_max = entries_max or LOG_ENTRIES_MAX
        self._base = 0
        self._entries: list[E] = []
        #: grows with every entry; read-only
        self.end = 0

    def append(self, entry: E) -> None:
        self._entries.append(entry)
        self.end += 1
        if len(self._entries) > self._entries_max:
            cut = self._entries_max // 2
            del self._entries[:cut]
            self._base += cut

    def forget(self) -> None:
        """Make all cursors invalid: every reader starts again."""
        self._base = self.end = self.end + 2  # not by one, as for an entry
        self._entries.clear()

    def since(self, cursor: int) -> Sequence[E] | None:
        """The entries after the cursor; None if these have been dropped."""
        return self._entries[cursor - self._base :] if cursor >= self._base else None


class Reader(Generic[E]):
    """A reader with its own cursor."""

    __slots__ = ("_cursor", "_log")

    def __init__(self, log: ChangeLog[E]) -> None:
        self._log = log
        self._cursor = -1

    def unread(self) -> Sequence[E] | None:
        """The entries since the last call; None if unknown, as in the first call."""
        cursor, self._cursor = self._cursor, self._log.end
        return self._log.since(cursor)


class RowLog:
    """(row, aspects) of rows that changed; aspects are those of `nodes.Aspect`, as plain integers
    (combining enum members is slow).

    Of equal entries only the newest is kept: a class of pods that has waited long has missed
    thousands of changes, mostly of the same rows, and most readers read other aspects.
    """

    __slots__ = ("_base", "_ends", "_rows_max", "end", "last")

    def __init__(self, rows_max: int | None = None) -> None:
        self._rows_max = rows_max or LOG_ENTRIES_MAX
        self._base = 0
        #: aspects -> row -> `end` after its newest entry, the newest last
        self._ends: dict[int, dict[int, int]] = defaultdict(dict)
        #: grows with every entry; read-only
        self.end = 0
        #: the newest entry: all that a reader with the cursor `end` - 1 has missed
        self.last = (-1, 0)

    def add(self, row: int, aspects: int) -> None:
        self.last = (row, aspects)
        self.end = end = self.end + 1
        ends = self._ends[aspects]
        if row in ends:  # a new entry comes last
            del ends[row]
        ends[row] = end
        if len(ends) > self._rows_max:
            self._drop_oldest(ends)

    def add_all(self, rows: Sequence[int], aspects: int) -> None:
        """As `add` for each of the rows, without a call for each."""
        if not rows:
            return
        ends, end = self._ends[aspects], self.end
        for row in rows:
            end += 1
            if row in ends:
                del ends[row]
            ends[row] = end
        self.last, self.end = (rows[-1], aspects), end
        if len(ends) > self._rows_max:
            self._drop_oldest(ends)

    def _drop_oldest(self, ends: dict[int, int]) -> None:
        oldest = list(islice(ends, len(ends) - self._rows_max // 2))
        self._base = max(self._base, ends[oldest[-1]])
        for row in oldest:
            del ends[row]

    def forget(self) -> None:
        """Make all cursors invalid: every reader starts again."""
        self._base = self.end = self.end + 2  # not by one, as for an entry
        self._ends.clear()

    def rows(self, cursor: int, aspects: int) -> tuple[int, ...] | None:
        """Rows that changed in one of the aspects since the cursor; None if unknown. Calls nothing:
        each pod takes a dozen.
        """
        if cursor < self._base:
            return None
        found: dict[int, None] = {}
        for touched in self._ends:
            if touched & aspects:
                ends = self._ends[touched]
                for row in reversed(ends):
                    if ends[row] <= cursor:
                        break
                    found[row] = None
        return tuple(found)

    def touched(self, cursor: int) -> int | None:
        """All aspects in which any row changed since the cursor; None if unknown."""
        if cursor < self._base:
            return None
        found = 0
        for aspects, ends in self._ends.items():
            if ends[next(reversed(ends))] > cursor:
                found |= aspects
        return found


class ObjectLog(ChangeLog[tuple[str, str]]):
    """(resource, key) of every object that appeared, changed, was assumed or was deleted."""

    __slots__ = ()

    def add(self, resource: str, key: str) -> None:
        self.append((resource, key))
