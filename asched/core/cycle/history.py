"""The history: the steps of each pod's attempts, in bounded memory. `explain` and the logs read it.

An entry is a time, a `DecisionStep` and its details; texts are made on reading. Entries are stored
in a ring that the garbage collector does not traverse, each linked to the previous entry of the
same pod. A successful binding, which follows most choices of a node, is stored in the entry of the
choice and read as an entry of its own.

Bounds  ENTRIES_MAX entries and BYTES_MAX bytes of content (the oldest go), READ_MAX entries of
        one pod; a search for the newest of a kind goes back NEWEST_WITHIN entries; LINKED_MAX
        entries are linked at a time.
"""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.model.footprint import footprint

#: More than the last 100,000 attempts: most leave one entry. 40 bytes each, in addition to the
#: pod's name and the details.
ENTRIES_MAX: Final = 1 << 18
#: A guess at the memory an operator accepts for the history; enough for 100,000 attempts of pods
#: that ten plugins score.
BYTES_MAX: Final = 96 << 20
#: Size of an entry and of a pod's name, without their contents.
ENTRY_BYTES, KEY_BYTES = 100, 60
#: More entries, as of a pod that is tried for days, would make reading slow.
READ_MAX: Final = 1_000
#: An attempt leaves four entries at most.
NEWEST_WITHIN: Final = 8
#: Some 0.3 ms.
LINKED_MAX: Final = 1_024


class DecisionStep(Enum):
    """The kind of an entry."""

    NODE = "node chosen"
    REJECTED = "no node"
    ERROR = "error"
    NOMINATED = "nominated"
    WAITING = "waiting on permit"
    UNKNOWN = "binding's outcome unknown"
    BOUND = "bound"
    FAILED = "binding failed"
    REFUSED = "refused"


class HistoryEntry(NamedTuple):
    at_s: float
    attempt: int
    step: DecisionStep
    details: Any


class StoredEntry(msgspec.Struct, gc=False):
    """A stored entry. `size_bytes` includes its contents. `key` is that of its pod, and empty once
    the entry was dropped.
    """

    key: str
    at_s: float
    attempt: int
    size_bytes: int

    def entries(self) -> tuple[HistoryEntry, ...]:
        """The entries that it is read as, the newest first."""
        return ()


class StepRecord(StoredEntry, gc=False):
    step: DecisionStep
    details: Any = None

    def entries(self) -> tuple[HistoryEntry, ...]:
        return (HistoryEntry(self.at_s, self.attempt, self.step, self.details),)


_GONE: Final = StoredEntry("", 0.0, 0, 0)


class Histories:
    """All histories by `namespace/name`."""

    def __init__(self, entries_max: int = 0, bytes_max: int = 0) -> None:
        """0: ENTRIES_MAX and BYTES_MAX."""
        self._entries_max = entries_max or ENTRIES_MAX
        self._bytes_max = bytes_max or BYTES_MAX
        #: numbers of the next entry, of the oldest stored entry, and of the first entry that is not
        #: linked; a slot is the number modulo the bound
        self._end = self._start = self._unlinked = 0
        self._bytes = 0
        self._entries: list[StoredEntry] = []
        self._last: dict[str, int] = {}
        self._before: list[int] = []

    def tell(
        self,
        key: str,
        at_s: float,
        attempt: int,
        step: DecisionStep,
        details: Any = None,
        size_bytes: int = 0,
    ) -> StepRecord:
        """Add an entry. `size_bytes` as in `StoredEntry`; 0: computed from the details."""
        size_bytes = size_bytes or ENTRY_BYTES + footprint(details)
        entry = StepRecord(key, at_s, attempt, size_bytes, step, details)
        self.add(entry)
        return entry

    def add(self, entry: StoredEntry) -> None:
        entry.size_bytes += KEY_BYTES + len(entry.key)
        number = self._end
        if number < self._entries_max:
            self._entries.append(entry)
        else:
            if number - self._start == self._entries_max:
                self._drop_oldest()
            self._entries[number % self._entries_max] = entry
        self._end = number + 1
        self._bytes += entry.size_bytes
        while self._bytes > self._bytes_max and self._start < number:
            self._drop_oldest()

    def link(self) -> bool:
        """Link LINKED_MAX more entries to their predecessors; whether there are more. A reader
        links all remaining entries first.
        """
        entries, before, last, bound = self._entries, self._before, self._last, self._entries_max
        before += [-1] * (len(entries) - len(before))
        begin = max(self._unlinked, self._start)
        end = min(begin + LINKED_MAX, self._end)
        for number in range(begin, end):
            slot = number % bound
            key = entries[slot].key
            before[slot] = last.get(key, -1)
            last[key] = number
        self._unlinked = end
        return end < self._end

    def _link(self) -> None:
        while self.link():
            pass

    def _drop_oldest(self) -> None:
        slot = self._start % self._entries_max
        entry = self._entries[slot]
        if self._last.get(entry.key) == self._start:
            del self._last[entry.key]
        self._entries[slot] = _GONE
        self._bytes -= entry.size_bytes
        entry.key = ""
        self._start += 1

    def of(self, key: str) -> tuple[HistoryEntry, ...]:
        """The entries of a pod, oldest first, READ_MAX at most; empty if nothing is remembered."""
        self._link()
        entries: list[HistoryEntry] = []
        number = self._last.get(key, -1)
        while number >= self._start and len(entries) < READ_MAX:
            entries += self._entries[number % self._entries_max].entries()
            number = self._before[number % self._entries_max]
        return tuple(reversed(entries[:READ_MAX]))

    def newest(self, key: str, steps: Collection[DecisionStep]) -> HistoryEntry | None:
        """The newest entry of one of these kinds among a pod's last NEWEST_WITHIN; None if there is
        none.
        """
        self._link()
        number = self._last.get(key, -1)
        for _ in range(NEWEST_WITHIN):
            if number < self._start:
                return None
            slot = number % self._entries_max
            for entry in self._entries[slot].entries():
                if entry.step in steps:
                    return entry
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, HistoryEntry]]:
        """Yield (pod, entry) of the last `count` stored entries, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            kept = self._entries[number % self._entries_max]
            for entry in kept.entries():
                yield kept.key, entry
