"""Reload the configuration of a simulated process with production's reloader.

Source  host/configuration/reload.py; replaced are the pages, the count of reloads, and the
        extenders (the judges of a world are fixed)
"""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from asched.core.config.v1 import Extender, SchedulerConfiguration
from asched.core.framework.runner import Runner
from asched.core.model.kinds import Kind
from asched.host.configuration.reload import DesiredSetup, Reloader
from asched.host.extenders import Consultants
from asched.serve.inspection import Inspection
from asched.serve.telemetry.component_metrics import OwnMetrics
from asched_lab.sim.world import World


class _StandIn:
    """Pages, extenders and metrics as far as a reload uses them."""

    def __init__(self, current: SchedulerConfiguration) -> None:
        self.current = current
        self.outcome = ""
        self.reloads = SimpleNamespace(add=self._note)

    def _note(self, outcome: str) -> None:
        self.outcome = outcome

    def chain(self, extenders: Sequence[Extender]) -> None:
        """Runners have their own extenders."""

    def prepare(self, extenders: Sequence[Extender]) -> tuple[Kind, ...]:  # noqa: ARG002
        return ()

    def adopt(self, extenders: Sequence[Extender], chain: None) -> None:
        """The judges of a world are fixed."""


def reload(world: World, config: dict[str, Any]) -> str:
    """Replace the configuration between two turns; return the outcome for the metrics."""
    wanted = world.effective(config)
    stand_in: Any = _StandIn(world.setup.configuration)
    setup = replace(world.setup, configuration=wanted)

    async def load() -> DesiredSetup:
        return DesiredSetup(wanted)

    async def build(_wanted: DesiredSetup, _chain: object) -> dict[str, Runner]:
        return setup.runners(world.parts)

    process = world.acting
    reloader = Reloader(
        process.scheduler,
        cast("Inspection", stand_in),
        cast("Consultants", stand_in),
        cast("OwnMetrics", stand_in),
        current=DesiredSetup(world.setup.configuration),
        load=load,
        build=build,
        files=tuple,
    )
    process.loop.run_until_complete(reloader.reload())
    if stand_in.outcome == "applied":
        world.setup = setup
    outcome: str = stand_in.outcome
    return outcome
