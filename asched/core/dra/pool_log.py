"""Which pools changed, in order, so that whoever keeps answers looks again at those alone."""

from collections.abc import Sequence
from typing import Final

from asched.core.dra.devices import PoolId

#: Entries of the log kept before the older half is forgotten. A guess: 64 Ki allocations between
#: two looks at the same kind of claim.
LOG_ENTRIES_MAX: Final = 1 << 16


class PoolLog:
    """Pools in the order in which they changed. Readers keep a cursor and ask what came after."""

    __slots__ = ("_base", "_entries")

    def __init__(self) -> None:
        self._base = 0
        self._entries: list[PoolId] = []

    @property
    def end(self) -> int:
        return self._base + len(self._entries)

    def add(self, pool_id: PoolId) -> None:
        self._entries.append(pool_id)
        if len(self._entries) > LOG_ENTRIES_MAX:
            cut = LOG_ENTRIES_MAX // 2
            del self._entries[:cut]
            self._base += cut

    def since(self, cursor: int) -> Sequence[PoolId] | None:
        """What came after the cursor; None if that is no longer known."""
        return self._entries[cursor - self._base :] if cursor >= self._base else None
