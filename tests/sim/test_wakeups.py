"""No pod sleeps although it would fit.

Random clusters live through random changes. After every change the queue gets all the time it wants
short of the five-minute sweep, which never comes here; then each pod that still rests is tried once
more from scratch, and none of them may find a node. Hints may wake a pod in vain, they must not
miss a chance.
"""

import pytest

from tests.sim.changing import Changing
from tests.sim.making import ZONE, Json

STEPS = 40

_SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}

#: Default constraints that come from services, a node affinity that every pod gets, a resource
#: that does not count.
CONFIGURED: Json = {
    "pluginConfig": [
        {
            "name": "PodTopologySpread",
            "args": {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                ],
            },
        },
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [_SSD]}]
                    }
                }
            },
        },
        {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/dev"]}},
    ]
}


def live(seed: int, config: Json | None, steps: int = STEPS) -> str | None:
    """The first pod that sleeps although it would fit, with all that led to it."""
    world = Changing(seed, config)
    told = []
    for step in range(steps):
        told.append(world.change())
        world.rest()
        sleepers = world.sleepers()
        if sleepers:
            return f"seed {seed}, step {step}: {sleepers[0]}; the last changes: {told[-3:]}"
    return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("config", [None, CONFIGURED], ids=["default", "configured"])
def test_no_pod_sleeps_although_it_would_fit(seed: int, config: Json | None) -> None:
    assert live(seed, config) is None


@pytest.mark.parametrize("seed", range(100, 102))
def test_the_sweep_rescues_nobody(seed: int) -> None:
    world = Changing(seed, sweep_s=30.0)
    for _ in range(2 * STEPS):
        world.change()
        world.rest()
    assert world.rescues.placed, f"seed {seed}"
    assert not world.rescues.rescued, f"seed {seed}: a hint was missing"
