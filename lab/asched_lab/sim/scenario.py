"""A scenario: a world with a set-up, steps, faults, and checks of the end state.

    setup ─> steps under faults (safety) ─> faults off, time passes (liveness) ─> check

Safety: no rule is broken at any moment (`ledger.py`, `judgement.py`). Liveness: once faults are
over, all work finishes, nothing is lost, every pod that fits is placed, and each other pod has a
condition that says why. `play` raises `Broken`, whose first line names scenario and seed: with
these the run is repeated exactly, and with a `Cut` the reduced run (`shrinking.py`).
"""

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.extenders import ExtenderRule
from asched_lab.sim.faults import Fault
from asched_lab.sim.judgement import (
    audit,
    lost,
    sleepers,
    stale,
    stale_nominations,
    unexplained,
    unsettled,
)
from asched_lab.sim.moments import Moments
from asched_lab.sim.steps import AddPods, Step
from asched_lab.sim.world import World

Json = dict[str, Any]

#: Virtual seconds after the last fault in which all work must finish: the longest lag of a stream,
#: all retries of one write (a minute), and the longest backoff (10 s), with a margin.
SETTLE_S: Final = 120.0
#: ... and in which every unschedulable pod is tried once more by the five-minute sweep: needed if
#: there are such pods.
SWEEP_S: Final = 400.0
#: Fields of a spec whose rules the checker does not know.
HEEDED: Final = frozenset({"schedulingGates", "schedulingGroup", "volumes", "resourceClaims"})
#: Lines of the trace that a failure shows.
SHOWN: Final = 25


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left out of a run: faults by name, all steps but these (time passes all the same, up
    to the last of them), all pods of a step but one.
    """

    without: tuple[str, ...] = ()
    only: tuple[int, ...] | None = None
    single: bool = False

    def lasts(self, number: int) -> bool:
        """Whether this step, or one after it, is left."""
        return self.only is None or number <= max(self.only, default=-1)

    def of(self, step: Step, number: int) -> Step | None:
        """The reduced step."""
        if self.only is not None and number not in self.only:
            return None
        return replace(step, count=1) if self.single and isinstance(step, AddPods) else step


WHOLE: Final = Cut()


def profile(*plugins: str, without: str = "", **args: Json) -> Json:
    """A configuration with these plugins `without` another one, and the arguments of some."""
    points: Json = {"enabled": [{"name": name} for name in plugins]}
    if without:
        points["disabled"] = [{"name": without}]
    given = [{"name": name, "args": values} for name, values in args.items()]
    return {"profiles": [{"plugins": {"multiPoint": points}, "pluginConfig": given}]}


class Broken(AssertionError):  # noqa: N818 - a broken rule
    """A rule was broken. The first line names the seed."""

    def __init__(self, scenario: str, world: World, findings: list[str], cut: Cut = WHOLE) -> None:
        lines = [f"scenario {scenario}, seed {world.seed}: {findings[0]}", *findings[1:]]
        lines += ["last things that happened:", *list(world.trace)[-SHOWN:]]
        super().__init__("\n".join(lines))
        self.findings = findings
        self.world = world
        self.cut = cut


class Scenario:
    """Base of all scenarios; the docstring of each describes its events and rules."""

    faults: ClassVar[tuple[Fault, ...]] = ()
    config: ClassVar[Json] = {}
    #: Number of rounds, or of steps, of scenarios that repeat one.
    rounds: ClassVar[int] = 25
    #: Classes of user plugins that the configuration names.
    plugins: ClassVar[tuple[type[Any], ...]] = ()
    #: One rule for each extender of the configuration.
    extender_rules: ClassVar[tuple[ExtenderRule, ...]] = ()
    #: Feature gates that differ from the defaults.
    gates: ClassVar[Mapping[str, bool]] = {}
    #: Number of processes, of which one leads or all share the pools; of each seed one in turn.
    replicas: ClassVar[int | tuple[int, ...]] = 1
    #: Time in which processes compare all they know with the server once; 0: they do not.
    audit_period_s: ClassVar[float] = 0.0
    #: Virtual seconds until all work must be finished.
    settle_s: ClassVar[float] = SETTLE_S
    #: Whether every unschedulable pod is to be tried once more by the sweep.
    awaits_sweep: ClassVar[bool] = True
    #: Plugins whose result changes without a change in the cluster: pods that rest because of these
    #: alone are only tried again by the sweep.
    moody: ClassVar[frozenset[str]] = frozenset()
    #: Plugins that reserve room for waiting pods: a pod that they reject is not expected to be
    #: placed by its spec alone.
    keepers: ClassVar[frozenset[str]] = frozenset()
    #: Plugins that reject nodes which all filters admit: the scenario's `check` verifies them.
    beyond_filters: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def config_of(cls, seed: int) -> Json:  # noqa: ARG003 - for subclasses
        """The configuration in the run of a seed."""
        return cls.config

    @classmethod
    def replicas_of(cls, seed: int) -> int:
        """The number of processes in the run of a seed."""
        counts = cls.replicas
        return counts if isinstance(counts, int) else counts[seed % len(counts)]

    def setup(self, world: World) -> None:
        """Create the objects that exist before the first step."""

    def start(self, world: World) -> Iterator[Step]:  # noqa: ARG002 - for subclasses
        """The steps. Time passes between one step and the next."""
        raise AssertionError(f"{type(self).__name__} has no steps")

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the pod's spec alone determines its nodes."""
        return True

    def check(self, world: World) -> None:
        """Check the end state beyond the rules of all scenarios."""


def play(kind: type[Scenario], seed: int, cut: Cut = WHOLE, record: Path | None = None) -> World:
    """Run a scenario. Raises Broken, also for any other exception.

    `record` is a folder for a recording of each process.
    """
    with World(
        seed,
        [fault for fault in kind.faults if type(fault).__name__ not in cut.without],
        kind.config_of(seed),
        plugins=kind.plugins,
        extender_rules=kind.extender_rules,
        replicas=kind.replicas_of(seed),
        record=record,
        gates=kind.gates,
        audit_period_s=kind.audit_period_s,
    ) as world:
        try:
            findings = _run(kind, world, cut)
        except AssertionError as error:
            raise Broken(kind.__name__, world, [str(error) or repr(error)], cut) from error
        except Exception as error:
            raise Broken(kind.__name__, world, [_where(error)], cut) from error
        if findings:
            raise Broken(kind.__name__, world, findings, cut)
    return world


def _run(kind: type[Scenario], world: World, cut: Cut) -> list[str]:
    """The broken rules, as soon as there is one."""
    scenario = kind()
    Moments(world, kind.moody)
    scenario.setup(world)
    for number, step in enumerate(scenario.start(world)):
        if not cut.lasts(number):
            break
        world.step_count = number + 1
        reduced = cut.of(step, number)
        if reduced is not None:
            reduced.do(world)
        world.run_for(_pause_s(world, step))
        if world.ledger.broken:
            return world.ledger.broken
    world.active_faults.is_on = False
    world.note("all faults end")
    world.run_for(kind.settle_s)
    findings = world.ledger.broken + _unfinished(
        scenario, world, kind.moody, may_be_late=bool(world.ended)
    )
    if findings:
        return findings
    if kind.awaits_sweep:
        if world.waiting():
            world.run_for(SWEEP_S)
        findings = world.ledger.broken + _unfinished(scenario, world)
    findings += unexplained(world)
    if not findings:
        scenario.check(world)
    return findings


def _where(error: Exception) -> str:
    """The exception, and the line of this package that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"


def _unfinished(
    scenario: Scenario,
    world: World,
    moody: frozenset[str] = frozenset(),
    *,
    may_be_late: bool = False,
) -> list[str]:
    found = []
    for process in world.deciding:
        world.acting = process
        found += _unfinished_of_acting(scenario, world, moody, may_be_late=may_be_late)
    return found


def _unfinished_of_acting(
    scenario: Scenario, world: World, moody: frozenset[str], *, may_be_late: bool
) -> list[str]:
    moody |= scenario.beyond_filters
    found = [*unsettled(world), *audit(world), *lost(world)]
    if found:  # a process with missing objects cannot place all pods
        return found
    excused = {
        queued.pod.metadata.name
        for queued in world.machine.context.queue.places.unschedulable
        if (queued.rejectors and queued.rejectors <= moody) or queued.rejectors & scenario.keepers
    }
    # A nomination that a dead process had sent is corrected by the pod's next attempt.
    nominations = [] if may_be_late else stale_nominations(world)
    return [
        *sleepers(world, moody),
        *stale(world),
        *nominations,
        *(
            f"pod {name} could be placed"
            for name in could_be_placed(scenario, world)
            if name not in excused
        ),
    ]


def could_be_placed(scenario: Scenario, world: World) -> list[str]:
    """Waiting pods for which the checker finds a node, if it knows all rules that apply to them."""
    pods = [pod for pod in world.pods() if not is_through(pod)]
    end = EndState(world.nodes(), pods, world.server.list("namespaces"))
    for pod in pods:
        promised = pod["status"].get("nominatedNodeName", "")
        is_ours = pod["spec"]["schedulerName"] in world.scheduler_names
        if promised in end.nodes and not is_ours and not pod["spec"].get("nodeName"):
            end.place(pod, promised)  # room that another scheduler nominated
    known = {
        pod["metadata"]["name"]
        for pod in world.waiting()
        if not HEEDED & pod["spec"].keys()
        and not pod["metadata"].get("deletionTimestamp")
        and scenario.is_plain(pod)
    }
    return [name for name in end.could_be_placed() if name in known]


def _pause_s(world: World, step: Step) -> float:
    """Mostly short, so that events coincide; sometimes long, so that the world comes to rest."""
    if step.wait_s is not None:
        return step.wait_s
    dice = world.rng.random()
    if dice < 0.7:
        return world.rng.uniform(0.0, 0.5)
    return world.rng.uniform(0.5, 5.0) if dice < 0.95 else world.rng.uniform(5.0, 60.0)
