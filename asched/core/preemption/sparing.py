"""Who has to go so that a pod group fits, and who may stay.

    all less important units gone ─> the group fits? ─no─> nobody goes, it would not help
    put back one by one, those first that a budget protects, then the more important ones
        the group still fits  ─> the unit stays
        it does not           ─> it goes

That is the rule, and its outcome; a trial of the whole group for each of the cluster's pods would
be its price. Instead the rows' room (`room.py`) proposes who goes, and one trial confirms it: the
rule then comes to the same, since whoever is proposed could not even stay by amounts. Where other
rules object, the first unit that has to go is searched for: how many of the last in line must be
gone, by doubling and halving; what is ahead of it stays, and the room proposes again for what is
behind. Both rely on it that one pod less never keeps a group from its places. Where that does not
hold (affinity to those who go), the trial has the last word all the same: nobody goes in vain.

Pods that are on their way out already are taken to be gone.

Bounds  STEPS_MAX of the budget; from half of it on, neighbours in line are decided about together,
        more and more of them, and beyond it all that are left go. A trial that is under way then,
        and the next ones up to the first that finds places, are made all the same.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/podgrouppreemption.go
        (selectVictimsOnDomain)
"""

import math
from collections.abc import Generator, Sequence
from typing import Final

from asched.core.framework.effects import Effect
from asched.core.framework.group_post_filter import GroupTrial, Probe
from asched.core.framework.status import unschedulable
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.room import Room
from asched.core.preemption.units import Unit, units_below
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo

#: Three seconds of work, as for the search for a gang's places. A guess.
STEPS_MAX: Final = 300_000
#: Units that are put back by amounts before the budget is asked again, and steps for each.
UNITS_AT_ONCE: Final = 64
UNIT_STEPS: Final = 0.4

NO_VICTIMS: Final = unschedulable("No preemption victims found for incoming preemptor")


class Sparing:
    """`line`: units in the order in which they are put back; `room`: without any of them.
    `victims` is known once `run` has found places.
    """

    def __init__(
        self, trial: GroupTrial, line: Sequence[Unit], leaving: Sequence[Unit], room: Room
    ) -> None:
        self._trial = trial
        self._line = line
        self._leaving = [info for unit in leaving for info in unit.pods]
        self._room = room
        self.victims: list[Unit] = []
        self._next = 0  # of the line: those before it are decided about
        #: the last trial that found places: the victims, and all that are undecided, were gone
        self._found: Probe | None = None
        self._moves = 0
        self._spent = 0.0

    def run(self) -> Generator[Effect, Answer, Probe]:
        """Places of the group once `victims` have gone, or why there are none."""
        if not self._room.is_enough:
            return Probe(unschedulable(self._trial.refusal))
        while not (self._found and self._spent >= STEPS_MAX):
            proposed = yield from self._propose()
            is_all = len(proposed) == self._undecided
            if is_all and self._found:
                break
            probe = yield from self._try(proposed)
            if probe.status.is_success:
                self.victims += [self._line[at] for at in proposed]
                self._next = len(self._line)
                break
            if is_all:
                return probe
            start = yield from self._first_victim(proposed)
            if isinstance(start, Probe):
                return start
            self._take_away_again(start, proposed)
        self.victims += self._line[self._next :]
        self._next = len(self._line)
        return (yield from self._confirmed())

    @property
    def _undecided(self) -> int:
        return len(self._line) - self._next

    def _propose(self) -> Generator[Effect, Answer, list[int]]:
        """Who of the undecided cannot be put back by amounts, by place in line."""
        found = []
        for at in range(self._next, len(self._line)):
            if not at % UNITS_AT_ONCE:
                yield from self._trial.charge(UNITS_AT_ONCE * UNIT_STEPS)
            unit = self._line[at]
            self._room.put_back(unit)
            if not self._room.is_enough:
                self._room.take_away(unit)
                found.append(at)
        return found

    def _try(self, gone: Sequence[int]) -> Generator[Effect, Answer, Probe]:
        """Try the group without the victims, those at `gone`, and whoever leaves anyway."""
        units = (*self.victims, *(self._line[at] for at in gone))
        pods = [info for unit in units for info in unit.pods]
        moves = self._trial.moves
        probe = yield from self._trial.fits_without([*self._leaving, *pods])
        self._spent += probe.steps
        if probe.status.is_success:
            self._found, self._moves = probe, moves
        return probe

    def _first_victim(self, refuted: Sequence[int]) -> Generator[Effect, Answer, Probe | int]:
        """Decide about the undecided up to the first that has to go, and return its place in line.

        `refuted`: who was proposed, the first in line first, and is not enough. A probe: the group
        does not fit even without all of them.
        """
        size, end = self._undecided, len(self._line)
        low = 0  # so many gone from the end of the line are too few
        if refuted:
            low = end - refuted[0]
            low -= low > len(refuted)  # with more than were proposed gone it may fit
        high = max(low + 1, 1)
        while high < size or self._found is None:
            high = min(high, size)
            probe = yield from self._try(range(end - high, end))
            if probe.status.is_success:
                break
            if high == size:
                return probe
            low, high = high, 2 * high
        high = min(high, size)
        while high - low > self._grain(size):
            middle = (low + high) // 2
            if (yield from self._try(range(end - middle, end))).status.is_success:
                high = middle
            else:
                low = middle
        self.victims += self._line[end - high : end - low]
        self._next = end - low
        return end - high

    def _take_away_again(self, start: int, proposed: Sequence[int]) -> None:
        """The room as it is with everybody gone from a place in line on."""
        gone = set(proposed)
        for at in range(start, len(self._line)):
            if at not in gone:
                self._room.take_away(self._line[at])

    def _grain(self, size: int) -> int:
        """How many neighbours are decided about at once."""
        share = min(2 * self._spent / STEPS_MAX - 1, 1.0)
        return math.ceil(size**share) if share > 0 else 1

    def _confirmed(self) -> Generator[Effect, Answer, Probe]:
        """What was found, if it holds although others had their turn meanwhile."""
        assert self._found is not None
        if self._moves == self._trial.moves:
            return self._found
        return (yield from self._try(()))


def victims_for(
    trial: GroupTrial, budgets: Budgets
) -> Generator[Effect, Answer, tuple[Probe, list[PodInfo]]]:
    """Places for the group, and who has to go for that, the most important one first. Pods that
    leave anyway are not among them.
    """
    units = yield from units_below(trial)
    if not units:
        return Probe(NO_VICTIMS), []
    if trial.needed > len(trial.pods):
        return Probe(unschedulable(trial.refusal)), []
    yield from trial.charge(budgets.steps_for(info for unit in units for info in unit.pods))
    budgets.catch_up()
    staying = [unit for unit in units if not unit.is_leaving]
    leaving = [unit for unit in units if unit.is_leaving]
    line = _in_line(staying, budgets)
    yield from trial.charge(len(units) * UNIT_STEPS)
    room = Room(trial.cluster, trial.alike(), trial.needed, units)
    sparing = Sparing(trial, line, leaving, room)
    probe = yield from sparing.run()
    gone = set(map(id, sparing.victims)) if probe.status.is_success else ()
    return probe, [info for unit in staying if id(unit) in gone for info in unit.pods]


def _in_line(units: Sequence[Unit], budgets: Budgets) -> list[Unit]:
    """The order in which they are put back; `units` come with the most important one first."""
    if not len(budgets):
        return list(units)
    over = budgets.violated_by(unit.pods for unit in units)
    order = sorted(range(len(units)), key=lambda at: not over[at])
    return [units[at] for at in order]
