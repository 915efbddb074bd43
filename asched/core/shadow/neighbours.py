"""The last bindings that were seen, and the orders in which they may have been decided.

Bounds  FAR on each side of the one that is asked about; bindings after these count as later.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from asched.core.state.pods import PodInfo

#: How near a binding must be to have changed places: in two readings of the queue's order, and
#: in any order at all.
NEAR: Final = 64
SHUFFLED: Final = 8
FAR: Final = 256


class Binding(NamedTuple):
    """`number` is its place among all bindings, `came` that of its pod among all pods."""

    number: int
    uid: str
    came: int
    priority: int

    def came_before(self, other: "Binding") -> bool:
        return self.came < other.came

    def was_its_turn(self, other: "Binding") -> bool:
        """Equals in the queue's order, others as their bindings were seen."""
        if self.priority == other.priority:
            return self.came < other.came
        return self.number < other.number

    def had_priority(self, other: "Binding") -> bool:
        """More important ones were first, wherever they stood; less important ones as seen."""
        if self.priority > other.priority:
            return self.number < other.number
        return self.priority == other.priority and self.came < other.came


class Neighbours:
    """Whoever was bound around the same time. `placed`: uid -> pod, as the cluster knows it."""

    def __init__(self, placed: Mapping[str, PodInfo]) -> None:
        self._placed = placed
        self._last: deque[Binding] = deque(maxlen=2 * FAR + 1)
        self.count = 0

    def add(self, uid: str, came: int, priority: int) -> Binding:
        """A binding is seen."""
        self.count += 1
        binding = Binding(self.count, uid, came, priority)
        self._last.append(binding)
        return binding

    def later(self, of: Binding, node: str, *, is_late: bool) -> Iterator[tuple[PodInfo, ...]]:
        """Who was decided later, in one possible order after the other: the queue's by arrival, by
        arrival among equals, by priority; before the nearest on its node; after all of the nearest.
        `is_late`: the queue's order among all that are remembered.
        """
        reach = FAR if is_late else NEAR
        tried: set[tuple[str, ...]] = set()
        for gone in (
            self._later(of, reach, of.came_before),
            self._later(of, reach, of.was_its_turn),
            self._later(of, reach, of.had_priority),
            self._later(of, SHUFFLED, lambda other: self._node(other) == node),
            self._later(of, SHUFFLED, lambda _: False),
        ):
            key = tuple([info.pod.uid for info in gone])
            if key not in tried:
                tried.add(key)
                yield gone

    def _later(
        self, of: Binding, reach: int, is_later: Callable[[Binding], bool]
    ) -> tuple[PodInfo, ...]:
        """Those of the nearest of which it holds, and all that were bound after these."""
        found = []
        for other in self._last:
            ahead = other.number - of.number
            if ahead > reach or (ahead and -ahead <= reach and is_later(other)):
                info = self._placed.get(other.uid)
                if info is not None:
                    found.append(info)
        return tuple(found)

    def _node(self, other: Binding) -> str:
        info = self._placed.get(other.uid)
        return "" if info is None else info.node_name
