"""The last observed bindings, and the orders in which they may have been decided.

Bounds  FAR bindings on each side of the compared one; bindings after these count as later. A pod
        whose own binding took long may have been decided before up to the last of DELAYS bindings
        that were observed before it. LAST_MAX bindings are stored, NAMED_MAX named in each
        direction.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from asched.core.cluster.pods import PodInfo

Infos = tuple[PodInfo, ...]

#: How near a binding must be to have changed places: in two readings of the queue's order, and
#: in any order at all.
NEAR: Final = 64
SHUFFLED: Final = 8
FAR: Final = 256
#: A binding that is refused and sent again takes seconds, with thousands of bindings in between.
DELAYS: Final = (512, 1_024, 2_048)
NAMED_MAX: Final = 16
#: Enough for late comparisons; a megabyte.
LAST_MAX: Final = 8_192
#: Distances within which bindings to the same node are reordered, the nearest first.
REACHES: Final = (SHUFFLED, NEAR)
REACHES_LATE: Final = (NEAR // 2, FAR)


class ObservedBinding(NamedTuple):
    """`number`: serial number of the binding, `came`: serial number of the pod's arrival."""

    number: int
    uid: str
    came: int
    priority: int
    seen_s: float = 0.0

    def came_before(self, other: "ObservedBinding") -> bool:
        return self.came < other.came

    def was_its_turn(self, other: "ObservedBinding") -> bool:
        """Order pods of equal priority by arrival, others as their bindings were observed."""
        if self.priority == other.priority:
            return self.came < other.came
        return self.number < other.number

    def had_priority(self, other: "ObservedBinding") -> bool:
        """Order pods of higher priority first, pods of lower priority as observed."""
        if self.priority > other.priority:
            return self.number < other.number
        return self.priority == other.priority and self.came < other.came


class ReorderedBindings(NamedTuple):
    """Bindings that were decided in another order than observed, relative to a compared one:
    observed before it and decided `after` it, and observed after it and decided `before` it.
    """

    after: tuple[ObservedBinding, ...] = ()
    before: tuple[ObservedBinding, ...] = ()

    def __len__(self) -> int:
        return len(self.after) + len(self.before)

    def only(self, keeps: Callable[[ObservedBinding], bool]) -> "ReorderedBindings":
        """The bindings for which `keeps` is true."""
        return ReorderedBindings(
            tuple(filter(keeps, self.after)), tuple(filter(keeps, self.before))
        )


class Neighbours:
    """Bindings around the same time. `placed`: uid -> pod in the cluster's state; `zone_of` returns
    the zone of a node by its name.
    """

    def __init__(self, placed: Mapping[str, PodInfo], zone_of: Callable[[str], str]) -> None:
        self._placed = placed
        self._zone_of = zone_of
        self._last: deque[ObservedBinding] = deque(maxlen=LAST_MAX)
        self.count = 0
        #: which of the orders is tried, and how often each explained something
        self._tried = 0
        self._helped: Counter[int] = Counter()

    def add(self, uid: str, came: int, priority: int, seen_s: float = 0.0) -> ObservedBinding:
        self.count += 1
        binding = ObservedBinding(self.count, uid, came, priority, seen_s)
        self._last.append(binding)
        return binding

    def ahead(self, of: ObservedBinding) -> Iterator[ReorderedBindings]:
        """Yield orders in which 1, 2, 4 ... of the next bindings were decided before it, since the
        other scheduler knows its own decisions at once.
        """
        count = 1
        while count <= FAR and of.number + count // 2 < self.count:
            yield ReorderedBindings((), tuple(self._within(of.number + 1, of.number + count)))
            count *= 2

    def orders(
        self, of: ObservedBinding, node: str, ours: str = "", *, is_late: bool
    ) -> Iterator[ReorderedBindings]:
        """Yield possible orders of decisions: by arrival, by arrival among equal priorities, by
        priority; after all of the nearest bindings; before the other bindings to its node, or in
        its zone, and after those elsewhere, near it and further away; after the bindings to `ours`,
        the node that is chosen here, which may have been full by then, and otherwise as observed,
        or by priority on its own node. Orders that `helped` most often come first. `is_late`:
        among more bindings; and finally before all that were observed before it, back to the last
        of DELAYS.
        """
        reach, zone = FAR if is_late else NEAR, self._zone_of(node)

        def is_beside(other: ObservedBinding) -> bool:
            return self.node_of(other) == node

        def is_in_zone(other: ObservedBinding) -> bool:
            return self._zone_of(self.node_of(other)) == zone

        def is_as_seen(other: ObservedBinding) -> bool:
            return other.number > of.number and self.node_of(other) != ours

        def is_as_seen_elsewhere(other: ObservedBinding) -> bool:
            return of.had_priority(other) if is_beside(other) else is_as_seen(other)

        ways: list[tuple[int, Callable[[ObservedBinding], bool]]] = [
            (reach, of.came_before),
            (reach, of.was_its_turn),
            (reach, of.had_priority),
            (SHUFFLED, lambda _: False),
            *((far, is_beside) for far in REACHES),
            (NEAR, is_in_zone),
            *((reach, way) for way in (is_as_seen, is_as_seen_elsewhere) if ours),
            *((far, is_beside) for far in REACHES_LATE if is_late),
            *((far, is_in_zone) for far in REACHES_LATE if is_late),
        ]
        tried: set[ReorderedBindings] = {ReorderedBindings()}
        for at in sorted(range(len(ways)), key=lambda at: -self._helped[at]):
            moved = self._moved(of, *ways[at])
            if moved not in tried:
                tried.add(moved)
                self._tried = at
                yield moved
        self._tried = len(ways)
        for delay in DELAYS if is_late else ():
            after = tuple(self._within(of.number - delay, of.number - 1))
            if len(after) <= delay // 2:
                return
            yield ReorderedBindings(after)

    def otherwise(
        self, of: ObservedBinding, moved: ReorderedBindings, node: str
    ) -> ReorderedBindings | None:
        """Also reorder the bindings to one more node: those observed later decided before, so that
        the node may have been full; if they are already, those observed before decided after. None
        if there are neither.
        """
        near = self._within(of.number - FAR, of.number + FAR)
        on_it = {other for other in near if self.node_of(other) == node}
        later = {other for other in on_it if other.number > of.number}
        earlier = on_it - later
        if not later.issubset(moved.before):
            return ReorderedBindings(moved.after, tuple(sorted(later.union(moved.before))))
        if not earlier.issubset(moved.after):
            after = tuple(sorted(earlier.union(moved.after)))
            return ReorderedBindings(
                after, tuple([other for other in moved.before if other not in later])
            )
        return None

    def helped(self) -> None:
        """Count that the last order explained a decision."""
        self._helped[self._tried] += 1

    def _moved(
        self, of: ObservedBinding, reach: int, is_later: Callable[[ObservedBinding], bool]
    ) -> ReorderedBindings:
        """The order in which exactly the near bindings with `is_later` were decided later."""
        near = self._within(of.number - reach, of.number + reach)
        return ReorderedBindings(
            tuple([other for other in near if other.number < of.number and is_later(other)]),
            tuple([other for other in near if other.number > of.number and not is_later(other)]),
        )

    def far(
        self, of: ObservedBinding, until: ObservedBinding | None = None, *, is_late: bool
    ) -> Infos:
        """The pods whose bindings are so much later that they were decided later in any order; with
        `until`, only those of which that does not hold for `until`.
        """
        reach = FAR if is_late else NEAR
        end = self.count if until is None else until.number + reach
        return self._infos(self._within(of.number + reach + 1, end))

    def gone(self, of: ObservedBinding, moved: ReorderedBindings, *, is_late: bool) -> Infos:
        """The near pods that were not placed yet at the decision, in the given order."""
        before = {other.number for other in moved.before}
        near = self._within(of.number + 1, of.number + (FAR if is_late else NEAR))
        return self._infos((*moved.after, *(o for o in near if o.number not in before)))

    def _within(self, first: int, last: int) -> list[ObservedBinding]:
        """The stored bindings with these numbers."""
        if not self._last:
            return []
        oldest = self._last[0].number
        return list(islice(self._last, max(first - oldest, 0), max(last - oldest + 1, 0)))

    def _infos(self, bindings: Iterable[ObservedBinding]) -> Infos:
        found = [self._placed.get(other.uid) for other in bindings]
        return tuple([info for info in found if info is not None])

    def node_of(self, other: ObservedBinding) -> str:
        """The node of the binding's pod; "" if the pod is gone."""
        info = self._placed.get(other.uid)
        return "" if info is None else info.node_name

    def details(self, of: ObservedBinding, moved: ReorderedBindings) -> dict[str, Any]:
        """The nearest bindings as JSON, each with its distance in places and seconds."""
        return {
            name: [
                {
                    "pod": info.pod.key,
                    "node": info.node_name,
                    "places": abs(other.number - of.number),
                    "seconds": round(abs(other.seen_s - of.seen_s), 3),
                }
                for other in sorted(others, key=lambda near: abs(near.number - of.number))[
                    :NAMED_MAX
                ]
                if (info := self._placed.get(other.uid)) is not None
            ]
            for name, others in (("decidedAfter", moved.after), ("decidedBefore", moved.before))
            if others
        }
