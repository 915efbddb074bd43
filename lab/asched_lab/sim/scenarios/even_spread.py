"""Pods that must be spread."""

from collections.abc import Iterator

from asched_lab.sim.checker import skews
from asched_lab.sim.faults import LeaderPause, SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Json, Step
from asched_lab.sim.world import World

ROUNDS = 15
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
#: App -> its one constraint, so that every pod it selects has it.
RULES = {"web": (1, KEYS[0]), "db": (1, KEYS[1]), "job": (2, KEYS[1])}


class EvenSpread(Scenario):
    """Hard spread constraints are met at the end of a run in which no pod and no node was deleted.

    No binding fails here: a place that is given back lowers its domain's count.
    """

    faults = (StaleWatch(lag_s_max=10), SlowAnswers(seconds_max=1), LeaderPause(every_s=60))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8), cpu=(8,)).do(world)
        world.run_for(30.0)  # pods cannot be spread over a zone before it is known

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 5), cpu=("100m",), make=_spread)

    def check(self, world: World) -> None:
        found = skews(world.nodes(), world.pods())
        assert not found, found[0]


def _spread(world: World, pod: Json) -> None:
    app = world.rng.choice(tuple(RULES))
    skew, key = RULES[app]
    pod["metadata"]["labels"] = {"app": app}
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]
