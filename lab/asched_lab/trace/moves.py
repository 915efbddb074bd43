"""What moves add to a trace run: the search of Rebalance for the pods that were dropped.

    all pods are offered (`Engine`) ─> those that were dropped, in their order: a plan with up to so
    many moves for each ─> its pods are moved, and the pod is placed

Every placed pod may move, once; the filters of the engine decide. A pod equal to one without a plan
is skipped: for the rest of the run, although later moves might help it.

Bounds  STEPS_MAX of the search for each pod: a third of what the scheduler has.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from asched.batch.extensions import EXTENSIONS
from asched.batch.rebalance.board import clone_of
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.search import MovePlan, PlanSearch
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import RebalanceArgs
from asched.core.framework.runner import run_alone
from asched.hardware.gpu.shares import WHOLE
from asched.host.assemble import build_machine
from asched_lab.trace.arrivals import arrivals
from asched_lab.trace.engine import STRATEGIES, Engine
from asched_lab.trace.openb import Trace, TracePod

EVERY_PRIORITY: Final = 1 << 31
STEPS_MAX: Final = 100_000


class WithMoves(NamedTuple):
    """Percent of all devices in use, before and after; `placed` of the `dropped` pods."""

    before: float
    after: float
    dropped: int
    placed: int
    moves: int
    searches: int


def play_with_moves(trace: Trace, policy: str, seed: int, most: int) -> WithMoves:
    """Offer all pods, then search plans of up to `most` moves for those that were dropped."""
    setting = arrivals(trace, seed)
    engine = Engine(setting.nodes, STRATEGIES[policy])
    dropped = [pod for pod in setting.pods if engine.offer(pod) is None]
    total = sum(pod.demand.total for pod in setting.pods)
    lost = sum(pod.demand.total for pod in dropped)
    mover = Mover(engine, most)
    gained = mover.place(dropped)
    capacity = setting.devices * WHOLE
    before = 100 * (total - lost) / capacity
    after = 100 * (total - lost + gained) / capacity
    return WithMoves(
        round(before, 2),
        round(after, 2),
        len(dropped),
        mover.placed,
        mover.moves,
        mover.searches,
    )


class Mover:
    """Moves pods of an engine."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine, self._most = engine, most
        parts = engine.parts
        machine = build_machine(
            engine.configuration,
            parts,
            engine.runners,
            monotonic_s=lambda: 0.0,
            extensions=EXTENSIONS,
        )
        self._context = machine.context
        self._cluster = parts.cluster
        self._rules = Movable(
            machine.context, RebalanceArgs(), EVERY_PRIORITY, is_drain=True, deletes_data=True
        )
        self._moved: set[str] = set()
        self.placed = self.moves = self.searches = 0

    def place(self, dropped: Sequence[TracePod]) -> int:
        """Place what plans are found for; returns the demand that they have together."""
        hopeless, gained = set[int](), 0
        for pod in dropped:
            info = self._engine.info_of(pod)
            if info.cls.number in hopeless:
                continue
            plan = self._plan(info)
            if plan is None:
                hopeless.add(info.cls.number)
                continue
            self._carry_out(plan, info)
            gained += pod.demand.total
        return gained

    def _plan(self, info: PodInfo) -> MovePlan | None:
        self.searches += 1
        movable = [i for uid, i in self._cluster.placed.items() if uid not in self._moved]
        unit = [clone_of(self._cluster, info)]
        most, steps_max = self._most, STEPS_MAX
        search = PlanSearch(self._context, unit, self._rules, movable, most, steps_max=steps_max)
        found = run_alone(search.find())
        return found if isinstance(found, MovePlan) else None

    def _carry_out(self, plan: MovePlan, info: PodInfo) -> None:
        for move in plan.moves:
            self._cluster.forget(move.pod)
            self._cluster.assume(move.successor, move.node)
            self._moved.add(move.successor.pod.uid)
        ((_, node),) = plan.places
        self._cluster.assume(info, node)
        self.placed += 1
        self.moves += len(plan.moves)
