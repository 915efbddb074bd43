"""Important pods are created in a full cluster."""

from collections.abc import Iterator

from asched_lab.sim.checker import EndState
from asched_lab.sim.faults import BrokenWatches, LostAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Cordon,
    DeletePods,
    RemoveNode,
    Step,
    is_through,
)
from asched_lab.sim.world import World

ROUNDS = 15
PRIORITIES = (0, 10, 100)


class Preemptors(Scenario):
    """Important pods preempt other pods; victims take time to end, and their events are late."""

    faults = (LostAnswers(rate=0.1), StaleWatch(lag_s_max=5), BrokenWatches(every_s=40))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(1, 4)).do(world)
        AddPods(count=12).do(world)
        if world.rng.random() < 0.5:
            self._protect(world)
        world.run_for(5.0)

    def _protect(self, world: World) -> None:
        """A budget over all pods; preemption may violate it only where it must."""
        allowed = world.rng.randint(0, 2)
        world.server.create(
            "poddisruptionbudgets",
            {
                "metadata": {"name": "budget", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "pod"}}},
                "status": {"disruptionsAllowed": allowed},
            },
        )

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            number = world.rng.randint(1, 3)
            yield AddPods(count=number, priority=world.rng.choice(PRIORITIES))
            roll = world.rng.random()
            nodes = world.node_names()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.3:
                yield AddNodes()
            elif roll < 0.4 and nodes:
                yield Cordon(node=world.rng.choice(nodes), unschedulable=roll < 0.35)
            elif roll < 0.45 and len(nodes) > 1:
                yield RemoveNode(node=world.rng.choice(nodes))

    def check(self, world: World) -> None:
        """No pod waits where it could preempt pods of lower priority."""
        pods = [pod for pod in world.pods() if not is_through(pod)]
        for waiting in world.waiting():
            mine = waiting["spec"].get("priority", 0)
            remaining = [
                p
                for p in pods
                if p["spec"].get("nodeName") and p["spec"].get("priority", 0) >= mine
            ]
            end = EndState(world.nodes(), remaining)
            room = [name for name in end.nodes if end.has_place(name, waiting)]
            name = waiting["metadata"]["name"]
            assert not room, f"pod {name} of priority {mine} could push others out of {room}"
