"""What changed, in order: whoever derives something from it need not compare all.

Readers keep a cursor and ask what came after it. The version of what is logged is the log's `end`:
equal ends mean that nothing changed. A cursor before the first entry, -2, is never known.
"""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

E = TypeVar("E")

#: Entries kept before the older half is forgotten (readers then start afresh). A guess: 64 Ki
#: decisions between two looks of one reader.
LOG_ENTRIES_MAX: Final = 1 << 16


class ChangeLog(Generic[E]):
    """Entries of one kind, the oldest of them forgotten."""

    __slots__ = ("_base", "_entries", "_entries_max", "end")

    def __init__(self, entries_max: int | None = None) -> None:
        self._entries_max = entries_max or LOG_ENTRIES_MAX
        self._base = 0
        self._entries: list[E] = []
        #: moves with every entry; for readers alone
        self.end = 0

    def append(self, entry: E) -> None:
        self._entries.append(entry)
        self.end += 1
        if len(self._entries) > self._entries_max:
            cut = self._entries_max // 2
            del self._entries[:cut]
            self._base += cut

    def forget(self) -> None:
        """Nothing is known any more of what changed: every reader starts afresh."""
        self._base = self.end = self.end + 2  # not by one, as for an entry
        self._entries.clear()

    def since(self, cursor: int) -> Sequence[E] | None:
        """What came after the cursor; None if that is no longer known."""
        return self._entries[cursor - self._base :] if cursor >= self._base else None


class RowLog(ChangeLog[tuple[int, int]]):
    """(row, aspects) of rows that changed; aspects are those of `nodes.Aspect`, as plain integers
    (members of an enum are slow to combine).
    """

    __slots__ = ("_asked", "_found", "last")

    def __init__(self, entries_max: int | None = None) -> None:
        super().__init__(entries_max)
        #: the newest entry: all that a reader missed whose cursor is `end` - 1
        self.last = (-1, 0)
        #: what `rows` was asked last, and found
        self._asked = (-1, -1, -1)
        self._found: tuple[int, ...] = ()

    def add(self, row: int, aspects: int) -> None:
        self.last = (row, aspects)
        self.append(self.last)

    def touched(self, cursor: int) -> int | None:
        """All aspects in which some row changed since the cursor; None if no longer known."""
        if cursor < self._base:
            return None
        found = 0
        for _, aspects in self._entries[cursor - self._base :]:
            found |= aspects
        return found

    def rows(self, cursor: int, aspects: int) -> tuple[int, ...] | None:
        """Each row that changed in one of the aspects since the cursor; None if no longer known.

        Mostly, several readers ask for the same one after the other.
        """
        asked = (cursor, aspects, self.end)
        if asked == self._asked:
            return self._found
        if cursor < self._base:
            return None
        entries = self._entries[cursor - self._base :]
        found = tuple({row for row, touched in entries if touched & aspects})
        self._asked, self._found = asked, found
        return found


class ObjectLog(ChangeLog[tuple[str, str]]):
    """(resource, key) of every object that appeared, changed, was assumed or went."""

    __slots__ = ()

    def add(self, resource: str, key: str) -> None:
        self.append((resource, key))
