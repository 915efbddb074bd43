"""Plans: how many pods of each class on each row, found with prices instead of scores.

    patterns   the numbers of pods of each class that fill a row together
    prices     each row takes the pattern of the highest value; prices of missing classes rise, of
               surplus classes fall, until the rows take on average the wanted pods
    rounding   each row gets the pattern of one round, so that all rows together come near to the
               average; then row after row exchanges surplus pods for missing ones

Prices also give proofs: if the best patterns of all rows together have less value than the cheapest
pods that have to be placed, there is no place for them. That holds for any prices, and is computed
in integers.

Bounds  PATTERNS_MAX patterns, CELLS_MAX of the table of patterns by rows (beyond that DRAWS of them
        for each kind of rows, within DRAWN_MAX cells, and no proof); ROUNDS_MAX of prices; one
        sweep of repair for each of WIDTHS.
"""

from collections import Counter
from collections.abc import Generator
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from asched.batch.placement.gang_problem import GangProblem, Infeasible, Plan
from asched.core.framework.order_free import slots_of
from asched.core.model.arrays import I64, Mask

R = TypeVar("R")
F64 = npt.NDArray[np.float64]
#: Generators yield how many steps of the budget come next, and return what they found.
Steps = Generator[float, None, R]

#: Cells of a table that are read in a step; what a row costs in a sweep, in steps, and cells
#: of its options for which another one is charged; changes that are compared in a step. Measured
#: roughly.
CELLS_A_STEP: Final = 8_000
ROW_STEPS, OPTIONS_A_STEP = 3, 600
CHANGES_A_STEP: Final = 100
PATTERNS_MAX: Final = 4_000
#: Ways to fill a row that are tried beyond that, and cells of the table of them: where those are
#: not enough for DRAWS_MIN ways, none is tried.
DRAWS, DRAWS_MIN = 48, 6
DRAWN_MAX: Final = 12_000_000
#: How often each cell is read for one way. Measured roughly.
DRAW_PASSES: Final = 16
CELLS_MAX: Final = 6_000_000
#: Rounds in which prices move: as many as this many passes over the table of patterns allow.
ROUND_CELLS: Final = 100_000_000
ROUNDS_MIN, ROUNDS_MAX = 24, 200
#: How strongly a shortage moves a price at first. A guess that works.
STEP: Final = 0.6
#: By how much a class may be short or in plenty, of its pods, until that makes its price e times
#: what it was, in each sweep of repair.
WIDTHS: Final = (0.03, 0.02, 0.02, 0.01, 0.01, 0.005, 0.005, 0.002, 0.002, 0.001)
#: How often the rounding is tried, each time from elsewhere.
STARTS: Final = 12
#: Pods that may be missing when chains of changes are tried; how long those are, how many go on,
#: and of how many changes, and how many times the same one, they are made.
MISSING_MAX: Final = 8
CHAIN_MAX, BEAM = 6, 60
CHANGES_MAX: Final = 600
SAME_CHANGES: Final = 3
#: Prices in whole numbers are up to about this; values stay within 64 bits.
PRICE_MAX: Final = 1_000_000


class RowPatterns(msgspec.Struct, frozen=True):
    """What a row may hold. `times` int64[K]: rows of a kind; `kind` intp[N] of each row.

    All of it: `counts` int64[P, C], and `fit` bool[P, K], which of them a kind takes and could not
    take more of. Or `drawn`, int64[K, S, C]: some of it, for each kind.
    """

    times: I64
    kind: npt.NDArray[np.intp]
    counts: I64
    fit: Mask
    drawn: I64 | None = None
    _options: dict[int, I64] = msgspec.field(default_factory=dict)  # by kind

    @property
    def size(self) -> int:
        return self.fit.size if self.drawn is None else 4 * self.drawn.size

    def best(self, prices: I64) -> I64:
        """int64[K, C]: the pattern of the highest value for each kind of row."""
        if self.drawn is not None:
            at = np.argmax(self.drawn @ prices, axis=1)
            found: I64 = self.drawn[np.arange(len(at)), at]
            return found
        order = np.argsort(-(self.counts @ prices), kind="stable")
        best: I64 = self.counts[order[np.argmax(self.fit[order], axis=0)]]
        return best

    def options(self, kind: int) -> I64:
        """int64[S, C]: the known patterns of one kind of row."""
        if kind not in self._options:
            self._options[kind] = (
                self.counts[self.fit[:, kind]]
                if self.drawn is None
                else np.unique(self.drawn[kind], axis=0)
            )
        return self._options[kind]


def patterns(problem: GangProblem, *, only_all: bool = False) -> Steps[RowPatterns | None]:
    """All patterns of a row; only some if pods are so small that there are too many, but not with
    `only_all`. None if there are too many classes and kinds of rows for either.
    """
    slots = problem.slots
    total = np.array(problem.counts, dtype=np.int64) @ problem.needs
    free = np.minimum(problem.free, total[:, None])
    for at, needs in enumerate(problem.needs.T):
        unit = int(np.gcd.reduce(needs))
        if unit:
            free[at] -= free[at] % unit
    table = np.vstack((free * (slots.max(axis=0) > 0), slots))
    kinds, kind, times = np.unique(table, axis=1, return_inverse=True, return_counts=True)
    kind = kind.ravel()
    found = yield from _grown(problem, kinds, kind, times)
    if found is not None or only_all:
        return found
    return (yield from _drawn(problem, kinds, kind, times))


def _grown(
    problem: GangProblem, kinds: I64, kind: npt.NDArray[np.intp], times: I64
) -> Steps[RowPatterns | None]:
    size = len(problem.counts)
    free, slots = kinds[: len(problem.free)], kinds[len(problem.free) :]
    grown_patterns: list[tuple[tuple[int, ...], I64, Mask]] = [
        ((), np.zeros(len(free), dtype=np.int64), np.ones(kinds.shape[1], dtype=np.bool_))
    ]
    for at in range(size):
        yield 1 + len(grown_patterns) * (1 + kinds.size // CELLS_A_STEP)
        grown = []
        for counts, used, alive in grown_patterns:
            banned = any(n and problem.apart[at, c] for c, n in enumerate(counts))
            more, now = 0, alive
            while now.any():
                grown.append(((*counts, more), used + more * problem.needs[at], now))
                if banned:
                    break
                more += 1
                cost = used + more * problem.needs[at]
                now = now & (slots[at] >= more) & (free >= cost[:, None]).all(axis=0)
            if len(grown) > PATTERNS_MAX or len(grown) * kinds.shape[1] > CELLS_MAX:
                return None
        grown_patterns = grown
    yield 1 + len(grown_patterns) * size // CHANGES_A_STEP
    index = {counts: number for number, (counts, _, _) in enumerate(grown_patterns)}
    fit = np.array([alive for _, _, alive in grown_patterns])
    full = fit.copy()
    for counts, number in index.items():
        for at in range(size):
            larger = index.get((*counts[:at], counts[at] + 1, *counts[at + 1 :]))
            if larger is not None:
                full[number] &= ~fit[larger]
    keep = full.any(axis=1)
    table = np.array([counts for counts, _, _ in grown_patterns], dtype=np.int64)
    return RowPatterns(times, kind, table[keep], full[keep])


def _drawn(
    problem: GangProblem, kinds: I64, kind: npt.NDArray[np.intp], times: I64
) -> Steps[RowPatterns | None]:
    """Fill the rows in some ways: a share of what they take of each class, then all they take."""
    size = len(problem.counts)
    slots = kinds[len(problem.free) :]
    ways = min(DRAWS, DRAWN_MAX // slots.size)
    if ways < DRAWS_MIN:
        return None
    draw = np.random.default_rng(size)
    drawn = np.zeros((kinds.shape[1], ways, size), dtype=np.int64)
    for number in range(ways):
        yield 1 + 2 * size * kinds.shape[1] * DRAW_PASSES // CELLS_A_STEP
        free, held = kinds[: len(problem.free)].copy(), np.zeros((size, kinds.shape[1]), np.int64)
        order = draw.permutation(size).tolist()
        shares = [*draw.random(size - 1).tolist(), 1.0] if number >= size else [1.0] * size
        for at, share in [*zip(order, shares, strict=True), *((at, 1.0) for at in order)]:
            more = slots_of(slots[at] - held[at], problem.needs[at].tolist(), free)
            near = held[problem.apart[at]].any(axis=0) if problem.apart[at].any() else False
            more = np.where(near, 0, np.ceil(more * share).astype(np.int64))
            held[at] += more
            free -= problem.needs[at][:, None] * more
        drawn[:, number] = held.T
    none = np.zeros((0, 0), dtype=np.bool_)
    return RowPatterns(times, kind, none.astype(np.int64), none, drawn)


def by_prices(problem: GangProblem, *, only_proof: bool = False) -> Steps[Plan | Infeasible | None]:
    """A plan, a proof that there is none, or neither."""
    row_patterns = yield from patterns(problem, only_all=only_proof)
    if row_patterns is None:
        return None
    yield 1 + row_patterns.size // CELLS_A_STEP
    shares = problem.needs / np.maximum(problem.free.sum(axis=1, dtype=np.float64), 1.0)
    prices = shares.max(axis=1, initial=0.0)
    prices = np.maximum(prices / (prices.max() or 1.0), 1 / PRICE_MAX)  # also without needs
    _, taken = problem.cheapest(_whole(prices))
    wanted = np.array(taken, dtype=np.float64)
    chosen = []
    rounds = int(np.clip(ROUND_CELLS // row_patterns.size, ROUNDS_MIN, ROUNDS_MAX))
    price_sums = np.zeros(len(prices))
    for number in range(rounds):
        whole = _whole(prices)
        yield 1 + row_patterns.size // CELLS_A_STEP
        best = row_patterns.best(whole)
        if number >= rounds // 3 and not only_proof:
            chosen.append(best)
        supply = (best * row_patterns.times[:, None]).sum(axis=0)
        bound = sum(a * b for a, b in zip(supply.tolist(), whole.tolist(), strict=True))
        cost, _ = problem.cheapest(whole)
        if bound < cost and row_patterns.drawn is None:
            return Infeasible(
                "if its pods are weighed by what they take away from each other, the nodes hold"
                f" {bound * 100 // cost} % of what it needs, however they are packed"
            )
        short = np.clip((wanted - supply) / np.maximum(wanted, 1.0), -1.0, 1.0)
        prices = prices * np.exp(STEP / (1 + number / 6) * short)
        prices /= prices.max()
        if number >= rounds // 3:
            price_sums += prices
    if only_proof:
        return None
    late = np.array(chosen)
    return (
        yield from _rounded(row_patterns, late, np.array(taken, dtype=np.int64), _whole(price_sums))
    )


def _whole(prices: F64) -> I64:
    found: I64 = np.maximum(np.rint(prices / prices.max() * PRICE_MAX), 1).astype(np.int64)
    return found


def _rounded(row_patterns: RowPatterns, table: I64, wanted: I64, prices: I64) -> Steps[Plan | None]:
    """Distribute the patterns of the later rounds over the rows of each kind, then repair."""
    # A sequence that visits all rounds evenly for any range of rows.
    walk = np.arange(len(row_patterns.kind)) * 0.6180339887498949
    for start in range(STARTS):
        moment = ((walk + start * 0.3819660112501051) % 1.0 * len(table)).astype(np.intp)
        held = table[moment, row_patterns.kind]
        extra = held.sum(axis=0) - wanted
        for width in WIDTHS:
            yield from _swept(row_patterns, held, extra, prices, np.maximum(width * wanted, 0.5))
            if (yield from _exchanged(row_patterns, held, extra, prices)):
                return _plan(held, wanted, prices)
    return None


def _plan(held: I64, wanted: I64, prices: I64) -> Plan:
    plan: Plan = []
    for at in np.argsort(-prices, kind="stable").tolist():
        remaining = int(wanted[at])
        for row in np.flatnonzero(held[:, at]).tolist():
            count = min(remaining, int(held[row, at]))
            if not count:
                break
            plan.append((at, row, count))
            remaining -= count
    return plan


def _swept(
    row_patterns: RowPatterns, held: I64, extra: I64, prices: I64, widths: F64
) -> Steps[None]:
    """Let each row take the pattern with which the whole plan is best. In place.

    What is short is worth the more, the shorter it is: so it is also had by way of exchanges.
    """
    for row in range(len(held)):
        if (extra >= 0).all():
            return
        options = row_patterns.options(int(row_patterns.kind[row]))
        if len(options) < 2:
            continue
        yield ROW_STEPS + options.size // OPTIONS_A_STEP
        after = extra - held[row] + options
        harm = np.exp(np.clip(-after / widths, -20, 20)) @ (prices * widths)
        best = int(np.argmin(harm))
        extra += options[best] - held[row]
        held[row] = options[best]


def _exchanged(row_patterns: RowPatterns, held: I64, extra: I64, prices: I64) -> Steps[bool]:
    """Try to exchange pods between rows for missing pods; whether none is missing then. In place.

    Chains of changes, one row each, from what is missing to what is not; of chains of one length
    the BEAM best go on.
    """
    if (extra >= 0).all() or np.maximum(-extra, 0).sum() > MISSING_MAX:
        return bool((extra >= 0).all())
    changes, row_of, goals = _changes(row_patterns, held, prices)
    ends = extra[None, :]
    chains = np.zeros((1, 0), dtype=np.int64)
    mixer = np.array([(2 * at + 1) * 7_368_787 for at in range(len(extra))], dtype=np.int64)
    for _ in range(CHAIN_MAX):
        yield 1 + len(ends) * len(changes) // CHANGES_A_STEP
        every = (ends[:, None, :] + changes[None, :, :]).reshape(-1, len(extra))
        others = np.flatnonzero((row_of[chains][:, None, :] != row_of[:, None]).all(axis=2))
        _, first = np.unique(every[others] @ mixer, return_index=True)
        distinct = others[first]
        harm = np.exp(np.clip(-every[distinct], -20, 20)) @ prices
        done = (every[distinct] >= 0).all(axis=1)
        best = distinct[np.argsort(np.where(done, -1.0, harm), kind="stable")[:BEAM]]
        if not len(best):
            return False
        before, change = np.divmod(best, len(changes))
        ends, chains = every[best], np.column_stack((chains[before], change))
        if (ends[0] >= 0).all():
            for change in chains[0].tolist():
                extra += goals[change] - held[row_of[change]]
                held[row_of[change]] = goals[change]
            return True
    return False


def _changes(row_patterns: RowPatterns, held: I64, prices: I64) -> tuple[I64, I64, I64]:
    """(what changes, in which row, to what): from equal rows, two each, and of all
    changes the CHANGES_MAX that lose least.
    """
    kinds_held = np.column_stack((row_patterns.kind, held))
    _, first, inverse = np.unique(kinds_held, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    starts = np.searchsorted(inverse.ravel()[order], np.arange(len(first)))
    second = order[np.minimum(starts + 1, len(order) - 1)]
    changes, rows, goals = [], [], []
    for row in np.unique(np.concatenate((first, second))).tolist():
        options = row_patterns.options(int(row_patterns.kind[row]))
        changes.append(options - held[row])
        rows.append(np.full(len(options), row, dtype=np.int64))
        goals.append(options)
    every = np.concatenate(changes)
    moved = np.flatnonzero(every.any(axis=1))
    best = moved[np.argsort(-(every[moved] @ prices), kind="stable")]
    times = Counter[bytes]()
    few = []
    for at in best.tolist():  # a change may be had from several rows: some of them will do
        key = every[at].tobytes()
        times[key] += 1
        if times[key] <= SAME_CHANGES:
            few.append(at)
        if len(few) == CHANGES_MAX:
            break
    return every[few], np.concatenate(rows)[few], np.concatenate(goals)[few]


def by_size(problem: GangProblem) -> Plan | None:
    """A plan for many small pods: the largest first, on the rows where least is left over."""
    free = problem.free.copy()
    total = np.maximum(free.sum(axis=1, dtype=np.float64), 1.0)
    sizes = (problem.needs / total).max(axis=1, initial=0.0)
    plan: Plan = []
    closed = np.zeros(problem.rows.shape, dtype=np.bool_)
    remaining = problem.needed
    for at in np.argsort(-sizes, kind="stable").tolist():
        goal = min(problem.counts[at], remaining)
        needs = problem.needs[at]
        most = np.full(free.shape[1], problem.caps[at], dtype=np.int64)
        most = slots_of(most, needs.tolist(), free)
        most = np.where(problem.rows[at] & ~closed[at], most, 0)
        over = ((free - most * needs[:, None]) / total[:, None]).sum(axis=0)
        for row in np.argsort(over, kind="stable").tolist():
            count = min(goal, int(most[row]))
            if count:
                plan.append((at, row, count))
                free[:, row] -= count * needs
                closed[problem.apart[at], row] = True
                goal -= count
                remaining -= count
            if not goal:
                break
    return None if remaining else plan
