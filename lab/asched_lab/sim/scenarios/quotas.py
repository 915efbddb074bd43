"""Quotas of namespaces, while answers get lost."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final

from asched.core.framework.effects import Bind
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    DeletePods,
    FinishPods,
    Json,
    Step,
    is_through,
)
from asched_lab.sim.world import World

#: Namespace to (guaranteed, maximum), milli-CPU.
QUOTAS: Final = {"red": (1000, 2500), "green": (2000, 3000), "blue": (500, 500)}
MILLI: Final = {"100m": 100, "300m": 300, "700m": 700}
ROUNDS: Final = 30


class Quotas(Scenario):
    """Pods of three namespaces with quotas, and of one without, some of them important, on a
    cluster that has more room than is guaranteed; the scheduler dies, answers get lost and watches
    are late. By the API objects alone: no binding exceeds the maximum of its namespace, nor the sum
    of what is guaranteed to all of them.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=4),
        BrokenWatches(every_s=40),
        Restarts(every_s=60),
    )
    config: ClassVar[Json] = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
                    "postFilter": {
                        "enabled": [{"name": "CapacityScheduling"}],
                        "disabled": [{"name": "*"}],
                    },
                },
            }
        ]
    }

    def setup(self, world: World) -> None:
        AddNodes(count=4, cpu=(2, 4), pods=(20, 110)).do(world)
        for namespace, (least, most) in QUOTAS.items():
            world.server.create("namespaces", {"metadata": {"name": namespace}})
            spec = {"min": {"cpu": f"{least}m"}, "max": {"cpu": f"{most}m"}}
            quota = {"metadata": {"name": "quota", "namespace": namespace}, "spec": spec}
            world.server.create("elasticquotas", quota)
        world.on_bound.append(lambda bind: self._bound(world, bind))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            roll = world.rng.random()
            if roll < 0.6:
                priority = world.rng.choice((0, 0, 10, 1000))
                count = world.rng.randint(1, 4)
                yield AddPods(count=count, priority=priority, cpu=tuple(MILLI), make=_somewhere)
            elif roll < 0.8:
                yield FinishPods(count=2)
            else:
                yield DeletePods(count=2)

    def is_plain(self, pod: Json) -> bool:
        return pod["metadata"]["namespace"] not in QUOTAS

    def _bound(self, world: World, bind: Bind) -> None:
        if bind.pod.namespace not in QUOTAS:
            return
        used = Counter[str]()
        for pod in world.server.list("pods"):
            if pod["spec"].get("nodeName") and not is_through(pod):
                (container,) = pod["spec"]["containers"]
                used[pod["metadata"]["namespace"]] += MILLI[
                    container["resources"]["requests"]["cpu"]
                ]
        for namespace, (_, most) in QUOTAS.items():
            if used[namespace] > most:
                text = (
                    f"{namespace} uses {used[namespace]}m after {bind.pod.name}, more than {most}m"
                )
                world.ledger.complain(text)
        together = sum(used[namespace] for namespace in QUOTAS)
        guaranteed = sum(least for least, _ in QUOTAS.values())
        if together > guaranteed:
            text = f"all use {together}m after {bind.pod.name}, more than {guaranteed}m"
            world.ledger.complain(text)


def _somewhere(world: World, pod: Json) -> None:
    pod["metadata"]["namespace"] = world.rng.choice((*QUOTAS, "default"))
