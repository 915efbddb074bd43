"""A life in which a rule was broken, made smaller: fewer faults, fewer pods, fewer steps.

Something is left out for good if a rule of the same kind is broken without it, too. Each try is a
life of its own, since whoever throws fewer dice throws others; what is left is repeated by its seed
and its `Cut`.

Bounds  PLAYS_MAX lives for one failure.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from asched_lab.sim.scenario import Broken, Cut, Scenario, play

#: About a minute.
PLAYS_MAX: Final = 60

#: Names of objects, and numbers: what differs from one life to the next.
_PARTICULARS: Final = re.compile(r"\S*\d\S*")


def kind_of(finding: str) -> str:
    """Which rule was broken, whoever broke it."""
    return _PARTICULARS.sub("#", finding)


class Shrinking:
    """`broken` is the smallest failure so far. `live` plays a life, and raises Broken."""

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
        self._left = PLAYS_MAX if plays_max is None else plays_max
        self._wanted = kind_of(broken.findings[0])
        self._cut = broken.cut
        if self._cut.only is None:
            self._cut = replace(self._cut, only=tuple(range(broken.world.step_count)))

    def run(self) -> Broken:
        """Leave out what can be left out; the failure that remains."""
        for name in map(_name, self._kind.faults):
            if name not in self._cut.without:
                self._try(replace(self._cut, without=(*self._cut.without, name)))
        if not self._cut.single:
            self._try(replace(self._cut, single=True))
        size = len(self._steps) // 2
        while size:
            for at in range(len(self._steps) - size, -1, -size):
                left = self._steps[:at] + self._steps[at + size :]
                self._try(replace(self._cut, only=left))
            size //= 2
        return self.broken

    @property
    def _steps(self) -> tuple[int, ...]:
        assert self._cut.only is not None
        return self._cut.only

    def _try(self, cut: Cut) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        try:
            self._live(self._kind, self.broken.world.seed, cut)
        except Broken as found:
            if self._wanted in map(kind_of, found.findings):
                self.broken, self._cut = found, cut


def _name(fault: object) -> str:
    return type(fault).__name__
