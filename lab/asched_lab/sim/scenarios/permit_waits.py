"""User plugins that let pods wait, reject them, raise, and hold reservations."""

from asyncio import sleep
from collections.abc import Iterator
from typing import Any, ClassVar

from asched.core.framework.effects import Bind
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Cordon, DeletePods, Json, Step
from asched_lab.sim.world import World

ROUNDS = 30
#: Values of the label `permit` of a pod: its outcome at Permit.
OUTCOMES = ("open", "open", "slow", "slow", "late", "shut", "raises", "odd", "refuses")
#: Values of the label `hands`: its outcome at PreBind.
HANDS = ("quick", "quick", "quick", "slow", "drop", "raise")


class Doorman:
    """Permit: lets pods wait, and decides by their label."""

    permit_timeout_s = 8.0

    def __init__(self) -> None:
        self.allowed: dict[str, str] = {}  # pod's uid -> the node it may go to

    async def permit(self, pod: Any, node: Any) -> Any:
        self.allowed.pop(pod.uid, None)
        outcome = pod.labels.get("permit", "open")
        if outcome == "slow":
            await sleep(len(pod.name) % 7 + 0.5)
        elif outcome == "late":
            await sleep(30.0)
        elif outcome == "shut":
            await sleep(0.3)
            return "closed"
        elif outcome == "raises":
            raise RuntimeError("planted failure at Permit")
        elif outcome == "odd":
            return 42
        elif outcome == "refuses":
            return "not today"
        self.allowed[pod.uid] = node.name
        return None


class Porter:
    """Reserve, PreBind and PostBind: holds a reservation for each pod on its way."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}  # pod's uid -> the node it is held on
        self.faults: list[str] = []

    def reserve(self, pod: Any, node: Any) -> None:
        if pod.uid in self.held:
            self.faults.append(f"{pod.key} is reserved twice")
        self.held[pod.uid] = node.name

    def unreserve(self, pod: Any, node: Any) -> None:
        if self.held.pop(pod.uid, node.name) != node.name:
            self.faults.append(f"{pod.key} is given back on the wrong node")

    async def pre_bind(self, pod: Any, node: Any) -> Any:
        if self.held.get(pod.uid) != node.name:
            self.faults.append(f"{pod.key} comes to PreBind without a reservation")
        hands = pod.labels.get("hands", "quick")
        if hands == "slow":
            await sleep(2.0)
        elif hands == "drop":
            await sleep(0.5)
            return "it fell down"
        elif hands == "raise":
            raise RuntimeError("the porter fell down")
        return None

    def post_bind(self, pod: Any, node: Any) -> None:
        if self.held.pop(pod.uid, "") != node.name:
            self.faults.append(f"{pod.key} was bound without a reservation")


class PermitWaits(Scenario):
    """No pod passes Permit that the plugin did not allow, and every reservation is given back.

    In the end all pods are allowed, and every pod that fits is placed.
    """

    faults = (StaleWatch(lag_s_max=3), SlowAnswers(seconds_max=0.5), LostAnswers(rate=0.1))
    plugins = (Doorman, Porter)
    config: ClassVar[Json] = {
        "profiles": [
            {"plugins": {"multiPoint": {"enabled": [{"name": "Doorman"}, {"name": "Porter"}]}}}
        ]
    }

    def setup(self, world: World) -> None:
        world.on_sent.append(_must_be_allowed)
        AddNodes(count=world.rng.randint(1, 4)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            number = world.rng.randint(1, 3)
            yield AddPods(count=number, priority=world.rng.choice((0, 0, 10)), make=_labelled)
            roll = world.rng.random()
            if roll < 0.25:
                yield DeletePods(count=2)
            elif roll < 0.35:
                yield AddNodes()
            elif roll < 0.45:
                node = world.rng.choice(world.node_names())
                yield Cordon(node=node, unschedulable=roll < 0.4)
        yield AllowAll()

    def check(self, world: World) -> None:
        porter = user_plugin(world.acting, "Porter")
        assert not porter.faults, porter.faults[0]
        assert not porter.held, f"still held for {sorted(porter.held)}"


class AllowAll(Step):
    """Allow every pod from now on."""

    def do(self, world: World) -> None:
        for pod in world.waiting():
            labels = {**pod["metadata"]["labels"], "permit": "open", "hands": "quick"}
            world.server.ctx.put(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})


def user_plugin(process: Process, name: str) -> Any:
    """The user's instance of a plugin of the first profile."""
    runner = next(iter(process.machine.context.runners.values()))
    adapted: Any = runner.profile.plugins[name]
    return adapted.user


def _labelled(world: World, pod: Json) -> None:
    labels = {"permit": world.rng.choice(OUTCOMES), "hands": world.rng.choice(HANDS)}
    pod["metadata"]["labels"].update(labels)


def _must_be_allowed(process: Process, bind: Bind) -> None:
    if user_plugin(process, "Doorman").allowed.get(bind.pod.uid) != bind.node:
        process.world.ledger.complain(f"pod {bind.pod.key} is bound and was not let through")
