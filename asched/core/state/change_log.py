"""Logs of changes in order, so that readers need not compare everything.

Readers keep a cursor and read the entries after it. The version of the logged data is the log's
`end`: equal ends mean no change. A cursor before the first entry, -2, is never valid.
"""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

#: Entries per summarized block. A guess: fewer are quickly read one by one.
BLOCK: Final = 256
#: Results cached until the next entry.
FOUND_MAX: Final = 16
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

    def news(self) -> Sequence[E] | None:
        """The entries since the last call; None if unknown, as in the first call."""
        cursor, self._cursor = self._cursor, self._log.end
        return self._log.since(cursor)


class RowLog(ChangeLog[tuple[int, int]]):
    """(row, aspects) of rows that changed; aspects are those of `nodes.Aspect`, as plain integers
    (combining enum members is slow).

    A class of pods that has waited long has missed thousands of entries, mostly about the same
    rows, and so have a thousand other classes: whole blocks of entries are summarized once for all.
    """

    __slots__ = ("_blocks", "_found", "_found_at", "last")

    def __init__(self, entries_max: int | None = None) -> None:
        super().__init__(entries_max)
        #: the newest entry: all that a reader with the cursor `end` - 1 has missed
        self.last = (-1, 0)
        #: results of `rows` since the newest entry
        self._found: dict[tuple[int, int], tuple[int, ...]] = {}
        self._found_at = -1
        #: summaries of blocks: all aspects together, and row -> aspects
        self._blocks: dict[int, tuple[int, dict[int, int]]] = {}

    def add(self, row: int, aspects: int) -> None:
        self.last = (row, aspects)
        self.append(self.last)

    def touched(self, cursor: int) -> int | None:
        """All aspects in which any row changed since the cursor; None if unknown."""
        if cursor < self._base:
            return None
        found = 0
        begin, end = self._whole_blocks(cursor)
        for number in range(begin, end):
            found |= self._block(number)[0]
        for _, aspects in self._outside(cursor, begin, end):
            found |= aspects
        return found

    def rows(self, cursor: int, aspects: int) -> tuple[int, ...] | None:
        """Rows that changed in one of the aspects since the cursor; None if unknown.

        Usually several readers have the same question before the next entry.
        """
        known, asked = self._found, (cursor, aspects)
        if self._found_at != self.end or len(known) >= FOUND_MAX:
            known.clear()
            self._found_at = self.end
        elif asked in known:
            return known[asked]
        if cursor < self._base:
            return None
        if self.end - cursor < BLOCK:  # usually
            entries = self._entries[cursor - self._base :]
            found = known[asked] = tuple({row for row, touched in entries if touched & aspects})
            return found
        begin, end = self._whole_blocks(cursor)
        entries = self._outside(cursor, begin, end)
        rows = {row for row, touched in entries if touched & aspects}
        for number in range(begin, end):
            union, by_row = self._block(number)
            if union & aspects:
                rows.update([row for row, touched in by_row.items() if touched & aspects])
        found = known[asked] = tuple(rows)
        return found

    def forget(self) -> None:
        super().forget()
        self._blocks.clear()
        self._found.clear()

    def _whole_blocks(self, cursor: int) -> tuple[int, int]:
        """The range of blocks whose entries all came after the cursor: first, and end."""
        if self.end - cursor < BLOCK:  # usually
            return 0, 0
        begin, end = -(-cursor // BLOCK), self.end // BLOCK
        return (begin, end) if begin < end else (0, 0)

    def _outside(self, cursor: int, begin: int, end: int) -> list[tuple[int, int]]:
        """The entries since the cursor outside of these blocks."""
        base, entries = self._base, self._entries
        if begin == end:
            return entries[cursor - base :]
        return entries[cursor - base : begin * BLOCK - base] + entries[end * BLOCK - base :]

    def _block(self, number: int) -> tuple[int, dict[int, int]]:
        """The summary of a block."""
        found = self._blocks.get(number)
        if found is None:
            start = number * BLOCK - self._base
            union, by_row = 0, dict[int, int]()
            for row, aspects in self._entries[start : start + BLOCK]:
                union |= aspects
                by_row[row] = by_row.get(row, 0) | aspects
            if len(self._blocks) > self._entries_max // BLOCK:  # most are of dropped entries
                self._blocks = {n: b for n, b in self._blocks.items() if n * BLOCK >= self._base}
            found = self._blocks[number] = union, by_row
        return found


class ObjectLog(ChangeLog[tuple[str, str]]):
    """(resource, key) of every object that appeared, changed, was assumed or was deleted."""

    __slots__ = ()

    def add(self, resource: str, key: str) -> None:
        self.append((resource, key))
