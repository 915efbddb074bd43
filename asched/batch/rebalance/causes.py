"""For what pods move: a unit that waits, or a node that is drained."""

from collections.abc import Generator
from typing import Any, Final, Protocol

from asched import names
from asched.batch.rebalance.draining import NodeDrain
from asched.batch.rebalance.places import PlanPlaces
from asched.batch.rebalance.search import MovePlan
from asched.batch.rebalance.units import CARRIED_OUT, RebalanceUnits, WaitingUnit, condition_of
from asched.core.cluster.facts import Answer, Done
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, NotePod, ref_of

#: After a plan for a node that was not carried out.
DRAIN_AGAIN_S: Final = 5.0

Steps = Generator[Effect, Answer, Any]


class Cause(Protocol):
    """What `Carrying` asks of it. `subject`: the unit or the drain; `waits`: the plan waits for a
    pod that may not move at the moment, rather than being abandoned.
    """

    key: str
    profile: str
    priority: int
    note: str
    subject: WaitingUnit | NodeDrain
    waits: bool

    def write_down(self, plan: MovePlan) -> Steps:
        """Write what will be moved; returns why that failed, if it did."""

    def why_over(self, places: PlanPlaces) -> str:
        """Why nothing is to be moved for it any more."""

    def is_served(self, places: PlanPlaces) -> bool:
        """Whether pods of a unit were placed."""

    def ended(self, outcome: str, args: RebalanceArgs) -> None:
        """The plan is over."""


class ForUnit:
    """A unit that waits gets the room."""

    waits = False

    def __init__(self, context: SchedulerContext, unit: WaitingUnit, priority: int) -> None:
        self._context, self._cluster = context, context.cluster
        self._units = context.cluster.singleton(RebalanceUnits)
        self._is_placed = False
        self._unit = unit
        self.subject: WaitingUnit | NodeDrain = unit
        self.key, self.profile, self.priority = unit.key, unit.profile, priority
        self.note = f"to make room for pod {unit.pod.uid}"

    def write_down(self, plan: MovePlan) -> Steps:
        unit = self._unit
        pod = self._cluster.pods_seen.get(unit.pod.key)
        if pod is None or pod.uid != unit.pod.uid:
            return "unit"
        condition = condition_of(self._cluster, pod, len(plan.moves), unit.moved)
        types = [c.type for c in pod.status.conditions or ()]
        if names.PODS_MOVED not in types:
            types.append(names.PODS_MOVED)
        answer = yield NotePod(pod=ref_of(pod), condition=condition, condition_types=tuple(types))
        return "" if isinstance(answer, Done) else "unrecorded"

    def why_over(self, places: PlanPlaces) -> str:
        for place in places.of_unit:
            if place.taken_by:
                continue
            pod = self._cluster.pods_seen.get(place.what.pod.key)
            if pod is None or pod.uid != place.uid or pod.is_terminating:
                return "unit"
            if pod.spec.node_name:
                return "elsewhere"
        return ""

    def is_served(self, places: PlanPlaces) -> bool:
        if not self._is_placed and all(place.taken_by for place in places.of_unit):
            self._is_placed = True
            self._units.placed += 1
            self._units.tracked.pop(self._unit.key, None)
        return self._is_placed

    def ended(self, outcome: str, args: RebalanceArgs) -> None:
        if outcome != CARRIED_OUT:
            self._unit.search_s = self._context.now_s + args.backoff_s
            self._unit.text = f"; moving pods for it was abandoned ({outcome})"
            pod = self._cluster.pods_seen.get(self._unit.pod.key)
            if pod is not None and pod.uid == self._unit.pod.uid and not pod.is_terminating:
                self._context.queue.activate([pod], self._context.now_s)  # its condition says so


class ForNode:
    """A node is drained. Nothing is written: the taint is the record, and what a new process finds
    begins after a minute, so that the limit for a minute holds.
    """

    waits = True

    def __init__(
        self, context: SchedulerContext, drain: NodeDrain, profile: str, plan: MovePlan
    ) -> None:
        self._context = context
        self._units = context.cluster.singleton(RebalanceUnits)
        self._drain = drain
        self.subject: WaitingUnit | NodeDrain = drain
        self.key, self.profile = f"node/{drain.node}", profile
        #: pods above all that move may take the places
        self.priority = max(move.pod.pod.priority for move in plan.moves)
        self.note = f"because node {drain.node} is drained"

    def write_down(self, plan: MovePlan) -> Steps:  # noqa: ARG002 - see the class
        yield from ()
        return ""

    def why_over(self, places: PlanPlaces) -> str:  # noqa: ARG002
        drain, wall_s = self._drain, self._context.cluster.wall_clock_s
        is_wanted = self._units.drains.get(drain.node) is drain
        return "" if is_wanted and drain.request.until_s > wall_s else "node"

    def is_served(self, places: PlanPlaces) -> bool:  # noqa: ARG002
        return False

    def ended(self, outcome: str, args: RebalanceArgs) -> None:  # noqa: ARG002
        self._drain.search_s = self._context.now_s + DRAIN_AGAIN_S
