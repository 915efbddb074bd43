"""An incident: something that went wrong in a cluster of others, as a scenario of ours.

    setup ─> steps, a trouble among them ─> `over` ─> the first right decision ─> what must hold

Each class tells what happened, names the threads, and says within how many virtual seconds after
the trouble's end the first right decision has to be made. What holds for all scenarios holds here
too; no node is overcommitted in the end by what the API shows, whoever bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from asched.core.framework.effects import Bind
from asched_lab.sim.checker import EndState
from asched_lab.sim.faults import Fault
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import Step, is_through
from asched_lab.sim.world import World

Json = dict[str, Any]


class Incident(Scenario):
    """Base of all incidents. Subclasses have `build` in place of `setup`, and `judge` in place of
    `check`.
    """

    #: What happened to others, in a sentence.
    what: ClassVar[str] = ""
    #: Where it is told: threads as repository#number.
    threads: ClassVar[str] = ""
    #: Seconds from the trouble's end to the first right decision, at most.
    recovers_in_s: ClassVar[float] = math.inf

    def setup(self, world: World) -> None:
        self._over_s: float | None = None
        world.on_bound.append(lambda bind: self._bound(world, bind))
        self.build(world)

    def build(self, world: World) -> None:
        """What is there before anything goes wrong."""

    def judge(self, world: World) -> None:
        """What must hold in the end of this incident alone."""

    def counts(self, bind: Bind) -> bool:  # noqa: ARG002 - for those who look closer
        """Whether a binding shows that all is well again."""
        return True

    def is_judged(self, node: Json) -> bool:  # noqa: ARG002 - for those who look closer
        """Whether somebody could have known that the node is as small as it is."""
        return True

    def over(self, world: World) -> None:
        """The trouble is over at this moment."""
        self._over_s = world.clock.now_s()
        world.note("the trouble is over")

    def _bound(self, world: World, bind: Bind) -> None:
        if self._over_s is not None and self.counts(bind):
            world.recoveries_s.append(world.clock.now_s() - self._over_s)
            self._over_s = None

    def check(self, world: World) -> None:
        assert self._over_s is None, "no right decision was made after the trouble"
        for seconds in world.recoveries_s:
            assert seconds <= self.recovers_in_s, f"it took {seconds:.1f} s to recover"
        pods = [pod for pod in world.pods() if not is_through(pod)]
        nodes = [node for node in world.nodes() if self.is_judged(node)]
        broken = [line for line in EndState(nodes, pods).broken_rules() if "over" in line]
        assert not broken, broken[0]
        self.judge(world)


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(Step):
    """Something happens; `name` says what."""

    name: str
    act: Callable[[World], object] = field(compare=False)

    def do(self, world: World) -> None:
        world.note(self.name)
        self.act(world)


def over(incident: Incident, wait_s: float | None = None) -> Do:
    """The trouble is over."""
    return Do(name="over", act=incident.over, wait_s=wait_s)


def begin(*faults: Fault, wait_s: float) -> Do:
    """These are in force from now on, for `wait_s` and longer."""

    def act(world: World) -> None:
        for fault in faults:
            world.troubles.begin(fault)

    names = ", ".join(type(fault).__name__ for fault in faults)
    return Do(name=f"from now on: {names}", act=act, wait_s=wait_s)


def end(*kinds: type[Fault], wait_s: float = 0.0) -> Do:
    """These are over."""

    def act(world: World) -> None:
        for kind in kinds:
            world.troubles.end(kind)

    return Do(name="no more: " + ", ".join(kind.__name__ for kind in kinds), act=act, wait_s=wait_s)


def expire_watches(world: World) -> None:
    """Every stream ends with 410: all is listed anew."""
    for process in world.processes:
        for stream in tuple(process.wire.streams.values()):
            stream.expire()


def break_watches(world: World) -> None:
    """Every connection breaks."""
    for process in world.processes:
        for stream in tuple(process.wire.streams.values()):
            stream.break_()
