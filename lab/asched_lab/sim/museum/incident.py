"""An incident: a failure that was reported from a cluster, as a scenario.

    setup ─> steps, with a fault ─> `over` ─> the first right decision ─> checks

Each class has a summary of the incident, its threads, and the virtual seconds after the end of
the fault within which the first right decision has to be made. The rules of all scenarios apply
too; at the end no node is overcommitted by what the API shows, by bindings of any scheduler.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from asched.core.framework.effects import Bind
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.faults import Fault
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import Step
from asched_lab.sim.world import World

Json = dict[str, Any]


class Incident(Scenario):
    """Base of all incidents. Subclasses define `build` in place of `setup`, and `check_end` in
    place of `check`.
    """

    #: The reported failure, in a sentence.
    what: ClassVar[str] = ""
    #: Its threads, as repository#number.
    threads: ClassVar[str] = ""
    #: Seconds from the end of the fault to the first right decision, at most.
    recovers_in_s: ClassVar[float] = math.inf

    def setup(self, world: World) -> None:
        self._over_s: float | None = None
        world.on_bound.append(lambda bind: self._bound(world, bind))
        self.build(world)

    def build(self, world: World) -> None:
        """Create the objects that exist before the fault."""

    def check_end(self, world: World) -> None:
        """Check the end state of this incident."""

    def counts(self, bind: Bind) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a binding is a right decision."""
        return True

    def is_checked(self, node: Json) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a scheduler could have known the size of the node."""
        return True

    def over(self, world: World) -> None:
        """The fault ends at this moment."""
        self._over_s = world.clock.now_s()
        world.note("the fault is over")

    def _bound(self, world: World, bind: Bind) -> None:
        if self._over_s is not None and self.counts(bind):
            world.recoveries_s.append(world.clock.now_s() - self._over_s)
            self._over_s = None

    def check(self, world: World) -> None:
        assert self._over_s is None, "no right decision was made after the fault"
        for seconds in world.recoveries_s:
            assert seconds <= self.recovers_in_s, f"it took {seconds:.1f} s to recover"
        pods = [pod for pod in world.pods() if not is_through(pod)]
        nodes = [node for node in world.nodes() if self.is_checked(node)]
        broken = [line for line in EndState(nodes, pods).broken_rules() if "over" in line]
        assert not broken, broken[0]
        self.check_end(world)


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(Step):
    """Run a function as a step; `name` describes it."""

    name: str
    act: Callable[[World], object] = field(compare=False)

    def do(self, world: World) -> None:
        world.note(self.name)
        self.act(world)


def over(incident: Incident, wait_s: float | None = None) -> Do:
    """The fault ends."""
    return Do(name="over", act=incident.over, wait_s=wait_s)


def begin(*faults: Fault, wait_s: float) -> Do:
    """Put these faults in force for `wait_s` and longer."""

    def act(world: World) -> None:
        for fault in faults:
            world.active_faults.begin(fault)

    names = ", ".join(type(fault).__name__ for fault in faults)
    return Do(name=f"from now on: {names}", act=act, wait_s=wait_s)


def end(*kinds: type[Fault], wait_s: float = 0.0) -> Do:
    """End these faults."""

    def act(world: World) -> None:
        for kind in kinds:
            world.active_faults.end(kind)

    return Do(name="no more: " + ", ".join(kind.__name__ for kind in kinds), act=act, wait_s=wait_s)


def expire_watches(world: World) -> None:
    """End every stream with 410, so that everything is listed again."""
    for process in world.processes:
        for stream in tuple(process.wire.streams.values()):
            stream.expire()


def break_watches(world: World) -> None:
    """Every connection breaks."""
    for process in world.processes:
        for stream in tuple(process.wire.streams.values()):
            stream.break_()
