"""Cached results: for each node row, whether devices can be allocated for a demand, and how well.

A search that is stopped by the budget is continued by the next caller, unless its node changed
meanwhile.

Equal demands share one `Answers`. After an allocation only the rows of nodes that see the touched
pools are searched again, once for all demands with the same shape; nodes that see the very same
pools share one search, unless devices choose their nodes themselves.
"""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.nodes import NodeTable
from asched.core.dra.allocator import (
    CANNOT_ALLOCATE,
    CANNOT_FIT,
    CHUNK_STEPS,
    FAILED,
    FITS,
    INVALID,
    NODE_ASPECTS,
    STALE_EXTENDED,
    TIMED_OUT,
    TIMED_OUT_TEXT,
    DeviceSearch,
    Effort,
    NodeRejected,
    OutOfSteps,
    Solution,
    Steps,
)
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.plan import AllocationError, ClaimPlan, DeviceDemand
from asched.core.model.arrays import I32, I64
from asched.core.model.claim import ResourceClaim
from asched.core.model.lru import Lru
from asched.core.model.node import Node

#: Limit for cached answers; the least recently used are dropped ...
BYTES_MAX: Final = 32 << 20
#: ... bytes a row ...
ROW_BYTES: Final = 12
#: ... but never fewer than this.
ANSWERS_MIN: Final = 8
#: Limit for results of single nodes that are shared by demands of the same shape.
RESULTS_MAX: Final = 1 << 15
#: Maximum number of alternatives in firstAvailable (API limit); the first scores as much.
ALTERNATIVES_MAX: Final = 8
_NODE_ASPECTS: Final = int(NODE_ASPECTS)

#: Devices per step of the budget, and steps for a node with the simplest search.
DEVICES_PER_STEP: Final = 5
ROW_STEPS: Final = 2


class PendingDeviceSearch(NamedTuple):
    """A search that has been paused."""

    row: int
    node: str
    plans: tuple[ClaimPlan, ...]
    effort: Effort
    steps: Steps[Solution | None]

    def text_of(self, error: Exception) -> str:
        """The message of an error that would take long to compute again."""
        return str(error) if self.effort.steps > CHUNK_STEPS else ""


class DeviceSearchResult(NamedTuple):
    """Result of a search. `solution` and `text` are set only if it took long: other results are
    computed again when needed, for the claims of the pod itself.
    """

    code: int
    score: int = 0
    solution: Solution | None = None
    text: str = ""


class Answers:
    """`codes` and `scores` over all rows, once no row is `pending`; in the order of searches."""

    def __init__(self) -> None:
        self.codes: I32 = np.zeros(0, dtype=np.int32)
        self.scores: I64 = np.zeros(0, dtype=np.int64)
        self.pending: dict[int, None] = {}
        self.search: PendingDeviceSearch | None = None
        self.seen: dict[Hashable, DeviceSearchResult] = {}
        #: results that took long, by row
        self.long: dict[int, DeviceSearchResult] = {}
        self.inventory_generation = -1
        self.classes_version = -1
        self.taken_cursor = -1
        self.node_cursor = -1

    def forget_all(self, height: int) -> None:
        """Mark every row to be searched."""
        self.codes, self.scores = np.zeros(height, np.int32), np.zeros(height, np.int64)
        self.pending = dict.fromkeys(range(height))
        self.search = None
        self.seen, self.long = {}, {}

    def grow(self, height: int) -> None:
        """Add rows; they are among those that changed."""
        known = len(self.codes)
        if known < height:
            self.codes = np.concatenate((self.codes, np.zeros(height - known, np.int32)))
            self.scores = np.concatenate((self.scores, np.zeros(height - known, np.int64)))

    def forget(self, rows: Sequence[int]) -> None:
        """Mark some rows to be searched, or searched again."""
        if not rows:
            return
        self.pending.update(dict.fromkeys(rows))
        self.seen = {}
        for row in rows:
            self.long.pop(row, None)
            if self.search is not None and self.search.row == row:
                self.search = None

    def take(self, row: int, result: DeviceSearchResult) -> None:
        self.codes[row], self.scores[row] = result.code, result.score
        if result.solution is not None or result.text:
            self.long[row] = result


class AnswerBook:
    """The cached answers of one cluster. `steps_max` bounds each search (0: no bound)."""

    def __init__(self, ledger: DeviceLedger, nodes: NodeTable, steps_max: int) -> None:
        self._ledger = ledger
        self._nodes = nodes
        self._steps_max = steps_max
        self._known: Lru[Hashable, Answers] = Lru(ANSWERS_MIN)
        #: row -> shape -> result of the search, valid up to these cursors
        self._results: dict[int, dict[Hashable, DeviceSearchResult]] = {}
        self._results_count = 0
        self._cursors = Answers()

    def answers(self, demand: DeviceDemand) -> Answers:
        """Up-to-date answers for a demand; the ledger has caught up. Raises OutOfTurn; results
        found until then are kept for the next call.
        """
        key = demand.signature
        height = self._nodes.height
        self._ledger.inventory.forget_nodes(self._nodes.row_of, self._nodes.count)
        answers = self._known.get(key)
        if answers is None:
            answers = Answers()
            self._known.size_max = max(ANSWERS_MIN, BYTES_MAX // (ROW_BYTES * (height + 1)))
            self._known.put(key, answers)
        rows = self._old_rows(answers)
        if rows is None:
            answers.forget_all(height)
        else:
            answers.forget(rows)
            answers.grow(height)
        self._follow(answers)
        if answers.pending:
            self._forget_results()
            self._search(answers, demand)
        return answers

    def _follow(self, answers: Answers) -> None:
        """Mark the answers as up to date."""
        answers.inventory_generation = self._ledger.inventory.generation
        answers.classes_version = self._ledger.classes_version
        answers.taken_cursor = self._ledger.taken.log.end
        answers.node_cursor = self._nodes.log.end

    def _forget_results(self) -> None:
        """Drop results of rows that have to be searched again, whatever the demand."""
        rows = self._old_rows(self._cursors)
        if rows is None or self._results_count > RESULTS_MAX:
            self._results.clear()
            self._results_count = 0
        else:
            for row in rows:
                self._results_count -= len(self._results.pop(row, ()))
        self._follow(self._cursors)

    def text_of(self, demand: DeviceDemand, row: int) -> str:
        """The message of an error that took long to compute; "" otherwise."""
        result = self._long(demand, row)
        return "" if result is None else result.text

    def _long(self, demand: DeviceDemand, row: int) -> DeviceSearchResult | None:
        """A result that took long, if it is still valid."""
        answers = self._known.get(demand.signature)
        if answers is None or row not in answers.long or self._old_rows(answers) != []:
            return None
        return answers.long[row]

    def solve(
        self, demand: DeviceDemand, node: Node
    ) -> tuple[tuple[ClaimPlan, ...], Solution | None]:
        """Plans, and the solution of one node. Raises what the allocator raises."""
        served = demand.served(node) or frozenset()
        plans = demand.plans(served)
        known = self._long(demand, self._nodes.row_of.get(node.name, -1))
        if known is not None and known.solution is not None:
            return plans, known.solution
        return plans, self._device_search(node, plans).run()

    def _device_search(self, node: Node, plans: tuple[ClaimPlan, ...]) -> DeviceSearch:
        ledger, place = self._ledger, (node.name, node.labels)
        pools = ledger.inventory.pools_for(*place)
        return DeviceSearch(pools, plans, ledger.taken, place, self._steps_max, ledger.rules)

    def _old_rows(self, answers: Answers) -> Sequence[int] | None:
        """Rows to be searched again; None for all."""
        ledger = self._ledger
        if answers.classes_version != ledger.classes_version:
            return None
        row_of = self._nodes.row_of
        rows = set[int]()
        if answers.inventory_generation != ledger.inventory.generation:
            seers = ledger.inventory.nodes_since(answers.inventory_generation)
            if seers is None:
                return None
            rows.update(row_of[name] for name in seers if name in row_of)
        touched = ledger.taken.log.since(answers.taken_cursor)
        changed = self._nodes.log.rows(answers.node_cursor, _NODE_ASPECTS)
        if touched is None or changed is None:
            return None
        rows.update(changed)
        for pool_id in dict.fromkeys((device.driver, device.pool) for device in touched):
            names = ledger.inventory.nodes_of(pool_id)
            if names is None:
                return None
            rows.update(row_of[name] for name in names if name in row_of)
        return sorted(rows)

    def _search(self, answers: Answers, demand: DeviceDemand) -> None:
        """Search the rows that are left; nodes that are equal for the search are searched once.
        Raises OutOfTurn.
        """
        pools_for = self._ledger.inventory.pools_for
        has_extended, has_user_claims = demand.extended is not None, demand.has_user_claims
        served: frozenset[str] | None = frozenset()
        if not has_extended:
            self._evaluate_rows_without_own(answers, demand)
        for row in tuple(answers.pending):
            node = self._nodes.node_at[row]
            if node is not None:
                if has_extended:
                    served = demand.served(node)
                if served is None or demand.is_stale:
                    answers.codes[row] = STALE_EXTENDED if demand.is_stale else CANNOT_FIT
                elif has_extended and not served and not has_user_claims:
                    answers.codes[row] = FITS
                else:
                    pools = pools_for(node.metadata.name, node.labels)
                    alike = (id(pools), served)
                    result = answers.seen.get(alike)
                    if result is None:
                        result = self._evaluate(answers, demand, served, row)
                        if not any(pool.chooses_nodes for pool in pools):
                            answers.seen[alike] = result
                    answers.take(row, result)
            del answers.pending[row]

    def _evaluate_rows_without_own(self, answers: Answers, demand: DeviceDemand) -> None:
        """Evaluate all nodes without a pool at once, usually the majority. Raises OutOfTurn."""
        having = self._ledger.inventory.have_own()
        if having is None:
            return
        row_of, node_at = self._nodes.row_of, self._nodes.node_at
        own = {row_of[name] for name in having if name in row_of}
        rows = [row for row in answers.pending if row not in own and node_at[row] is not None]
        if not rows:
            return
        result = self._evaluate(answers, demand, frozenset(), rows[0])
        for row in rows:
            answers.take(row, result)
            del answers.pending[row]

    def _evaluate(
        self,
        answers: Answers,
        demand: DeviceDemand,
        served: frozenset[str],
        row: int,
    ) -> DeviceSearchResult:
        """Search one node, or continue its paused search. Raises OutOfTurn."""
        search = None
        if answers.search is not None and answers.search.row == row:
            search, answers.search = answers.search, None
        try:
            if search is None:
                known = self._results.get(row, {}).get(demand.shape(served))
                if known is not None:
                    return known
                search = self._begin(demand, served, row)
            solution = self._run(search)
        except OutOfTurn:
            answers.search = search
            raise
        except NodeRejected:
            return DeviceSearchResult(INVALID)
        except OutOfSteps:
            return DeviceSearchResult(TIMED_OUT)
        except AllocationError as error:
            return DeviceSearchResult(FAILED, text=search.text_of(error) if search else "")
        if solution is None:
            result = DeviceSearchResult(CANNOT_ALLOCATE)
        else:
            is_long = search.effort.steps > CHUNK_STEPS
            result = DeviceSearchResult(
                FITS, score(search.plans, solution), solution if is_long else None
            )
        if result.solution is None:
            self._results.setdefault(row, {})[demand.shape(served)] = result
            self._results_count += 1
        return result

    def _begin(self, demand: DeviceDemand, served: frozenset[str], row: int) -> PendingDeviceSearch:
        node = self._nodes.node_at[row]
        assert node is not None, f"row {row} is searched but holds no node"
        self._ledger.budget.note(ROW_STEPS)
        plans = demand.plans(served)
        search = self._device_search(node, plans)
        return PendingDeviceSearch(row, node.name, plans, search.effort, search.steps())

    def _run(self, search: PendingDeviceSearch) -> Solution | None:
        """Run it to its end, as far as the budget goes."""
        budget = self._ledger.budget
        while True:
            budget.charge(0, f"node {search.node}: {TIMED_OUT_TEXT}")
            try:
                next(search.steps)
            except StopIteration as end:
                result: Solution | None = end.value
                return result
            finally:
                budget.note(search.effort.tell() / DEVICES_PER_STEP)


def score(plans: tuple[ClaimPlan, ...], solution: Solution) -> int:
    """Sum over the lists of alternatives: eight for the first alternative, one less for each
    further one.
    """
    return sum(
        ALTERNATIVES_MAX - index
        for plan, selected in zip(plans, solution.selected, strict=True)
        for index, alternatives in zip(selected, plan.requests, strict=True)
        if alternatives[index].parent
    )


def score_allocated(claim: ResourceClaim) -> int:
    """The same for an allocated claim: its results name the alternatives."""
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
