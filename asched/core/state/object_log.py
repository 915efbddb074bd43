"""Which objects changed, in order: whoever derives something from them need not compare all.

Readers keep a cursor and ask what came after it.
"""

from collections.abc import Sequence
from typing import Final

#: Entries kept before the older half is forgotten (readers then start afresh). A guess: 64 Ki
#: changes between two looks.
LOG_ENTRIES_MAX: Final = 1 << 16


class ObjectLog:
    """(resource, key) of every object that appeared, changed, was assumed or went."""

    __slots__ = ("_base", "_entries", "end")

    def __init__(self) -> None:
        self._base = 0
        self._entries: list[tuple[str, str]] = []
        #: moves with every entry; for readers alone
        self.end = 0

    def add(self, resource: str, key: str) -> None:
        self._entries.append((resource, key))
        self.end += 1
        if len(self._entries) > LOG_ENTRIES_MAX:
            cut = LOG_ENTRIES_MAX // 2
            del self._entries[:cut]
            self._base += cut

    def since(self, cursor: int) -> Sequence[tuple[str, str]] | None:
        """What came after the cursor; None if that is no longer known."""
        return self._entries[cursor - self._base :] if cursor >= self._base else None
