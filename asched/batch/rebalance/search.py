"""Search for the moves with the lowest cost after which a unit fits.

    place a pod of the unit ─┬─ on a node where it fits
                             └─ where it would fit without some pods that may move: each of these is
                                then placed elsewhere in the same way, and may displace others

The number of moves is raised from the least that amounts allow (iterative deepening), so that the
first plan has the fewest moves; of some plans with as many, the one with the lowest cost is taken.
In large clusters a number of moves gets a third of the remaining steps, and what did not suffice
is followed by larger numbers, so that a plan with more moves may be found first.
All filters of the profiles decide, on a supposition of the whole plan: other pods of the plan count
with their new nodes.

A disruption budget must allow the first of its pods to be moved now; further ones wait until it has
recovered, which costs little, but more than a plan without.

A plan is accepted only if its moves have an order in which each new place is free before its pod
leaves, with all held places counted, and also without those whose pods are not there yet; and if
each pod fits on its place in the end as well. No rule is broken on the way then, however late a
successor comes.

Bounds  SEARCH_STEPS. In a cluster of more than SMALL pods that may move, or SMALL_ROWS nodes, and
        for a unit of more than CHOOSING_MAX pods, only FITS_MAX of the nodes where a pod fits are
        considered, and the pods that leave for one pod are of one node. For each number of moves
        ROWS_MAX nodes are considered to be freed for a pod, then WIDER times as many, and so on, as
        long as there are steps. What was not found may exist: for example, a pod of the unit that
        must be near a pod which moves itself is not placed.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from asched.batch.groups.board import accepting
from asched.batch.rebalance.board import Board, ClusterMovedError, SpentError, clone_of, is_by_node
from asched.batch.rebalance.demand import Demand, MovableAmounts
from asched.batch.rebalance.movable import Movable
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect
from asched.core.framework.order_free import is_order_free, takes_of
from asched.core.framework.placements import Mask
from asched.core.framework.runner import Runner
from asched.core.model.timestamp import seconds

#: About three seconds of work.
SEARCH_STEPS: Final = 300_000
AT_THE_LIMIT: Final = f"the search ended at its limit of {SEARCH_STEPS:,} steps"
#: ... of which further plans with as many moves may cost this much.
FURTHER_STEPS: Final = 20_000
PLANS_MAX: Final = 8
SMALL: Final = 24
SMALL_ROWS: Final = 16
ROWS_MAX: Final = 12
WIDER: Final = 10
#: Nodes from which pods leave at the same time, to find out which one of them helps.
ROWS_AT_ONCE: Final = 64
FITS_MAX: Final = 4
#: Pods of a unit of which each may choose among nodes where it fits.
CHOOSING_MAX: Final = 4

Steps = Generator[Effect, Answer, bool]


class Move(NamedTuple):
    """A placed pod that leaves its node, and the place that is held for its successor."""

    pod: PodInfo
    successor: PodInfo
    node: str


class MovePlan(msgspec.Struct, frozen=True):
    """`moves` in the order in which they are carried out; `places`: pods of the unit, and nodes."""

    moves: tuple[Move, ...]
    places: tuple[tuple[PodInfo, str], ...]


class NoPlan(NamedTuple):
    """`is_moved`: the cluster changed during the search."""

    why: str
    is_moved: bool = False


class Seeker(msgspec.Struct, eq=False):
    """A pod that needs a place. `info` is hypothetical; `leaves`: the pod that it replaces, None
    for a pod of the unit, which is `number` among them.
    """

    info: PodInfo
    runner: Runner
    number: int = -1
    leaves: PodInfo | None = None
    home: str = ""
    node: str = ""


class PlanSearch:
    """`unit`: the pods that need places, all of which must get one, `within` bool[N]."""

    def __init__(
        self,
        context: SchedulerContext,
        unit: Sequence[PodInfo],
        rules: Movable,
        movable: Sequence[PodInfo],
        moves_max: int,
        within: Mask | None = None,
        steps_max: int = SEARCH_STEPS,
    ) -> None:
        self._context, self._cluster, self._rules = context, context.cluster, rules
        self._moves_max, self._within = moves_max, within
        self._board, self._steps_max = Board(context, steps_max), steps_max
        self._movable = list(movable)
        seekers = [self._seeker(info) for info in unit]
        self._unit = seekers
        is_small = len(movable) <= SMALL and context.cluster.nodes.count <= SMALL_ROWS
        self._is_small = is_small and len(unit) <= CHOOSING_MAX
        self._moved: list[Seeker] = []
        self._best: tuple[tuple[float, ...], MovePlan] | None = None
        self._plans = self._level = self._rows_max = 0
        self._is_narrow = False
        self._stop_at = float(steps_max)

    @property
    def spent(self) -> float:
        """The budget steps that the search has taken."""
        return self._board.spent

    def find(self) -> Generator[Effect, Answer, MovePlan | NoPlan]:
        """Raises PointError."""
        try:
            return (yield from self._find())
        except ClusterMovedError:
            return NoPlan("nodes or pods of it changed during the search", is_moved=True)
        except SpentError:
            if self._best is not None:
                return self._best[1]
            return NoPlan(AT_THE_LIMIT)
        finally:
            self._board.clear()

    def _find(self) -> Generator[Effect, Answer, MovePlan | NoPlan]:
        yield from self._prepare()
        if short := self._amounts.short_of(self._demands.values()):
            return NoPlan(f"all free room together does not suffice (Insufficient {short})")
        was_cut = False
        fewest = max(demand.least(demand.count) for demand in self._demands.values())
        moves, more = fewest, 1
        while moves <= self._moves_max:
            self._level = moves
            if not self._is_small:
                self._stop_at = self._board.spent + (self._steps_max - self._board.spent) / 3
            yield from self._place_unit(moves)
            if self._best is not None:
                return self._best[1]
            if self._board.spent > self._stop_at:  # more moves may be found more easily
                was_cut, more = True, 2 * more
            moves += min(more, max(self._moves_max - moves, 1))
        if not self._movable:
            refusals = self._rules.refusals.most_common(1)
            why = "".join(f" ({count} pods: {why})" for why, count in refusals)
            return NoPlan(f"no pod may be moved{why}")
        if was_cut:
            return NoPlan(AT_THE_LIMIT)
        most = f"{self._moves_max} moves" if self._moves_max > 1 else "1 move"
        return NoPlan(f"no plan with up to {most} was found")

    def _prepare(self) -> Generator[Effect, Answer, None]:
        """Read what the pods of the unit need, class by class, the largest first."""
        self._amounts = MovableAmounts(self._cluster, self._movable, self._moves_max)
        self._of_row = self._by_row()
        self._demands: dict[int, Demand] = {}
        counts = Counter(seeker.info.cls.number for seeker in self._unit)
        for seeker in self._unit:
            number = seeker.info.cls.number
            if number not in self._demands:
                yield from self._board.rows(seeker.runner, seeker.info)  # prepares its class
                self._demands[number] = self._demand(seeker, counts[number])
        size = {number: demand.size for number, demand in self._demands.items()}
        self._unit.sort(key=lambda seeker: (-size[seeker.info.cls.number], seeker.info.cls.number))
        for number, seeker in enumerate(self._unit):
            seeker.number = number

    def _demand(self, seeker: Seeker, count: int) -> Demand:
        rows: Mask = self._cluster.nodes.columns.read("live")[: self._cluster.nodes.height].copy()
        if self._within is not None and seeker.leaves is None:
            rows &= self._within
        state = seeker.runner.cache.state_of(seeker.info)
        filters = [verdict.plugin for verdict in state.active_plugins.filters]
        needs = takes_of(filters, seeker.info)
        is_free = all(is_order_free(plugin, seeker.info) for plugin in filters)
        return Demand(
            self._amounts, needs, accepting(state, seeker.info, rows), count, is_order_free=is_free
        )

    # --- places ----------------------------------------------------------------------------------

    def _place_unit(self, moves: int) -> Steps:
        """Find places for the unit with so many moves, on more nodes while there are steps."""
        self._rows_max, self._is_narrow = ROWS_MAX, True
        while self._is_narrow and self._best is None and self._board.spent <= self._stop_at:
            self._is_narrow = False
            yield from self._place(list(reversed(self._unit)), moves)
            self._rows_max *= WIDER
        return self._best is not None

    def _place(self, seekers: list[Seeker], moves: int) -> Steps:
        """Find places for all, the last first, with so many more moves. True ends the search."""
        if not seekers:
            return (yield from self._accept())
        if self._board.spent > self._stop_at:
            return True
        seeker = seekers.pop()
        try:
            if self._cannot_be_placed(seeker):
                return False
            fits = yield from self._fits(seeker)
            for row in self._in_order(seeker, fits):
                if (yield from self._place_on(seeker, row, seekers, moves)):
                    return True
            if moves:
                return (yield from self._make_room(seeker, seekers, moves, fits, -1, []))
            return False
        finally:
            seekers.append(seeker)

    def _place_on(self, seeker: Seeker, row: int, seekers: list[Seeker], moves: int) -> Steps:
        node = self._cluster.nodes.node_at[row]
        assert node is not None
        seeker.node = node.name
        self._board.come(seeker.info, node.name)
        ends = yield from self._place(seekers, moves)
        self._board.back()
        seeker.node = ""
        return ends

    def _make_room(
        self,
        seeker: Seeker,
        seekers: list[Seeker],
        moves: int,
        before: Mask,
        last: int,
        leaving: list[Seeker],
    ) -> Steps:
        """Place a pod where it fits once further pods have left: these are after `last` in the
        order of pods that may move, `leaving` left before, and it fitted on the rows `before`. In a
        large cluster, pods come first that are enough and have another place.
        """
        known = dict[int, Mask]()
        ways = [False]
        if not self._is_small:
            spare = moves - self._least_for(seekers)
            for mover in leaving if spare == 1 else ():
                if not (yield from self._has_place(mover, known)):
                    return False
            is_first = len(self._unit) == 1 and seeker.leaves is None and not leaving
            if spare <= 1:
                ways = [True] * spare
            elif not is_first:  # or a plan of one move was searched before
                ways = [True, False]
        for is_direct in ways:
            for some in self._candidates(seeker, moves, last, leaving):
                pods = (yield from self._promising(seeker, some, known)) if is_direct else some
                for index, info in pods:
                    if self._board.spent > self._stop_at:
                        return True
                    if not self._may_leave(info):
                        continue
                    leaving.append(self._mover(info))
                    ends = yield from self._without(
                        leaving, seeker, seekers, moves - 1, before, None if is_direct else index
                    )
                    leaving.pop()
                    if ends:
                        return True
        return False

    def _without(
        self,
        leaving: list[Seeker],
        seeker: Seeker,
        seekers: list[Seeker],
        moves: int,
        before: Mask,
        last: int | None,
    ) -> Steps:
        """Place a pod once the last of `leaving` has left as well, with so many moves after that;
        further ones, after `last`, may leave for it, unless that is None.
        """
        mover = leaving[-1]
        assert mover.leaves is not None
        self._board.leave(mover.leaves)
        self._moved.append(mover)
        fits = yield from self._fits(seeker)
        ends = False
        for row in self._in_order(seeker, fits & ~before):
            ends = yield from self._place_on(seeker, row, [*seekers, *leaving], moves)
            if ends:
                break
        if not ends and moves and last is not None:
            room = self._make_room(seeker, seekers, moves, fits | before, last, leaving)
            ends = yield from room
        self._moved.pop()
        self._board.back()
        return ends

    def _fits(self, seeker: Seeker) -> Generator[Effect, Answer, Mask]:
        within = self._within if seeker.leaves is None else None
        rows = yield from self._board.rows(seeker.runner, seeker.info, within)
        if seeker.home:
            rows[self._cluster.nodes.row_of[seeker.home]] = False
        return rows

    def _in_order(self, seeker: Seeker, fits: Mask) -> list[int]:
        """The rows to try for a pod, in order."""
        if seeker.leaves is not None:
            rows = self._amounts.tightest(fits)
            return rows if self._is_small else rows[:FITS_MAX]
        demand = self._demands[seeker.info.cls.number]
        rows = demand.in_order(fits, self._after(seeker))
        if self._is_small:
            return rows
        return rows[: FITS_MAX if len(self._unit) == 1 else 1]

    def _after(self, seeker: Seeker) -> int:
        """Of equal pods each takes a row at or after that of the one before: its rank, or 0."""
        before = self._unit[seeker.number - 1] if seeker.number > 0 else None
        demand = self._demands[seeker.info.cls.number]
        if before is None or before.info.cls is not seeker.info.cls or not demand.is_order_free:
            return 0
        return demand.rank_of(self._cluster.nodes.row_of[before.node]) if before.node else 0

    def _cannot_be_placed(self, seeker: Seeker) -> bool:
        """Whether the pods of the class need more moves than the plan has, by amounts."""
        if seeker.leaves is not None:
            return False
        demand, rows = self._demands[seeker.info.cls.number], Counter[int]()
        for other in self._unit[: seeker.number]:
            if other.info.cls is seeker.info.cls:
                rows[self._cluster.nodes.row_of[other.node]] += 1
        remaining = demand.count - rows.total()
        return demand.used_on(rows) + demand.least(remaining, self._after(seeker)) > self._level

    def _least_for(self, seekers: Sequence[Seeker]) -> int:
        """The least number of moves for those of some pods that belong to the unit, by amounts."""
        pending: dict[int, list[Seeker]] = {}
        for seeker in seekers:
            if seeker.leaves is None:
                pending.setdefault(seeker.info.cls.number, []).append(seeker)
        least = 0
        for number, pods in pending.items():
            first = min(pods, key=lambda seeker: seeker.number)
            least += self._demands[number].least(len(pods), self._after(first))
        return least

    # --- pods that leave -------------------------------------------------------------------------

    def _by_row(self) -> dict[int, list[tuple[int, PodInfo]]]:
        """The pods that may leave each row, by index, in the order in which they are tried."""
        found: dict[int, list[tuple[int, PodInfo]]] = {}
        for entry in enumerate(self._movable):
            found.setdefault(entry[1].row, []).append(entry)
        sizes = self._amounts.sizes
        for pods in found.values():
            pods.sort(key=lambda e: (e[1].pod.priority, sizes[e[1].cls.number], e[0]))
        return found

    def _candidates(
        self, seeker: Seeker, moves: int, last: int, leaving: Sequence[Seeker]
    ) -> Iterator[list[tuple[int, PodInfo]]]:
        """Pods that may leave for a pod next, by index, some at a time."""
        if self._is_small:
            pods = enumerate(self._movable)
            yield [(i, info) for i, info in pods if i > last and info.row >= 0]
            return
        row_of = self._cluster.nodes.row_of
        rows = [row_of[leaving[-1].home]] if leaving else self._hopeful_rows(seeker, moves)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            found, seen = [], set[tuple[int, int]]()
            for row in rows[start : start + ROWS_AT_ONCE]:
                for index, info in self._of_row.get(row, ()):
                    kind = row, info.cls.number  # equal pods of a row are alike
                    if index > last and info.row == row and kind not in seen:
                        seen.add(kind)
                        found.append((index, info))
            yield found

    def _promising(
        self, seeker: Seeker, pods: Sequence[tuple[int, PodInfo]], known: dict[int, Mask]
    ) -> Generator[Effect, Answer, list[tuple[int, PodInfo]]]:
        """Those of some pods that have another place, and without which a pod fits on their node.
        One pod of each node leaves at a time.
        """
        movable = list[tuple[int, PodInfo]]()
        for entry in pods:
            has_place = yield from self._has_place(self._mover(entry[1]), known)
            movable += [entry] if has_place else []
        if not is_by_node(seeker.runner, seeker.info):
            return movable
        rounds: list[list[tuple[int, int, PodInfo]]] = []
        counts = Counter[int]()
        for index, info in movable:
            if counts[info.row] == len(rounds):
                rounds.append([])
            rounds[counts[info.row]].append((index, info.row, info))
            counts[info.row] += 1
        fitting = set[int]()
        for leaving in rounds:
            for _, _, info in leaving:
                self._board.leave(info)
            rows = yield from self._fits(seeker)
            for _ in leaving:
                self._board.back()
            fitting.update(index for index, row, _ in leaving if rows[row])
        return [entry for entry in movable if entry[0] in fitting]

    def _hopeful_rows(self, seeker: Seeker, moves: int) -> list[int]:
        """Rows on which a pod may fit without some pods, by amounts: the fewest pods first, then
        by rank.
        """
        demand = self._demands.get(seeker.info.cls.number)
        if demand is None:
            demand = self._demand(seeker, 1)
        counts = demand.moves_now()
        allowed = counts <= moves
        if seeker.home:
            allowed[self._cluster.nodes.row_of[seeker.home]] = False
        after = self._after(seeker) if seeker.leaves is None else 0
        rows = demand.in_order(allowed, after)
        self._is_narrow |= len(rows) > self._rows_max
        return sorted(rows, key=lambda row: counts[row])[: self._rows_max]

    def _may_leave(self, info: PodInfo) -> bool:
        spare = self._rules.spare_pods_of(info.pod)
        return spare is None or spare >= 1

    def _has_place(self, mover: Seeker, known: dict[int, Mask]) -> Steps:
        """Whether the successor of a pod fits on another node as long as no other pods leave; also
        if that is not certain, because rules reach beyond a node. `known`: results by class.
        """
        number = mover.info.cls.number
        if number not in known:
            rows = yield from self._board.rows(mover.runner, mover.info)
            known[number] = rows if is_by_node(mover.runner, mover.info) else np.ones_like(rows)
        rows = known[number]
        home = self._cluster.nodes.row_of[mover.home]
        return bool(np.count_nonzero(rows) > rows[home])

    def _mover(self, info: PodInfo) -> Seeker:
        mover = self._seeker(info)
        mover.leaves, mover.home = info, info.node_name
        return mover

    def _seeker(self, info: PodInfo) -> Seeker:
        runner = self._context.runners[self._context.profile_of(info.pod)]
        return Seeker(clone_of(self._cluster, info), runner)

    # --- plans -----------------------------------------------------------------------------------

    def _accept(self) -> Steps:
        """Check the plan of the path, and store it if it is the best. True ends the search."""
        order = yield from self._order()
        if order is None:
            return False
        plan = MovePlan(
            tuple([Move(m.leaves, m.info, m.node) for m in order if m.leaves is not None]),
            tuple([(seeker.info, seeker.node) for seeker in self._unit]),
        )
        cost = self._cost_of(plan)
        if self._best is None:
            self._stop_at = self._board.spent + FURTHER_STEPS
        if self._best is None or cost < self._best[0]:
            self._best = cost, plan
        self._plans += 1
        return self._plans >= PLANS_MAX or not plan.moves

    def _order(self) -> Generator[Effect, Answer, list[Seeker] | None]:
        """An order of the moves in which each place is free before its pod leaves; None without
        one, or if a pod does not fit on its place in the end.
        """
        board, pending, order = self._board, list(self._moved), list[Seeker]()
        steps = 0
        for mover in pending:
            assert mover.leaves is not None
            board.come(mover.leaves, mover.home)
            steps += 1
        while pending:
            for mover in pending:
                assert mover.leaves is not None
                board.leave(mover.leaves)
                fits = yield from self._still_fits(mover)
                if fits and (yield from self._fits_without_holds(mover, pending)):
                    steps += 1  # its pod does not come back
                    order.append(mover)
                    pending.remove(mover)
                    break
                board.back()
            else:
                break
        is_right = not pending
        for seeker in (*self._unit, *self._moved) if is_right else ():
            is_right = is_right and (yield from self._still_fits(seeker))
        for _ in range(steps):
            board.back()
        return order if is_right else None

    def _still_fits(self, seeker: Seeker) -> Steps:
        """Whether a pod of the plan fits on its place, all others being on theirs."""
        self._board.leave(seeker.info)
        rows = yield from self._fits(seeker)
        self._board.back()
        return bool(rows[self._cluster.nodes.row_of[seeker.node]])

    def _fits_without_holds(self, mover: Seeker, pending: Sequence[Seeker]) -> Steps:
        """Whether a pod fits on its place beside the pods that are there by then: held places must
        not help to keep a rule about other pods, such as spread.
        """
        if is_by_node(mover.runner, mover.info):
            return True
        absent = [*self._unit, *(other for other in pending if other is not mover)]
        for other in absent:
            self._board.leave(other.info)
        fits = yield from self._still_fits(mover)
        for _ in absent:
            self._board.back()
        return fits

    def _cost_of(self, plan: MovePlan) -> tuple[float, ...]:
        """What a plan costs: the number of moves, those of them that wait until a budget has
        recovered, then the priorities and the ages of the pods, and how many pods of the same
        controllers are on the new nodes.
        """
        now_s, peers = self._cluster.wall_clock_s, 0
        ages_s = [now_s - seconds(m.pod.pod.metadata.creation_timestamp, now_s) for m in plan.moves]
        for move in plan.moves:
            owner = move.pod.pod.metadata.controller
            row = self._cluster.nodes.row_of[move.node]
            others = [info.pod for info in self._cluster.pods_on(row).values()]
            peers += sum(pod.metadata.controller == owner for pod in others) - 1
        priorities = sum(move.pod.pod.priority for move in plan.moves)
        counts = Counter(b for move in plan.moves for b in self._rules.budgets_of(move.pod))
        allowed = self._rules.budgets.allowed
        waiting = sum(max(count - allowed(budget), 0) for budget, count in counts.items())
        return len(plan.moves), waiting, priorities, sum(ages_s), peers
