"""Which pods have to be evicted so that a pod group fits, and which may stay.

    all less important units removed ─> the group fits? ─no─> no unit is evicted
    put back one by one, those first that a budget protects, then the more important ones
        the group still fits  ─> the unit stays
        it does not           ─> it is a victim

That is the rule; it would cost a trial of the whole group for each pod of the cluster. Instead

    proposed    the rows' room (`EvictionTrial`) proposes victims by amounts, and one trial confirms
                them. A proposed unit could not stay by amounts: the result is that of the rule
    searched    where other filters reject, up to UNITS_MAX units: the first victim is found by
                doubling and halving how many of the last units are removed; those ahead of it
                stay, and the room proposes again for those behind. The result is that of the rule
    by places   with more units: room is made for twice as much, then for four times, until the
                group fits somewhere, and these places are used. Units that are not in the way
                there, by amounts, stay. If other filters reject, the units on its nodes are
                searched. Every victim is in the way, though elsewhere less important units might
                have sufficed

The first two assume that removing a pod never makes the group unschedulable. Where that is wrong
(affinity to a victim), a trial still decides: no unit is evicted without effect.

Less important pods that are terminating already count as gone.

Bounds  STEPS_MAX of the budget for the search, and some 2 log2(units) trials beyond that. What is
        undecided then is decided by places, or no unit is evicted. A trial costs what its pods
        cost, and the removed pods.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/podgrouppreemption.go
        (selectVictimsOnDomain, newDomainForWorkloadPreemption, moreImportantVictim)
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Final, NamedTuple

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Effect
from asched.core.framework.group_post_filter import EqualMembers, GroupTrial, Probe
from asched.core.framework.status import unschedulable
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.eviction_trial import (
    EvictionTrial,
    Want,
    is_hopeless,
    of_group,
    of_places,
)
from asched.core.preemption.victim_units import Below, VictimUnit, units_of

#: Three seconds of work, as for the search for a gang's places. A guess.
STEPS_MAX: Final = 300_000
#: Units that are searched. With 256 of them a trial moves pods for some 6 ms.
UNITS_MAX: Final = 256
#: Pods removed at most to find where a group fits: for a quarter of a second.
GONE_MAX: Final = 10_000
#: Steps for a unit that is put back by amounts, and for each of its pods; the budget is charged
#: once so many have accumulated.
UNIT_STEPS, MOVED_POD_STEPS, STEPS_AT_ONCE = 0.3, 0.1, 25
#: Steps to list the pods of a unit or to remove it, and the units between two checks.
NAME_STEPS, UNITS_AT_ONCE = 0.05, 500
#: Rows whose room is summed up in a step.
ROWS_A_STEP: Final = 100

NO_VICTIMS: Final = unschedulable("No preemption victims found for incoming preemptor")
SPENT: Final = unschedulable("who would have to go was not found within three seconds of work")
NO_HINTS: Final[Mapping[str, str]] = {}

Steps = Generator[Effect, Answer, Probe]


class Sparing:
    """`ordered`: units in the order in which they are put back, without the `leaving` ones.
    `victims` is known once `run` has found places.
    """

    def __init__(
        self,
        trial: GroupTrial,
        likes: Sequence[EqualMembers],
        units: Sequence[VictimUnit],
        leaving: Sequence[VictimUnit],
    ) -> None:
        self._trial = trial
        self._likes = likes
        self._units = units
        self._leaving = leaving
        self._next = 0  # of the units: those before it are decided
        self._wants = of_group(likes, trial.needed)
        self.victims: list[VictimUnit] = []
        #: the last trial that found places: the victims, and all undecided units, were removed
        self._last_success: Probe | None = None
        self._hints = NO_HINTS
        self._moves = 0
        self._spent = self._owed = 0.0

    def run(self) -> Steps:
        """Places of the group without `victims`, or why there are none."""
        self._room: EvictionTrial = yield from self._room_for(self._wants)
        if not self._room.is_enough:
            return Probe(unschedulable(self._trial.refusal))
        proposed = yield from self._propose(self._room)
        probe = yield from self._try(proposed)
        if probe.status.is_success:
            self._decide(proposed)
        elif len(proposed) == len(self._units):
            return probe
        elif len(self._units) > UNITS_MAX:
            probe = yield from self._widen(proposed)
            if probe.status.is_success and not (yield from self._by_places()):
                yield from self._narrow()
                self._room = yield from self._room_for(self._wants)
                probe = yield from self._search([])
        else:
            probe = yield from self._search(proposed)
        if not probe.status.is_success:
            return probe
        if self._undecided and not (yield from self._by_places()):
            if not (yield from self._narrow()):
                return Probe(SPENT)
            self._decide(range(self._next, len(self._units)))
        return (yield from self._confirmed())

    @property
    def _undecided(self) -> int:
        return len(self._units) - self._next

    def _decide(self, go: Iterable[int]) -> None:
        """Of the undecided units, `go` become victims, the rest stays."""
        self.victims += [self._units[at] for at in go]
        self._next = len(self._units)

    def _try(self, gone: Iterable[int]) -> Steps:
        """Try the group without the victims, the units at `gone`, and the leaving ones."""
        pods: list[PodInfo] = []
        going = chain(self._leaving, self.victims, (self._units[at] for at in gone))
        for number, unit in enumerate(going, 1):
            pods += unit.pods
            if not number % UNITS_AT_ONCE:
                yield from self._trial.charge(NAME_STEPS * UNITS_AT_ONCE)
        moves = self._trial.moves
        probe = yield from self._trial.fits_without(pods, self._hints)
        self._spent += probe.steps
        if probe.status.is_success:
            self._last_success, self._moves = probe, moves
        return probe

    def _confirmed(self) -> Steps:
        """The result, if it is still valid although other tasks have run meanwhile."""
        assert self._last_success is not None
        if self._moves == self._trial.moves:
            return self._last_success
        self._hints = self._last_success.places
        return (yield from self._try(()))

    # --- proposed --------------------------------------------------------------------------------

    def _room_for(self, wants: Sequence[Want]) -> Generator[Effect, Answer, EvictionTrial]:
        """The room without the undecided units, the leaving ones, and the victims."""
        room = EvictionTrial(self._trial.cluster, wants)
        undecided = islice(self._units, self._next, None)
        for unit in chain(self._leaving, self.victims, undecided):
            room.without(unit)
            if self._owes(unit):
                yield from self._pay()
        room.count()
        return room

    def _propose(self, room: EvictionTrial) -> Generator[Effect, Answer, list[int]]:
        """Positions of the undecided units that cannot be put back by amounts."""
        positions = []
        for at in range(self._next, len(self._units)):
            unit = self._units[at]
            if self._owes(unit):
                yield from self._pay()
            room.put_back(unit)
            if not room.is_enough:
                room.take_away(unit)
                positions.append(at)
        return positions

    def _take_away_again(
        self, start: int, proposed: Sequence[int]
    ) -> Generator[Effect, Answer, None]:
        """The room without all units from a position on."""
        gone = set(proposed)
        for at in range(start, len(self._units)):
            if at not in gone:
                self._room.take_away(self._units[at])
                if self._owes(self._units[at]):
                    yield from self._pay()

    def _owes(self, unit: VictimUnit) -> bool:
        """Whether the budget must be charged once this unit is put back or removed."""
        self._owed += UNIT_STEPS + MOVED_POD_STEPS * len(unit.pods)
        return self._owed >= STEPS_AT_ONCE

    def _pay(self) -> Generator[Effect, Answer, None]:
        owed, self._owed = self._owed, 0.0
        yield from self._trial.charge(owed)

    # --- searched --------------------------------------------------------------------------------

    def _search(self, refuted: Sequence[int]) -> Steps:
        """Decide one unit after the other, as long as the budget lasts. `refuted`: the proposed
        victims, in their order, which are not enough.
        """
        while True:
            start = yield from self._first_victim(refuted)
            if isinstance(start, Probe):
                return start
            assert self._last_success is not None
            if self._spent >= STEPS_MAX or not self._undecided:
                return self._last_success
            yield from self._take_away_again(start, refuted)
            refuted = yield from self._propose(self._room)
            is_all = len(refuted) == self._undecided
            if is_all or (yield from self._try(refuted)).status.is_success:
                self._decide(refuted)
                return self._last_success

    def _first_victim(self, refuted: Sequence[int]) -> Generator[Effect, Answer, Probe | int]:
        """Decide the undecided units up to the first victim, and return its position. A probe: the
        group does not fit even without all of them.
        """
        size, end = self._undecided, len(self._units)
        low = 0  # removing so many from the end is too few
        if refuted:
            low = end - refuted[0]
            low -= low > len(refuted)  # it may fit without more than the proposed units
        high = low + 1
        while high < size or self._last_success is None:
            high = min(high, size)
            probe = yield from self._try(range(end - high, end))
            if probe.status.is_success:
                break
            if high == size:
                return probe
            low, high = high, 2 * high
        high = min(high, size)
        while high - low > 1:
            middle = (low + high) // 2
            if (yield from self._try(range(end - middle, end))).status.is_success:
                high = middle
            else:
                low = middle
        self.victims.append(self._units[end - high])
        self._next = end - low
        return end - high

    # --- by places -------------------------------------------------------------------------------

    def _widen(self, proposed: Sequence[int]) -> Steps:
        """Make more room, until the group fits somewhere; units out of its way then stay."""
        while self._room.widen():
            yield from self._take_away_again(0, proposed)
            proposed = yield from self._propose(self._room)
            if sum(len(self._units[at].pods) for at in proposed) > GONE_MAX:
                return Probe(SPENT)
            probe = yield from self._try(proposed)
            if probe.status.is_success:
                self._units = [self._units[at] for at in proposed]
                return probe
        if sum(len(unit.pods) for unit in self._units) > GONE_MAX:
            return Probe(SPENT)
        return (yield from self._try(range(len(self._units))))

    def _by_places(self) -> Generator[Effect, Answer, bool]:
        """Of the undecided units, those that are, by amounts, in the way of the places found become
        victims. False: that is not enough, and nothing is decided. Later trials try these places
        first.
        """
        assert self._last_success is not None
        self._hints = self._last_success.places
        nodes = self._trial.cluster.nodes
        room = yield from self._room_for(of_places(self._likes, self._hints, nodes))
        go = yield from self._propose(room)
        fits = (yield from self._try(go)).status.is_success
        if fits:
            self._decide(go)
        return fits

    def _narrow(self) -> Generator[Effect, Answer, bool]:
        """Units that are not on the nodes found stay. False: a unit elsewhere is in the way, and
        nothing is decided.
        """
        rows = {self._trial.cluster.nodes.row_of.get(node) for node in self._hints.values()}
        on_nodes = [
            at
            for at in range(self._next, len(self._units))
            if any(info.row in rows for info in self._units[at].pods)
        ]
        fits = (
            len(on_nodes) == self._undecided or (yield from self._try(on_nodes)).status.is_success
        )
        if fits:
            self._units = [*self._units[: self._next], *(self._units[at] for at in on_nodes)]
        return fits


class GroupVictims(NamedTuple):
    """`pods`: the most important first. `violations`: of disruption budgets; `disruptions`: units
    of groups.
    """

    pods: Sequence[PodInfo] = ()
    violations: int = 0
    disruptions: int = 0


def victims_for(
    trial: GroupTrial, budgets: Budgets
) -> Generator[Effect, Answer, tuple[Probe, GroupVictims]]:
    """Places for the group and its victims. Pods that leave anyway are not among them."""
    below = Below(trial)
    if not below.has_any():
        return Probe(NO_VICTIMS), GroupVictims()
    likes = trial.alike()
    groups = yield from below.whole()
    whole = [info for _, infos in groups for info in infos]
    wants = of_group(likes, trial.needed)
    yield from trial.charge(1 + trial.cluster.nodes.height / ROWS_A_STEP)
    if trial.needed > len(trial.pods) or is_hopeless(
        trial.cluster, wants, trial.group.priority, whole
    ):
        return Probe(unschedulable(trial.refusal)), GroupVictims()
    staying, leaving = yield from units_of(below, trial)
    yield from _caught_up(budgets, trial)
    ordered, over = yield from _put_back_order(trial, staying, budgets)
    sparing = Sparing(trial, likes, ordered, leaving)
    probe = yield from sparing.run()
    victims = sparing.victims if probe.status.is_success else []
    ordered.clear()
    del sparing
    gone, violations, disruptions = set[int](), 0, 0
    for start in range(0, len(victims), UNITS_AT_ONCE):
        yield from trial.charge(NAME_STEPS * UNITS_AT_ONCE, is_alone=True)
        some = victims[start : start + UNITS_AT_ONCE]
        gone.update(map(id, some))
        violations += sum([over.get(id(unit), 0) for unit in some])
        disruptions += sum([unit.is_of_group for unit in some])
    del victims
    pods = yield from _given_up(trial, staying, gone)
    return probe, GroupVictims(pods, violations, disruptions)


def _given_up(
    trial: GroupTrial, units: list[VictimUnit], gone: AbstractSet[int]
) -> Generator[Effect, Answer, list[PodInfo]]:
    """The pods of the units in `gone` (by id), in slices: a hundred thousand at once would take a
    whole turn.
    """
    given_up: list[PodInfo] = []
    units.reverse()
    while units:
        if not len(units) % UNITS_AT_ONCE:
            yield from trial.charge(NAME_STEPS * UNITS_AT_ONCE, is_alone=True)
        unit = units.pop()
        if id(unit) in gone:
            given_up += unit.pods
    return given_up


def _caught_up(budgets: Budgets, trial: GroupTrial) -> Generator[Effect, Answer, None]:
    """Catch up with all budgets, in as many slices as their selectors take."""
    while True:
        try:
            return budgets.catch_up()
        except OutOfTurn:
            yield from trial.charge(0)


def _put_back_order(
    trial: GroupTrial, units: Sequence[VictimUnit], budgets: Budgets
) -> Generator[Effect, Answer, tuple[list[VictimUnit], dict[int, int]]]:
    """The order in which units are put back, and how many pods of a unit (by id) violate a budget;
    `units` come with the most important one first.
    """
    if not len(budgets):
        return list(units), {}
    over: list[int] = []
    while len(over) < len(units):
        generation, over = budgets.generation, []
        for number, unit in zip(budgets.violated_by(u.pods for u in units), units, strict=True):
            over.append(number)
            yield from trial.charge(budgets.steps_for(unit.pods))
            if budgets.generation != generation:
                over = []  # the budgets were renumbered meanwhile
                break
    order = sorted(range(len(units)), key=lambda at: not over[at])
    counts = {id(unit): count for count, unit in zip(over, units, strict=True) if count}
    return [units[at] for at in order], counts
