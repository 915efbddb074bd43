"""What arrived and is not taken in yet: the rest of a long list, and whatever came after it.

Bounds  LISTED_PER_TURN objects of lists a turn.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from asched.core.state.cluster import Cluster, ObservedChange
from asched.core.state.facts import Fact, Listed

#: A pod costs 33 µs: together 8 ms, where 100,000 of them in one step keep the driver from its
#: sockets for 3.3 s.
LISTED_PER_TURN: Final = 256


class Backlog:
    """Facts in the order of their arrival; lists are applied to `cluster` as they are drawn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._facts: deque[Fact] = deque()
        self._listing: Iterator[ObservedChange | None] | None = None

    def __bool__(self) -> bool:
        return bool(self._facts)

    @property
    def is_amid_list(self) -> bool:
        """Whether half a list is known."""
        return self._listing is not None

    def extend(self, facts: Iterable[Fact]) -> None:
        self._facts.extend(facts)

    def turn(self) -> Iterator[tuple[Fact, list[ObservedChange] | None]]:
        """A turn's share: each fact that is not a list to be applied, with None; of lists what
        applying a part of them changed. Whoever stops after one of them misses none.
        """
        waiting, share = self._facts, LISTED_PER_TURN
        while waiting:
            fact = waiting[0]
            if not isinstance(fact, Listed):
                waiting.popleft()
                yield fact, None
                continue
            listing = self._listing = self._listing or self._cluster.relist(fact)
            steps = list(islice(listing, share))
            share -= len(steps)
            if share:
                self._listing = None
                waiting.popleft()
            yield fact, [sight for sight in steps if sight is not None]
            if not share:
                return
