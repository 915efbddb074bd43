"""Reduce a run with a broken rule: fewer faults, fewer pods, fewer steps.

A part stays left out if a rule of the same kind is broken without it, too. Each try is a run of its
own, since fewer draws change all later draws.

Bounds  PLAYS_MAX runs for one failure.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from asched_lab.sim.scenario import Broken, Cut, Scenario, play

#: About a minute.
PLAYS_MAX: Final = 60
#: Names of objects, and numbers: they differ from run to run.
_PARTICULARS: Final = re.compile(r"\S*\d\S*")


def kind_of(finding: str) -> str:
    """The kind of a broken rule, without names and numbers."""
    return _PARTICULARS.sub("#", finding)


class Shrinking:
    """`broken` is the smallest failure so far. `live` runs a scenario, and raises Broken."""

    def __init__(
        self,
        kind: type[Scenario],
        broken: Broken,
        *,
        plays_max: int | None = None,
        live: Callable[[type[Scenario], int, Cut], object] = play,
    ) -> None:
        self.broken = broken
        self._kind = kind
        self._live = live
        self._plays_left = PLAYS_MAX if plays_max is None else plays_max
        self._wanted = kind_of(broken.findings[0])
        self._cut = broken.cut
        if self._cut.only is None:
            self._cut = replace(self._cut, only=tuple(range(broken.world.step_count)))

    def run(self) -> Broken:
        """Leave out all parts that can be left out; return the remaining failure."""
        for name in map(_name, self._kind.faults):
            if name not in self._cut.without:
                self._try(replace(self._cut, without=(*self._cut.without, name)))
        if not self._cut.single:
            self._try(replace(self._cut, single=True))
        size = len(self._steps) // 2
        while size:
            for at in range(len(self._steps) - size, -1, -size):
                only = self._steps[:at] + self._steps[at + size :]
                self._try(replace(self._cut, only=only))
            size //= 2
        return self.broken

    @property
    def _steps(self) -> tuple[int, ...]:
        assert self._cut.only is not None
        return self._cut.only

    def _try(self, cut: Cut) -> None:
        if self._plays_left <= 0:
            return
        self._plays_left -= 1
        try:
            self._live(self._kind, self.broken.world.seed, cut)
        except Broken as found:
            if self._wanted in map(kind_of, found.findings):
                self.broken, self._cut = found, cut


def _name(fault: object) -> str:
    return type(fault).__name__
