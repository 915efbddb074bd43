"""Several profiles in one process, with another scheduler in the cluster."""

from collections.abc import Iterator
from typing import ClassVar

from asched.core.framework.effects import Bind
from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Cordon, DeletePods, Json, Rival, Step
from asched_lab.sim.world import SCHEDULER, World

ROUNDS = 30
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

    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=0.5), LostAnswers(rate=0.1))
    config: ClassVar[Json] = {
        "profiles": [{"schedulerName": SCHEDULER}, PACKER_PROFILE, PICKY_PROFILE]
    }

    def setup(self, world: World) -> None:
        world.on_sent.append(must_be_ours)
        AddNodes(count=world.rng.randint(3, 6)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
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
