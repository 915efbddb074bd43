"""Watches that omit events, and send bookmarks as if they had sent everything."""

from collections.abc import Iterator

from asched_lab.sim.faults import StaleWatch, SwallowedEvents
from asched_lab.sim.scenarios.churn import Churn
from asched_lab.sim.steps import AddPods, DeletePods, OpenGates, Step
from asched_lab.sim.world import World

STEPS = 40
#: Share of the steps before which a pod is created, maybe under the name of a deleted one.
AGAIN = 0.4


class LostEvents(Churn):
    """As Churn, but one event in twenty is omitted, and its stream goes on; some pods are created
    again under the names of deleted ones. The audit finds every missed event, in standby processes
    too.
    """

    faults = (StaleWatch(lag_s_max=10), SwallowedEvents(rate=0.05))
    replicas = 2
    audit_period_s = 30.0

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            if world.rng.random() < AGAIN:
                yield AddPods(name=f"again-{world.rng.randrange(3)}")
                yield DeletePods(count=2, waiting_too=False)
            yield self._step(world)
        yield OpenGates()
