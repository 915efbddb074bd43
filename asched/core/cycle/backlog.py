"""Facts that arrived and are not applied yet: the rest of a long list, and all facts after it.

Bounds  LISTED_PER_TURN objects of lists a turn.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from asched.core.state.cluster import Cluster, ObservedChange
from asched.core.state.facts import Fact, Listed

#: A pod costs 33 µs, so a turn spends 8 ms at most. A list of 100,000 pods in one step would keep
#: the driver from its sockets for 3.3 s.
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
        """Whether a list is applied in part."""
        return self._listing is not None

    def extend(self, facts: Iterable[Fact]) -> None:
        self._facts.extend(facts)

    def turn(self) -> Iterator[tuple[Fact, list[ObservedChange] | None]]:
        """Yield a turn's share: (fact, None) of a fact that is not a list; (list, changes) of a
        part of a list, which is applied here. A caller may stop after any of them: the next call
        goes on there.
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
            yield fact, [change for change in steps if change is not None]
            if not share:
                return
