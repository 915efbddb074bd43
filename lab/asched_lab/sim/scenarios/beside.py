"""Another scheduler in the cluster; several profiles in one process, and reloads of them.

Source  host/configuration/reload.py; replaced are the pages, the count of reloads, and the
        extenders (the judges of a world are fixed)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Final, cast

from asched.core.config.v1 import Extender, SchedulerConfiguration
from asched.core.framework.effects import Bind
from asched.core.framework.runner import Runner
from asched.core.model.kinds import Kind
from asched.host.configuration.reload import DesiredSetup, Reloader
from asched.host.extenders import Consultants
from asched.serve.inspection import Inspection
from asched.serve.telemetry.component_metrics import OwnMetrics
from asched_lab.apiserver.context import DELETED, Change
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.checker import EndState, amount, is_through
from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Cordon,
    DeletePods,
    Json,
    Rival,
    Step,
    bind_theirs,
    cpu_of,
    pod_manifest,
    wipe,
)
from asched_lab.sim.world import SCHEDULER, World


class Rivalry(Scenario):
    """A second scheduler takes free places, and pods of this scheduler with them."""

    rounds = 30
    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=0.5))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 6), cpu=(4, 8)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 4), wait_s=world.rng.uniform(0.0, 0.05))
            yield Rival(count=world.rng.randint(1, 3))
            if world.rng.random() < 0.3:
                yield DeletePods(count=3)


NODES: Final = 10
CPU: Final = 16
#: Requests of pods of both schedulers (milli-CPU), and the requested share of the cluster.
REQUESTS: Final = (250, 500, 1000, 2000)
FULL: Final = NODES * CPU * 950
#: Age of the other scheduler's data (s).
LATE_S_MAX: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnover(Step):
    """As many pods of each side are deleted as created; a controller replaces refused pods of this
    scheduler and deletes them. `under_way`: what the other scheduler has chosen and not bound yet,
    by uid; it knows its own choices at once.
    """

    under_way: dict[str, tuple[Json, str]] = field(compare=False)

    def do(self, world: World) -> None:
        make_ours(world)
        theirs = _pod(world, "theirs")
        theirs["spec"]["schedulerName"] = "rival"
        made = world.server.create("pods", theirs)
        _make_way(world)
        end = EndState(world.nodes(), [p for p in world.pods() if not is_through(p)])
        for pod, node in self.under_way.values():
            end.place(pod, node)
        open_to_it = [name for name in end.nodes if end.has_place(name, made)]
        if open_to_it:
            node, late_s = world.rng.choice(open_to_it), world.rng.uniform(0.0, LATE_S_MAX)
            self.under_way[made["metadata"]["uid"]] = made, node
            world.clock.after(late_s, lambda: self._bind(world, made, node))

    def _bind(self, world: World, pod: Json, node: str) -> None:
        """Bind with old data; the kubelet detects conflicts."""
        del self.under_way[pod["metadata"]["uid"]]
        world.figures["theirs"] += bind_theirs(world, pod, node)


def make_ours(world: World) -> None:
    pod = _pod(world, "ours")
    name = pod["metadata"]["name"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    pod["metadata"]["ownerReferences"] = [{**owner, "uid": name}]
    world.server.create("pods", pod)


def _pod(world: World, owner: str) -> Json:
    return pod_manifest(f"{owner}-{next(world.numbers)}", f"{world.rng.choice(REQUESTS)}m")


def _asks(pod: Json) -> int:
    return int(amount(cpu_of(pod)) * 1000)


def _make_way(world: World) -> None:
    """Delete pods until running and waiting pods request no more than the target."""
    running = world.shuffled([pod for pod in world.placed() if not is_through(pod)])
    requested = sum(map(_asks, running)) + sum(_asks(p) for p in world.pods() if _waits(p))
    while requested > FULL and running:
        pod = running.pop()
        requested -= _asks(pod)
        wipe(world, pod)


def _waits(pod: Json) -> bool:
    return not pod["spec"].get("nodeName")


class Contested(Scenario):
    """A pod that exceeds its node is refused by the kubelet; in the end no pod of this scheduler is
    left refused, and no node is overcommitted.
    """

    rounds = 120
    faults = (StaleWatch(lag_s_max=1.0),)

    def setup(self, world: World) -> None:
        world.inhabitants.refuses = True
        AddNodes(count=NODES, cpu=(CPU,), pods=(110,)).do(world)
        while sum(map(_asks, world.pods())) < FULL:
            make_ours(world)
        world.run_for(15.0)
        world.figures.clear()
        world.on_bound.append(lambda _: world.figures.update(ours=1))
        world.server.store.table(PODS.storage).listeners.append(lambda c: _see(world, c))

    def start(self, world: World) -> Iterator[Step]:
        under_way: dict[str, tuple[Json, str]] = {}
        for _ in range(self.rounds):
            yield Turnover(under_way=under_way, wait_s=world.rng.uniform(0.0, 0.4))

    def check(self, world: World) -> None:
        refused = [
            p["metadata"]["name"] for p in world.pods() if p["status"].get("phase") == "Failed"
        ]
        assert not refused, f"{refused} were refused, and no controller replaced them"
        pods = [pod for pod in world.pods() if not is_through(pod)]
        broken = [line for line in EndState(world.nodes(), pods).broken_rules() if "over" in line]
        assert not broken, broken[0]


def _see(world: World, change: Change) -> None:
    pod = change.new.obj
    if change.type == DELETED or pod["status"].get("phase") != "Failed":
        return
    is_ours = pod["metadata"]["name"].startswith("ours-")
    world.figures["refused"] += 1
    world.figures["ours refused"] += is_ours
    if is_ours:
        world.clock.after(1.0, lambda: make_ours(world))
    world.clock.after(1.0, lambda: wipe(world, pod))


PACKER, PICKY, OTHER = "packer", "picky", "other-scheduler"
_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}

PICKY_PROFILE: Json = {
    "schedulerName": PICKY,
    "pluginConfig": [
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_SSD]}
                }
            },
        }
    ],
}
PACKER_PROFILE: Json = {
    "schedulerName": PACKER,
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        }
    ],
}


class SideBySide(Scenario):
    """Every pod is placed by its own profile, and pods of other schedulers are left alone.

    Profiles share nodes, nominations and preemption; a rival takes room and pods from all of them.
    """

    rounds = 30
    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=0.5), LostAnswers(rate=0.1))
    config: ClassVar[Json] = {
        "profiles": [{"schedulerName": SCHEDULER}, PACKER_PROFILE, PICKY_PROFILE]
    }

    def setup(self, world: World) -> None:
        world.on_sent.append(must_be_ours)
        AddNodes(count=world.rng.randint(3, 6)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            priority = world.rng.choice((0, 0, 0, 10, 100))
            yield AddPods(count=world.rng.randint(1, 4), priority=priority, make=for_any_scheduler)
            yield Rival(count=world.rng.randint(0, 2))
            roll = world.rng.random()
            if roll < 0.3:
                yield DeletePods(count=3)
            elif roll < 0.4:
                yield Cordon(node=world.rng.choice(world.node_names()), unschedulable=roll < 0.35)
            elif roll < 0.5:
                yield AddNodes()

    def is_plain(self, pod: Json) -> bool:
        return bool(pod["spec"]["schedulerName"] != PICKY)

    def check(self, world: World) -> None:
        for pod in world.pods():
            if pod["spec"]["schedulerName"] == OTHER:
                name = pod["metadata"]["name"]
                assert not pod["spec"].get("nodeName"), f"{name} was not ours to place"
                assert not pod["status"].get("conditions"), (
                    f"{name} has a condition of this scheduler"
                )


def for_any_scheduler(world: World, pod: Json) -> None:
    """A pod of one of the profiles, or of another scheduler."""
    names = (SCHEDULER, PACKER, PICKY, OTHER)
    pod["spec"]["schedulerName"] = world.rng.choices(names, weights=(3, 3, 3, 1))[0]


def must_be_ours(process: Process, bind: Bind) -> None:
    """Complain about pods of other schedulers, and about a picky pod on a plain disk."""
    world = process.world
    pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
    node = world.seen_node(bind.node)
    if pod is None or node is None or pod["metadata"]["uid"] != bind.pod.uid:
        return
    name = pod["spec"]["schedulerName"]
    if name not in world.scheduler_names:
        world.ledger.complain(f"pod {bind.pod.key} of {name} is bound by us")
    if name == PICKY and node["metadata"]["labels"].get("disk") != "ssd":
        world.ledger.complain(f"picky pod {bind.pod.key} is sent to {bind.node} without ssd")


class _StandIn:
    """Pages, extenders and metrics as far as a reload uses them."""

    def __init__(self, current: SchedulerConfiguration) -> None:
        self.current = current
        self.outcome = ""
        self.reloads = SimpleNamespace(add=self._note)

    def _note(self, outcome: str) -> None:
        self.outcome = outcome

    def chain(self, extenders: Sequence[Extender]) -> None:
        """Runners have their own extenders."""

    def prepare(self, extenders: Sequence[Extender]) -> tuple[Kind, ...]:  # noqa: ARG002
        return ()

    def adopt(self, extenders: Sequence[Extender], chain: None) -> None:
        """The judges of a world are fixed."""


def reload(world: World, config: dict[str, Any]) -> str:
    """Replace the configuration between two turns; return the outcome for the metrics."""
    wanted = world.effective(config)
    stand_in: Any = _StandIn(world.setup.configuration)
    setup = replace(world.setup, configuration=wanted)

    async def load() -> DesiredSetup:
        return DesiredSetup(wanted)

    async def build(_wanted: DesiredSetup, _chain: object) -> dict[str, Runner]:
        return setup.runners(world.parts)

    process = world.acting
    reloader = Reloader(
        process.scheduler,
        cast("Inspection", stand_in),
        cast("Consultants", stand_in),
        cast("OwnMetrics", stand_in),
        current=DesiredSetup(world.setup.configuration),
        load=load,
        build=build,
        files=tuple,
    )
    process.loop.run_until_complete(reloader.reload())
    if stand_in.outcome == "applied":
        world.setup = setup
    outcome: str = stand_in.outcome
    return outcome


PLAIN: Json = {"schedulerName": SCHEDULER}
#: Every filter except that of resources is off: more nodes than before admit a pod.
CARELESS: Json = {
    **PLAIN,
    "plugins": {
        "filter": {
            "enabled": [{"name": "NodeResourcesFit"}, {"name": "NodePorts"}],
            "disabled": [{"name": "*"}],
        }
    },
}
#: Scheduler names that are in both configurations.
ALIKE = [{"schedulerName": name} for name in (PACKER, PICKY)]
CONFIGS: tuple[Json, ...] = (
    {"profiles": [PLAIN]},
    {"profiles": [PLAIN, PICKY_PROFILE]},
    {"profiles": [PACKER_PROFILE]},
    {"profiles": [CARELESS, PACKER_PROFILE]},
    {"profiles": [PLAIN, *ALIKE]},
    {"profiles": [{**PLAIN, "percentageOfNodesToScore": 40}, PICKY_PROFILE, PACKER_PROFILE]},
    {"profiles": [PLAIN], "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 4},
)
ALL: Json = {"profiles": [PLAIN, PACKER_PROFILE, PICKY_PROFILE]}


@dataclass(frozen=True, slots=True)
class Reload(Step):
    """Replace the configuration between two turns."""

    config: int | None = None

    def do(self, world: World) -> None:
        number = self.config if self.config is not None else world.rng.randrange(len(CONFIGS))
        outcome = reload(world, ALL if number < 0 else CONFIGS[number])
        world.note(f"configuration {number}: {outcome}")


class Reloads(Scenario):
    """Profiles are added, removed and changed while pods are in every phase; no pod is lost or
    sleeps.
    """

    rounds = 40
    faults = (StaleWatch(lag_s_max=3), SlowAnswers(seconds_max=1.0), LostAnswers(rate=0.1))
    config: ClassVar[Json] = ALL

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 5)).do(world)

    def is_plain(self, pod: Json) -> bool:
        return bool(pod["spec"]["schedulerName"] != PICKY)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.35:
                yield Reload()
            elif roll < 0.8:
                priority = world.rng.choice((0, 0, 10))
                yield AddPods(
                    count=world.rng.randint(1, 4), priority=priority, make=for_any_scheduler
                )
            elif roll < 0.9:
                yield DeletePods(count=2)
            else:
                yield AddNodes()
        yield Reload(config=-1 if world.rng.random() < 0.7 else None)
