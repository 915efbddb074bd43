"""A change of the configuration of a simulated process, by production's own reloader.

Source  edge/host/reload.py; the scheduler, its metrics and its pages are stood in for
"""

from dataclasses import dataclass, replace
from typing import Any, cast

from asched.core.config.v1 import SchedulerConfiguration
from asched.edge.host.config_file import LoadedConfig
from asched.edge.host.inspection import Inspection
from asched.edge.host.loops import Scheduler
from asched.edge.host.reload import Reloader
from asched.edge.telemetry.component_metrics import OwnMetrics
from asched.lab.sim.world import World


@dataclass(slots=True)
class _Loaded:
    configuration: SchedulerConfiguration


class _StandIn:
    """The scheduler, its pages and its metrics as far as a reload touches them."""

    def __init__(self, world: World, current: SchedulerConfiguration) -> None:
        self.machine = world.machine
        self.clock = world.clock
        self.current = current
        self.outcome = ""
        self.wake = world.acting.wake

    def reloaded(self, outcome: str) -> None:
        self.outcome = outcome


def reload(world: World, config: dict[str, Any]) -> str:
    """Take a configuration over between two turns; returns what the metrics would say."""
    wanted = world.effective(config)
    stand_in: Any = _StandIn(world, world.setup.configuration)
    setup = replace(world.setup, configuration=wanted)
    reloader = Reloader(
        cast("Scheduler", stand_in),
        cast("Inspection", stand_in),
        cast("OwnMetrics", stand_in),
        load=lambda: cast("LoadedConfig", _Loaded(wanted)),
        build=lambda _: setup.runners(world.parts),
        files=(),
    )
    reloader.reload()
    if stand_in.outcome == "applied":
        world.setup = setup
    outcome: str = stand_in.outcome
    return outcome
