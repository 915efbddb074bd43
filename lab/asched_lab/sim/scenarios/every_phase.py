"""Pods that are deleted in every phase."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from asched.core.framework.waiting import Stage
from asched_lab.apiserver import deletion
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import LostAnswers, ServerErrors, SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.permit_waits import AllowAll, Doorman, Porter, user_plugin
from asched_lab.sim.steps import AddNodes, AddPods, Json, OpenGates, Step
from asched_lab.sim.world import World

STEPS = 80
NAMES = 12
PHASES = (
    "active",
    "backoff",
    "errors",
    "unschedulable",
    "gated",
    "permit",
    "preBind",
    "binding",
    "placed",
)


@dataclass(frozen=True, slots=True)
class DeleteIn(Step):
    """Delete a pod in this phase, at once or with grace; sometimes another pod is created under its
    name.
    """

    phase: str
    hits: Counter[str]

    def do(self, world: World) -> None:
        keys = keys_in(world, self.phase)
        if not keys:
            return
        namespace, _, name = world.rng.choice(keys).partition("/")
        record = world.server.ctx.get(PODS, namespace, name)
        if record is None:
            return
        self.hits[self.phase] += 1
        world.note(f"delete {name} in phase {self.phase}")
        grace_s = world.rng.choice((0, 30))
        deletion.delete(world.server.ctx, PODS, record, {"gracePeriodSeconds": grace_s})
        if world.rng.random() < 0.4:
            AddPods(name=name, make=_any_outcome).do(world)


def keys_in(world: World, phase: str) -> list[str]:
    """Keys of pods in a phase, as the scheduler knows it."""
    context = world.machine.context
    if phase == "placed":
        return [f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in world.placed()]
    stages = {"permit": Stage.PERMIT, "preBind": Stage.PRE_BIND, "binding": Stage.BINDING}
    if phase in stages:
        stage = stages[phase]
        return [waiting.info.pod.key for waiting in context.waiting if waiting.stage is stage]
    return [queued.key for queued in getattr(context.queue.places.listing(), phase)]


class EveryPhase(Scenario):
    """Everything that a deleted pod held is given back, and its successor under the same name is
    not confused with it.
    """

    faults = (
        SlowAnswers(seconds_max=2.0),
        StaleWatch(lag_s_max=3),
        LostAnswers(rate=0.1),
        ServerErrors(rate=0.05),
    )
    plugins = (Doorman, Porter)
    config: ClassVar[Json] = {
        "profiles": [
            {"plugins": {"multiPoint": {"enabled": [{"name": "Doorman"}, {"name": "Porter"}]}}}
        ]
    }

    def setup(self, world: World) -> None:
        self.hits: Counter[str] = Counter()
        AddNodes(count=world.rng.randint(1, 3), cpu=(1, 2), pods=(10,)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            roll = world.rng.random()
            if roll < 0.5:
                name = f"db-{world.rng.randrange(NAMES)}"
                yield AddPods(name=name, priority=world.rng.choice((0, 0, 10)), make=_any_outcome)
            elif roll < 0.95:
                yield DeleteIn(phase=world.rng.choice(PHASES), hits=self.hits)
            else:
                yield OpenGates()
        yield OpenGates()
        yield AllowAll()

    def check(self, world: World) -> None:
        assert len(self.hits) > 1, f"only {dict(self.hits)} were hit"
        porter = user_plugin(world.acting, "Porter")
        assert not porter.faults, porter.faults[0]
        assert not porter.held, f"still held for {sorted(porter.held)}"


def _any_outcome(world: World, pod: Json) -> None:
    outcomes, hands = ("open", "slow", "slow", "shut", "late"), ("quick", "slow", "slow", "drop")
    pod["metadata"]["labels"] |= {
        "permit": world.rng.choice(outcomes),
        "hands": world.rng.choice(hands),
    }
    if world.rng.random() < 0.2:
        pod["metadata"]["finalizers"] = ["example.com/hold"]
    if world.rng.random() < 0.15:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
