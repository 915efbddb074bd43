"""Kept answers: for each node row, whether devices can be allocated for a demand, and how well.

Equal demands share one `Answers`. After an allocation only the rows of nodes that see the touched
pools are searched again; nodes that see the very same pools share one search, unless devices choose
their nodes themselves.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.dra.allocator import (
    INVALID_POOLS,
    NodeRejected,
    OutOfSteps,
    Solution,
    allocate,
)
from asched.core.dra.demand import Demand
from asched.core.dra.ledger import Ledger
from asched.core.dra.plan import AllocationError, ClaimPlan
from asched.core.dra.pools import Pool
from asched.core.model.claim import ResourceClaim
from asched.core.model.node import Node
from asched.core.state.nodes import Aspect, NodeTable

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Demands whose answers are kept; the one unused for longest goes. At 5,000 nodes each holds 60 KB.
ANSWERS_MAX: Final = 256
#: firstAvailable may list so many alternatives (API limit); the first scores as much.
ALTERNATIVES_MAX: Final = 8
#: What a node row must change in for its answer to change.
NODE_ASPECTS: Final = Aspect.LABELS | Aspect.ALLOCATABLE | Aspect.LIVE
_NODE_ASPECTS: Final = int(NODE_ASPECTS)

FITS: Final = 0
CANNOT_ALLOCATE: Final = 1
UNAVAILABLE: Final = 2
STALE_EXTENDED: Final = 3
CANNOT_FIT: Final = 4
INVALID: Final = 5
#: From here on a code stands for an error that ends the attempt.
TIMED_OUT: Final = 100
FAILED: Final = 101

TEXTS: Final = {
    CANNOT_ALLOCATE: "cannot allocate all claims",
    UNAVAILABLE: "resourceclaim not available on the node",
    STALE_EXTENDED: "cannot schedule extended resource claim",
    CANNOT_FIT: "cannot fit resource",
    INVALID: INVALID_POOLS,
}


class Answers:
    """`codes` and `scores` over all rows."""

    def __init__(self) -> None:
        self.codes: I32 = np.zeros(0, dtype=np.int32)
        self.scores: I64 = np.zeros(0, dtype=np.int64)
        self.inventory_generation = -1
        self.classes_version = -1
        self.taken_cursor = -1
        self.node_cursor = -1


class AnswerBook:
    """The answers of one cluster. `steps_max` bounds each search (0: no bound)."""

    def __init__(self, ledger: Ledger, nodes: NodeTable, steps_max: int) -> None:
        self._ledger = ledger
        self._nodes = nodes
        self._steps_max = steps_max
        self._known: OrderedDict[Hashable, Answers] = OrderedDict()

    def answers(self, demand: Demand) -> Answers:
        """Up-to-date answers for a demand; the ledger has caught up."""
        key = demand.signature
        answers = self._known.get(key)
        if answers is None:
            answers = self._known[key] = Answers()
            if len(self._known) > ANSWERS_MAX:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        rows = self._old_rows(answers)
        height = self._nodes.height
        if rows is None or len(answers.codes) < height:
            grown = np.zeros(height, dtype=np.int32), np.zeros(height, dtype=np.int64)
            answers.codes, answers.scores = grown
            rows = range(height)
        if rows:
            self._search(answers, demand, rows)
        answers.inventory_generation = self._ledger.inventory.generation
        answers.classes_version = self._ledger.classes_version
        answers.taken_cursor = self._ledger.taken.log.end
        answers.node_cursor = self._nodes.log.end
        return answers

    def solve(self, demand: Demand, node: Node) -> tuple[tuple[ClaimPlan, ...], Solution | None]:
        """Plans and solution for one node. Raises what the allocator raises."""
        served = demand.served(node) or frozenset()
        plans = demand.plans(served)
        pools = self._ledger.inventory.pools_for(node.name, node.labels)
        place = (node.name, node.labels)
        return plans, allocate(pools, plans, self._ledger.taken, place, self._steps_max)

    def _old_rows(self, answers: Answers) -> Sequence[int] | None:
        """Rows to be searched again; None for all."""
        ledger = self._ledger
        if (
            answers.inventory_generation != ledger.inventory.generation
            or answers.classes_version != ledger.classes_version
        ):
            return None
        touched = ledger.taken.log.since(answers.taken_cursor)
        changed = self._nodes.log.since(answers.node_cursor)
        if touched is None or changed is None:
            return None
        rows = {row for row, aspects in changed if aspects & _NODE_ASPECTS}
        row_of = self._nodes.row_of
        for pool_id in dict.fromkeys(touched):
            names = ledger.inventory.nodes_of(pool_id)
            if names is None:
                return None
            rows.update(row_of[name] for name in names if name in row_of)
        return sorted(rows)

    def _search(self, answers: Answers, demand: Demand, rows: Sequence[int]) -> None:
        """Judge rows; nodes that look alike to the search are searched once."""
        seen: dict[Hashable, tuple[int, int]] = {}
        pools_for, is_shared = self._ledger.inventory.pools_for, self._ledger.inventory.is_shared
        has_extended, has_user_claims = demand.extended is not None, demand.has_user_claims
        served: frozenset[str] | None = frozenset()
        for row in rows:
            node = self._nodes.node_at[row]
            if node is None:
                continue
            if has_extended:
                served = demand.served(node)
                if served is None or demand.is_stale:
                    answers.codes[row] = STALE_EXTENDED if demand.is_stale else CANNOT_FIT
                    continue
                if not served and not has_user_claims:
                    answers.codes[row] = FITS
                    continue
            pools = pools_for(node.metadata.name, node.labels)
            alike = (id(pools), served)
            found = seen.get(alike)
            if found is None:
                found = self._judge(demand, served or frozenset(), pools, node)
                if is_shared(pools):
                    seen[alike] = found
            answers.codes[row], answers.scores[row] = found

    def _judge(
        self, demand: Demand, served: frozenset[str], pools: tuple[Pool, ...], node: Node
    ) -> tuple[int, int]:
        """(code, score) of one node."""
        place = (node.name, node.labels)
        try:
            plans = demand.plans(served)
            if not plans:
                return FITS, 0
            solution = allocate(pools, plans, self._ledger.taken, place, self._steps_max)
        except NodeRejected:
            return INVALID, 0
        except OutOfSteps:
            return TIMED_OUT, 0
        except AllocationError:
            return FAILED, 0
        if solution is None:
            return CANNOT_ALLOCATE, 0
        return FITS, score(plans, solution)


def score(plans: tuple[ClaimPlan, ...], solution: Solution) -> int:
    """Eight for the first alternative of a list, one less for each further one, summed up."""
    return sum(
        ALTERNATIVES_MAX - index
        for plan, selected in zip(plans, solution.selected, strict=True)
        for index, is_list in zip(selected, plan.is_list, strict=True)
        if is_list
    )


def score_allocated(claim: ResourceClaim) -> int:
    """The same for a claim that is allocated already: its results name the alternatives."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    chosen = {result.request for result in allocation.devices.results or ()}
    return sum(
        ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests or ()
        for index, alternative in enumerate(request.first_available or ())
        if f"{request.name}/{alternative.name}" in chosen
    )
