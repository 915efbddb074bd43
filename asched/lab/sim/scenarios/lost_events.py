"""Watches keep things to themselves, and say that they have told everything."""

from collections.abc import Iterator

from asched.lab.sim.faults import StaleWatch, SwallowedEvents
from asched.lab.sim.scenarios.churn import Churn
from asched.lab.sim.steps import OpenGates, Step
from asched.lab.sim.world import World

STEPS = 40


class LostEvents(Churn):
    """As Churn, but one event in twenty never comes, and its stream goes on. Whatever was missed is
    found by the audit, of those who stand by, too.
    """

    faults = (StaleWatch(lag_s_max=10), SwallowedEvents(rate=0.05))
    replicas = 2
    audit_period_s = 30.0

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            yield self._step(world)
        yield OpenGates()
