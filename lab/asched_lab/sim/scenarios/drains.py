"""Nodes that are drained by `asched drain`: the taint is set, renewed and removed as it does."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched import names
from asched_lab.apiserver.resources import NODES
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.controllers import Controllers
from asched_lab.sim.faults import unreliable
from asched_lab.sim.move_judge import MoveJudge
from asched_lab.sim.scenarios.moves import CPU, MovedPods
from asched_lab.sim.steps import AddNodes, AddPods, Step, Wait
from asched_lab.sim.world import World

RENEWED_S: Final = 40.0
VALID_S: Final = 120.0


class DrainedNodes(MovedPods):
    """Nodes with pods of controllers are drained, one after the other, with free room elsewhere;
    pods are no longer on a node unless no other node takes them, or their budget forbids it.
    """

    rounds = 4

    def setup(self, world: World) -> None:
        self.controllers = Controllers(world)
        AddNodes(count=world.rng.randint(4, 7), cpu=(CPU,), pods=(20,)).do(world)
        self.move_rules = MoveJudge(world, is_quiet=self.is_quiet, pause_s=0.0)
        for number in range(world.rng.randint(3, 6)):
            self._controller(world, f"app{number}")
        world.run_for(60.0)

    def events(self, world: World, number: int) -> Iterator[Step]:  # noqa: ARG002
        nodes = [node for node in world.nodes() if not node["spec"].get("unschedulable")]
        if len(nodes) < 2:
            return
        node = world.rng.choice(nodes)["metadata"]["name"]
        for _ in range(world.rng.randint(3, 5)):
            self._request(world, node)
            yield Wait(wait_s=RENEWED_S)
        if self.is_quiet:
            self._check_drained(world, node)
        self._end(world, node, uncordons=world.rng.random() < 0.6)
        yield Wait(wait_s=world.rng.uniform(0.0, 30.0))

    def _request(self, world: World, name: str) -> None:
        node = world.server.get("nodes", "", name)
        if node is None:
            return
        until_s = int(world.clock.now_s() + VALID_S)
        taint = {"key": names.DRAIN_TAINT, "value": f"{until_s}", "effect": "PreferNoSchedule"}
        spec = {**node["spec"], "unschedulable": True, "taints": [taint]}
        world.server.ctx.put(NODES, {**node, "spec": spec})

    def _end(self, world: World, name: str, *, uncordons: bool) -> None:
        node = world.server.get("nodes", "", name)
        if node is None:
            return
        spec = {k: v for k, v in node["spec"].items() if k != "taints"}
        if uncordons:
            del spec["unschedulable"]
        world.server.ctx.put(NODES, {**node, "spec": spec})

    def _check_drained(self, world: World, node: str) -> None:
        pods = [pod for pod in world.pods() if not is_through(pod)]
        budgets = {
            budget["metadata"]["name"]
            for budget in world.server.list("poddisruptionbudgets", "default")
            if not budget["status"].get("disruptionsAllowed")
        }
        for pod in pods:
            app = (pod["metadata"].get("labels") or {}).get("app")
            is_there = pod["spec"].get("nodeName") == node
            if not is_there or app in budgets or pod["metadata"].get("deletionTimestamp"):
                continue
            bare = {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "nodeName"}}
            end = EndState(world.nodes(), [other for other in pods if other is not pod])
            fitting = [name for name in end.nodes if name != node and end.fits(name, bare)]
            if fitting:
                text = f"{pod['metadata']['name']} is still on {node}, and would fit on {fitting}"
                world.ledger.complain(text)


class DrainedNodesAmidFaults(DrainedNodes):
    """The same, while the scheduler dies, answers get lost, watches are late, and pods arrive."""

    faults = unreliable(0.1, lag_s=4, restarts_s=60)
    is_quiet: ClassVar[bool] = False

    def events(self, world: World, number: int) -> Iterator[Step]:
        yield from super().events(world, number)
        if world.rng.random() < 0.5:
            priority = world.rng.choice((0, 0, 100))
            yield AddPods(count=2, cpu=("500m", "1"), priority=priority)
        else:
            yield AddNodes(cpu=(CPU,), pods=(20,))
