"""All scenarios by their names; the last are incidents of the museum."""

from collections.abc import Iterable
from types import ModuleType
from typing import Final

from asched_lab.sim.museum import api, batch, load, pods
from asched_lab.sim.museum import beside as two_schedulers
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios import (
    autoscaled,
    beside,
    drains,
    gangs,
    moves,
    objects,
    plugins,
    pool_rules,
    pools,
    preemption,
    room,
    servers,
    volumes,
)


def _in(modules: Iterable[ModuleType]) -> dict[str, type[Scenario]]:
    """The scenarios of some modules, without base classes: these are private or have no steps."""
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Scenario) and name[0] != "_"
        if kind.start is not Scenario.start
    }


SCENARIOS: Final = {
    **_in((objects, beside, servers, preemption, volumes, plugins, gangs, room, autoscaled)),
    **_in((moves, drains, pools, pool_rules)),
    **dict(sorted(_in((api, batch, two_schedulers, load, pods)).items())),
}
