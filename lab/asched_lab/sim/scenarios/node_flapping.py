"""Nodes that are created, deleted, tainted and resized."""

from collections.abc import Iterator
from dataclasses import dataclass

from asched.core.framework.effects import Bind
from asched_lab.apiserver.resources import NODES
from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.rules import admits
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Json, Step, end_pods, remove
from asched_lab.sim.world import World

STEPS = 70
COUNT = 5
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Flap(Step):
    """Change a node; sometimes its pods are evicted."""

    node: str

    def do(self, world: World) -> None:
        known = world.server.get("nodes", "", self.node)
        if known is None:
            AddNodes(name=self.node).do(world)
            return
        roll = world.rng.random()
        if roll < 0.15:
            world.note(f"node {self.node} is gone")
            remove(world, "nodes", self.node)
            if world.rng.random() < 0.5:  # it is created again at once
                AddNodes(name=self.node).do(world)
        elif roll < 0.45:
            world.server.ctx.put(NODES, well(known))
        elif roll < 0.6:
            amounts = {**known["status"]["allocatable"], "cpu": world.rng.choice(("0", "1", "4"))}
            amounts["pods"] = world.rng.choice(("0", "3", "110"))
            status = {**known["status"], "capacity": amounts, "allocatable": amounts}
            world.server.ctx.put(NODES, {**known, "status": status})
        else:
            self._fall_ill(world, known)

    def _fall_ill(self, world: World, known: Json) -> None:
        key = world.rng.choice((NOT_READY, UNREACHABLE))
        effects = ["NoSchedule"] + ["NoExecute"] * (world.rng.random() < 0.4)
        taints = [{"key": key, "effect": effect} for effect in effects]
        spec = {**known["spec"], "taints": taints}
        if world.rng.random() < 0.3:
            spec["unschedulable"] = True
        world.server.ctx.put(NODES, {**known, "spec": spec})
        if "NoExecute" in effects:
            end_pods(world, [p for p in world.placed() if p["spec"]["nodeName"] == self.node])


def well(node: Json) -> Json:
    """The node without taints and cordon."""
    spec = {k: v for k, v in node["spec"].items() if k not in ("taints", "unschedulable")}
    return {**node, "spec": spec}


class NodeFlapping(Scenario):
    """No pod is bound to a node known to be tainted; when nodes recover, all are placed."""

    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=1.0), LostAnswers(rate=0.1))

    def setup(self, world: World) -> None:
        world.on_sent.append(_must_be_well)
        for number in range(COUNT):
            AddNodes(name=f"node-{number}").do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            roll = world.rng.random()
            if roll < 0.5:
                yield Flap(node=f"node-{world.rng.randrange(COUNT)}")
            elif roll < 0.85:
                yield AddPods(count=world.rng.randint(1, 4))
            else:
                yield DeletePods(count=world.rng.randint(1, 3))
        for node in world.nodes():
            world.server.ctx.put(NODES, well(node))
        yield AddNodes(count=2, cpu=(4,))


def _must_be_well(process: Process, bind: Bind) -> None:
    world = process.world
    node = world.seen_node(bind.node)
    pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
    if node is not None and pod is not None and not admits(node, pod):
        world.ledger.complain(f"pod {bind.pod.key} is sent to {bind.node}, known to be ill")
