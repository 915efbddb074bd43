"""A scenario: a world set up, steps done to it, faults beside them, and what must hold in the end.

    setup ─> steps under faults (safety) ─> faults off, time passes (liveness) ─> check

Safety: no rule is broken at any moment (`ledger.py`, `moments.py`). Liveness: once faults are over,
everything is settled, nothing is lost, whoever fits is placed, and the rest was told why. `play`
raises `Broken`, whose first line names scenario and seed: with these two the run is repeated
exactly, and with a `Cut` as much of it as is left (`shrink.py`).
"""

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from asched_lab.sim.checker import EndState
from asched_lab.sim.extenders import Judge
from asched_lab.sim.faults import Fault
from asched_lab.sim.judgement import audit, lost, sleepers, stale, unsettled, untold
from asched_lab.sim.moments import Moments
from asched_lab.sim.steps import AddPods, Step, is_through
from asched_lab.sim.world import World

Json = dict[str, Any]

#: Virtual seconds after the last fault in which everything must be settled: the longest lag of a
#: stream, all retries of one write (a minute), and the longest backoff (10 s), with some to spare.
SETTLE_S: Final = 120.0
#: ... and in which every unschedulable pod is tried once more by the five-minute sweep, if there is
#: one: nothing else happens then.
SWEEP_S: Final = 400.0
#: Fields of a spec that say more about its place than the checker knows.
HEEDED: Final = frozenset({"schedulingGates", "schedulingGroup", "volumes", "resourceClaims"})
#: Lines of the record that a failure shows.
SHOWN: Final = 25


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left out of a life: faults by name, all steps but these (time passes all the same,
    up to the last of them), all pods of a step but one.
    """

    without: tuple[str, ...] = ()
    only: tuple[int, ...] | None = None
    single: bool = False

    def lasts(self, number: int) -> bool:
        """Whether this step, or one after it, is left."""
        return self.only is None or number <= max(self.only, default=-1)

    def of(self, step: Step, number: int) -> Step | None:
        """What is left of a step."""
        if self.only is not None and number not in self.only:
            return None
        return replace(step, count=1) if self.single and isinstance(step, AddPods) else step


WHOLE: Final = Cut()


class Broken(AssertionError):  # noqa: N818 - it names what happened to a rule
    """A rule did not hold. The first line names the seed."""

    def __init__(self, scenario: str, world: World, findings: list[str], cut: Cut = WHOLE) -> None:
        lines = [f"scenario {scenario}, seed {world.seed}: {findings[0]}", *findings[1:]]
        lines += ["last things that happened:", *list(world.trace)[-SHOWN:]]
        super().__init__("\n".join(lines))
        self.findings = findings
        self.world = world
        self.cut = cut


class Scenario:
    """Base of all scenarios; the docstring of each tells its history."""

    faults: ClassVar[tuple[Fault, ...]] = ()
    config: ClassVar[Json] = {}
    #: Classes of users' plugins that the configuration names.
    plugins: ClassVar[tuple[type[Any], ...]] = ()
    #: One for each extender of the configuration.
    judges: ClassVar[tuple[Judge, ...]] = ()
    #: Feature gates that are not as usual.
    gates: ClassVar[Mapping[str, bool]] = {}
    #: Processes, of which one leads.
    replicas: ClassVar[int] = 1
    #: How long processes take to compare all they know with the server once; 0: they do not.
    audit_period_s: ClassVar[float] = 0.0
    #: Virtual seconds until everything must be settled.
    settle_s: ClassVar[float] = SETTLE_S
    #: Whoever changes its mind without a change in the cluster: pods that rest because of these
    #: alone are only tried again by the sweep.
    moody: ClassVar[frozenset[str]] = frozenset()
    #: Plugins that keep room for others who wait: whom they reject the pods' specs alone do not
    #: place.
    keepers: ClassVar[frozenset[str]] = frozenset()
    #: Plugins that refuse what all filters let pass: whether they may, the scenario's `check` says.
    beyond_filters: ClassVar[frozenset[str]] = frozenset()

    def setup(self, world: World) -> None:
        """What is there before the scheduler begins to be tried."""

    def start(self, world: World) -> Iterator[Step]:  # noqa: ARG002 - for those who have steps
        """The steps. The world lives on between one and the next."""
        raise AssertionError(f"{type(self).__name__} has no steps")

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - for those with rules of their own
        """Whether the pod's spec alone says where it may go."""
        return True

    def check(self, world: World) -> None:
        """What must hold in the end beyond what holds for all scenarios."""


def play(kind: type[Scenario], seed: int, cut: Cut = WHOLE, record: Path | None = None) -> World:
    """Live through a scenario. Raises Broken, also for whatever else is raised on the way.

    `record` is a folder that gets a recording of each process.
    """
    with World(
        seed,
        [fault for fault in kind.faults if type(fault).__name__ not in cut.without],
        kind.config,
        plugins=kind.plugins,
        judges=kind.judges,
        replicas=kind.replicas,
        record=record,
        gates=kind.gates,
        audit_period_s=kind.audit_period_s,
    ) as world:
        try:
            findings = _live(kind, world, cut)
        except AssertionError as error:
            raise Broken(kind.__name__, world, [str(error) or repr(error)], cut) from error
        except Exception as error:
            raise Broken(kind.__name__, world, [_where(error)], cut) from error
        if findings:
            raise Broken(kind.__name__, world, findings, cut)
    return world


def _live(kind: type[Scenario], world: World, cut: Cut) -> list[str]:
    """The rules that were broken, as soon as one was."""
    scenario = kind()
    Moments(world, kind.moody)
    scenario.setup(world)
    for number, step in enumerate(scenario.start(world)):
        if not cut.lasts(number):
            break
        world.step_count = number + 1
        left = cut.of(step, number)
        if left is not None:
            left.do(world)
        world.run_for(_pause_s(world, step))
        if world.ledger.broken:
            return world.ledger.broken
    world.troubles.is_on = False
    world.note("all faults end")
    world.run_for(kind.settle_s)
    findings = world.ledger.broken + _unfinished(scenario, world, kind.moody)
    if findings:
        return findings
    if world.waiting():
        world.run_for(SWEEP_S)
    findings = world.ledger.broken + _unfinished(scenario, world) + untold(world)
    if not findings:
        scenario.check(world)
    return findings


def _where(error: Exception) -> str:
    """What was raised, and by which line of ours."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"


def _unfinished(scenario: Scenario, world: World, moody: frozenset[str] = frozenset()) -> list[str]:
    moody |= scenario.beyond_filters
    found = [*unsettled(world), *audit(world), *lost(world)]
    if found:  # whoever does not know what there is cannot be asked for more
        return found
    excused = {
        queued.pod.metadata.name
        for queued in world.machine.context.queue.places.unschedulable
        if (queued.rejectors and queued.rejectors <= moody) or queued.rejectors & scenario.keepers
    }
    return [
        *sleepers(world, moody),
        *stale(world),
        *(
            f"pod {name} could be placed"
            for name in could_be_placed(scenario, world)
            if name not in excused
        ),
    ]


def could_be_placed(scenario: Scenario, world: World) -> list[str]:
    """Waiting pods for which the checker finds a node, where it knows all that matters to them."""
    pods = [pod for pod in world.pods() if not is_through(pod)]
    end = EndState(world.nodes(), pods, world.server.list("namespaces"))
    for pod in pods:
        promised = pod["status"].get("nominatedNodeName", "")
        is_ours = pod["spec"]["schedulerName"] in world.scheduler_names
        if promised in end.nodes and not is_ours and not pod["spec"].get("nodeName"):
            end.place(pod, promised)  # room that another scheduler promised is left to it
    known = {
        pod["metadata"]["name"]
        for pod in world.waiting()
        if not HEEDED & pod["spec"].keys()
        and not pod["metadata"].get("deletionTimestamp")
        and scenario.is_plain(pod)
    }
    return [name for name in end.could_be_placed() if name in known]


def _pause_s(world: World, step: Step) -> float:
    """Mostly short, so that things happen at once; sometimes long, so that things come to rest."""
    if step.wait_s is not None:
        return step.wait_s
    dice = world.rng.random()
    if dice < 0.7:
        return world.rng.uniform(0.0, 0.5)
    return world.rng.uniform(0.5, 5.0) if dice < 0.95 else world.rng.uniform(5.0, 60.0)
