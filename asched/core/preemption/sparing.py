"""Who has to go so that a pod group fits, and who may stay.

    all less important units gone ─> the group fits? ─no─> nobody goes, it would not help
    put back one by one, those first that a budget protects, then the more important ones
        the group still fits  ─> the unit stays
        it does not           ─> it goes

That is the rule; a trial of the whole group for each pod of the cluster would be its price. So

    proposed    the rows' room (`room.py`) says who goes by amounts, and one trial confirms it. Who
                is proposed could not stay by amounts: it comes to what the rule comes to
    searched    where other rules object, up to LINE_MAX units: the first that has to go is found by
                doubling and halving how many of the last in line are gone; those ahead of it stay,
                and the room proposes again for those behind. It comes to the rule, too
    by places   with more of them: room is made for twice as much, then for four times, until the
                group fits somewhere. There it is to stay: who is not in its way there, by amounts,
                need not go. If others object, those on its nodes are searched. Everybody who goes
                is in its way, though maybe elsewhere others would have been less important

The first two rely on it that one pod less never keeps a group from its places. Where that does not
hold (affinity to those who go), the trial has the last word all the same: nobody goes in vain.

Less important pods that are on their way out already are taken to be gone.

Bounds  STEPS_MAX of the budget for the search, and some 2 log2(units) trials beyond that. What is
        undecided then is decided by places, or nobody goes. A trial costs what its pods cost, and
        those who are supposed gone.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/podgrouppreemption.go
        (selectVictimsOnDomain)
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Final

from asched.core.framework.effects import Effect
from asched.core.framework.group_post_filter import EqualMembers, GroupTrial, Probe
from asched.core.framework.status import unschedulable
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.room import EvictionTrial, Want, is_hopeless, of_group, of_places
from asched.core.preemption.units import Below, Unit, units_of
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo

#: Three seconds of work, as for the search for a gang's places. A guess.
STEPS_MAX: Final = 300_000
#: Units that are searched. With 256 of them a trial moves pods for some 6 ms.
LINE_MAX: Final = 256
#: Pods that are supposed gone at most to see where a group fits: for a quarter of a second.
GONE_MAX: Final = 10_000
#: Steps for a unit that is put back by amounts, and for each of its pods; the budget is asked once
#: it comes to so many.
UNIT_STEPS, POD_STEPS, STEPS_AT_ONCE = 0.3, 0.1, 25
#: Steps to name the pods of a unit or to give it up, and for how many between two looks at it.
NAME_STEPS, UNITS_AT_ONCE = 0.05, 500
#: Rows whose room is summed up in a step.
ROWS_A_STEP: Final = 100

NO_VICTIMS: Final = unschedulable("No preemption victims found for incoming preemptor")
SPENT: Final = unschedulable("who would have to go was not found within three seconds of work")
NO_HINTS: Final[Mapping[str, str]] = {}

Steps = Generator[Effect, Answer, Probe]


class Sparing:
    """`line`: units in the order in which they are put back; `leaving` are none of them. `victims`
    is known once `run` has found places.
    """

    def __init__(
        self,
        trial: GroupTrial,
        likes: Sequence[EqualMembers],
        line: Sequence[Unit],
        leaving: Sequence[Unit],
    ) -> None:
        self._trial = trial
        self._likes = likes
        self._line = line
        self._leaving = leaving
        self._next = 0  # of the line: those before it are decided about
        self._wants = of_group(likes, trial.needed)
        self.victims: list[Unit] = []
        #: the last trial that found places: the victims, and all that are undecided, were gone
        self._found: Probe | None = None
        self._hints = NO_HINTS
        self._moves = 0
        self._spent = self._owed = 0.0

    def run(self) -> Steps:
        """Places of the group once `victims` have gone, or why there are none."""
        self._room: EvictionTrial = yield from self._room_for(self._wants)
        if not self._room.is_enough:
            return Probe(unschedulable(self._trial.refusal))
        proposed = yield from self._propose(self._room)
        probe = yield from self._try(proposed)
        if probe.status.is_success:
            self._decide(proposed)
        elif len(proposed) == len(self._line):
            return probe
        elif len(self._line) > LINE_MAX:
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
            self._decide(range(self._next, len(self._line)))
        return (yield from self._confirmed())

    @property
    def _undecided(self) -> int:
        return len(self._line) - self._next

    def _decide(self, go: Iterable[int]) -> None:
        """Of the undecided, these go, and the others stay."""
        self.victims += [self._line[at] for at in go]
        self._next = len(self._line)

    def _try(self, gone: Iterable[int]) -> Steps:
        """Try the group without the victims, those at `gone`, and whoever leaves anyway."""
        pods: list[PodInfo] = []
        going = chain(self._leaving, self.victims, (self._line[at] for at in gone))
        for number, unit in enumerate(going, 1):
            pods += unit.pods
            if not number % UNITS_AT_ONCE:
                yield from self._trial.charge(NAME_STEPS * UNITS_AT_ONCE)
        moves = self._trial.moves
        probe = yield from self._trial.fits_without(pods, self._hints)
        self._spent += probe.steps
        if probe.status.is_success:
            self._found, self._moves = probe, moves
        return probe

    def _confirmed(self) -> Steps:
        """What was found, if it holds although others had their turn meanwhile."""
        assert self._found is not None
        if self._moves == self._trial.moves:
            return self._found
        self._hints = self._found.places
        return (yield from self._try(()))

    # --- proposed --------------------------------------------------------------------------------

    def _room_for(self, wants: Sequence[Want]) -> Generator[Effect, Answer, EvictionTrial]:
        """Without those that are undecided, who leaves anyway, and the victims."""
        room = EvictionTrial(self._trial.cluster, wants)
        undecided = islice(self._line, self._next, None)
        for unit in chain(self._leaving, self.victims, undecided):
            room.without(unit)
            if self._owes(unit):
                yield from self._pay()
        room.count()
        return room

    def _propose(self, room: EvictionTrial) -> Generator[Effect, Answer, list[int]]:
        """Who of the undecided cannot be put back by amounts, by place in line."""
        found = []
        for at in range(self._next, len(self._line)):
            unit = self._line[at]
            if self._owes(unit):
                yield from self._pay()
            room.put_back(unit)
            if not room.is_enough:
                room.take_away(unit)
                found.append(at)
        return found

    def _take_away_again(
        self, start: int, proposed: Sequence[int]
    ) -> Generator[Effect, Answer, None]:
        """The room as it is with everybody gone from a place in line on."""
        gone = set(proposed)
        for at in range(start, len(self._line)):
            if at not in gone:
                self._room.take_away(self._line[at])
                if self._owes(self._line[at]):
                    yield from self._pay()

    def _owes(self, unit: Unit) -> bool:
        """Whether the budget is to be asked, with this unit put back or taken away."""
        self._owed += UNIT_STEPS + POD_STEPS * len(unit.pods)
        return self._owed >= STEPS_AT_ONCE

    def _pay(self) -> Generator[Effect, Answer, None]:
        owed, self._owed = self._owed, 0.0
        yield from self._trial.charge(owed)

    # --- searched --------------------------------------------------------------------------------

    def _search(self, refuted: Sequence[int]) -> Steps:
        """Decide about one unit after the other, as long as the budget lasts. `refuted`: who was
        proposed, the first in line first, and is not enough.
        """
        while True:
            start = yield from self._first_victim(refuted)
            if isinstance(start, Probe):
                return start
            assert self._found is not None
            if self._spent >= STEPS_MAX or not self._undecided:
                return self._found
            yield from self._take_away_again(start, refuted)
            refuted = yield from self._propose(self._room)
            is_all = len(refuted) == self._undecided
            if is_all or (yield from self._try(refuted)).status.is_success:
                self._decide(refuted)
                return self._found

    def _first_victim(self, refuted: Sequence[int]) -> Generator[Effect, Answer, Probe | int]:
        """Decide about the undecided up to the first that has to go, and return its place in line.
        A probe: the group does not fit even without all of them.
        """
        size, end = self._undecided, len(self._line)
        low = 0  # so many gone from the end of the line are too few
        if refuted:
            low = end - refuted[0]
            low -= low > len(refuted)  # with more than were proposed gone it may fit
        high = low + 1
        while high < size or self._found is None:
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
        self.victims.append(self._line[end - high])
        self._next = end - low
        return end - high

    # --- by places -------------------------------------------------------------------------------

    def _widen(self, proposed: Sequence[int]) -> Steps:
        """Make more room, until the group fits somewhere; who is not in question then stays."""
        while self._room.widen():
            yield from self._take_away_again(0, proposed)
            proposed = yield from self._propose(self._room)
            if sum(len(self._line[at].pods) for at in proposed) > GONE_MAX:
                return Probe(SPENT)
            probe = yield from self._try(proposed)
            if probe.status.is_success:
                self._line = [self._line[at] for at in proposed]
                return probe
        if sum(len(unit.pods) for unit in self._line) > GONE_MAX:
            return Probe(SPENT)
        return (yield from self._try(range(len(self._line))))

    def _by_places(self) -> Generator[Effect, Answer, bool]:
        """Of the undecided, those go who are, by amounts, in the way of the places that were found.
        False: that is not enough, and nothing is decided. These places are tried first from now on.
        """
        assert self._found is not None
        self._hints = self._found.places
        nodes = self._trial.cluster.nodes
        room = yield from self._room_for(of_places(self._likes, self._hints, nodes))
        go = yield from self._propose(room)
        fits = (yield from self._try(go)).status.is_success
        if fits:
            self._decide(go)
        return fits

    def _narrow(self) -> Generator[Effect, Answer, bool]:
        """Who is not on the nodes that were found stays. False: somebody elsewhere is in the way,
        and nothing is decided.
        """
        rows = {self._trial.cluster.nodes.row_of.get(node) for node in self._hints.values()}
        there = [
            at
            for at in range(self._next, len(self._line))
            if any(info.row in rows for info in self._line[at].pods)
        ]
        fits = len(there) == self._undecided or (yield from self._try(there)).status.is_success
        if fits:
            self._line = [*self._line[: self._next], *(self._line[at] for at in there)]
        return fits


def victims_for(
    trial: GroupTrial, budgets: Budgets
) -> Generator[Effect, Answer, tuple[Probe, list[PodInfo]]]:
    """Places for the group, and who has to go for that, the most important one first. Pods that
    leave anyway are not among them.
    """
    below = Below(trial)
    if not below.has_any():
        return Probe(NO_VICTIMS), []
    likes = trial.alike()
    groups = yield from below.whole()
    whole = [info for _, infos in groups for info in infos]
    wants = of_group(likes, trial.needed)
    yield from trial.charge(1 + trial.cluster.nodes.height / ROWS_A_STEP)
    if trial.needed > len(trial.pods) or is_hopeless(
        trial.cluster, wants, trial.group.priority, whole
    ):
        return Probe(unschedulable(trial.refusal)), []
    staying, leaving = yield from units_of(below, trial)
    yield from _caught_up(budgets, trial)
    line = yield from _in_line(trial, staying, budgets)
    sparing = Sparing(trial, likes, line, leaving)
    probe = yield from sparing.run()
    victims = sparing.victims if probe.status.is_success else []
    line.clear()
    del sparing
    gone = set[int]()
    for start in range(0, len(victims), UNITS_AT_ONCE):
        yield from trial.charge(NAME_STEPS * UNITS_AT_ONCE, is_alone=True)
        gone.update(map(id, victims[start : start + UNITS_AT_ONCE]))
    del victims
    return probe, (yield from _given_up(trial, staying, gone))


def _given_up(
    trial: GroupTrial, units: list[Unit], gone: AbstractSet[int]
) -> Generator[Effect, Answer, list[PodInfo]]:
    """The pods of those that are `gone` (by id). All are given up: a hundred thousand in one go
    would take a turn.
    """
    found: list[PodInfo] = []
    units.reverse()
    while units:
        if not len(units) % UNITS_AT_ONCE:
            yield from trial.charge(NAME_STEPS * UNITS_AT_ONCE, is_alone=True)
        unit = units.pop()
        if id(unit) in gone:
            found += unit.pods
    return found


def _caught_up(budgets: Budgets, trial: GroupTrial) -> Generator[Effect, Answer, None]:
    """Know all budgets, over as many slices as their selectors take."""
    while True:
        try:
            return budgets.catch_up()
        except OutOfTurn:
            yield from trial.charge(0)


def _in_line(
    trial: GroupTrial, units: Sequence[Unit], budgets: Budgets
) -> Generator[Effect, Answer, list[Unit]]:
    """The order in which they are put back; `units` come with the most important one first."""
    if not len(budgets):
        return list(units)
    over: list[bool] = []
    while len(over) < len(units):
        generation, over = budgets.generation, []
        for is_over, unit in zip(budgets.violated_by(u.pods for u in units), units, strict=True):
            over.append(is_over)
            yield from trial.charge(budgets.steps_for(unit.pods))
            if budgets.generation != generation:
                over = []  # others asked meanwhile, and numbered them anew
                break
    order = sorted(range(len(units)), key=lambda at: not over[at])
    return [units[at] for at in order]
