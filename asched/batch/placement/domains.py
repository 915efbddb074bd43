"""Domains: rules about zones and racks, written as limits on rows, one guess at a time.

    together   pods that must be near each other share a domain: one guess for each that may do
    even       pods that must be spread get a quota in each domain
    apart      pods that must not share a domain get different ones

A variant is a problem in which classes are split by domain. Guesses may be wrong in either
direction, so a variant proves nothing; a plan that is found in one is checked by the rules.

Bounds  VARIANTS_MAX guesses, of LOOKED_MAX that are considered: each set of classes that must be
        together has its own choice, and there are as many guesses as the product of them;
        PARTS_MAX parts of classes in each.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from itertools import islice, product
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from asched.batch.placement.gang_problem import GangProblem, Infeasible, Plan
from asched.batch.placement.plan import by_prices, by_size
from asched.core.model.arrays import I64, Mask

VARIANTS_MAX: Final = 24
LOOKED_MAX: Final = 10 * VARIANTS_MAX
#: Each is a row of every table: a label may have as many values as there are nodes.
PARTS_MAX: Final = 512
#: Rows times classes that are packed by size in a step, and that are only counted.
ROWS_A_STEP: Final = 50
COUNTED_A_STEP: Final = 1_000


class Rule(msgspec.Struct, frozen=True):
    """`owner` must be together with, apart from, or evenly spread with pods of the classes
    `about`. `domains` int[N]: the domain of each row, 0 for none.

    `skew`: by how much counts may differ. `there` int64[D]: pods that count already, by domain.
    """

    kind: Literal["together", "apart", "even"]
    owner: int
    about: frozenset[int]
    domains: npt.NDArray[np.int64]
    skew: int
    there: I64


class Variant(msgspec.Struct, frozen=True):
    """A problem with split classes: `parents[c]` is the original class of c."""

    problem: GangProblem
    parents: tuple[int, ...]


def planned(problem: GangProblem, rules: list[Rule]) -> Iterator[Plan | float]:
    """Yield plans, one after the other; and before each step its cost in budget steps."""
    remaining = VARIANTS_MAX
    for variant in islice(variants(problem, rules), LOOKED_MAX):
        looked = 1 + problem.rows.size // COUNTED_A_STEP
        if variant is None:
            yield looked
            continue
        yield looked + variant.problem.rows.size // ROWS_A_STEP
        plan = by_size(variant.problem)
        if plan is None:
            found = yield from by_prices(variant.problem)
            plan = None if isinstance(found, Infeasible) else found
        if plan is not None:
            yield _in_order(plan, variant)
        remaining -= 1
        if not remaining:
            return


def _in_order(plan: Plan, variant: Variant) -> Plan:
    """Order a plan so that parts of a class alternate between domains, which keeps the spread."""
    turns: list[tuple[int, int, int, int, int]] = []
    seen = Counter[int]()
    is_split = {p for p in variant.parents if variant.parents.count(p) > 1}
    for number, (c, row, count) in enumerate(plan):
        parent = variant.parents[c]
        if parent not in is_split:
            turns.append((0, number, parent, row, count))
            continue
        for _ in range(count):
            seen[c] += 1
            turns.append((seen[c], number, parent, row, 1))
    return [(c, row, count) for _, _, c, row, count in sorted(turns)]


def variants(problem: GangProblem, rules: list[Rule]) -> Iterator[Variant | None]:
    """The guesses, the most promising first; None for one in which some pods find no domains."""
    tied = _tied(problem, [rule for rule in rules if rule.kind == "together"])
    others = [rule for rule in rules if rule.kind != "together"]
    for choice in product(*(_homes(problem, classes, domains) for classes, domains in tied)):
        rows = problem.rows.copy()
        for (classes, _), home in zip(tied, choice, strict=True):
            rows[sorted(classes)] &= home
        yield _split(replace(problem, rows=rows), others)


def _tied(
    problem: GangProblem, rules: list[Rule]
) -> list[tuple[frozenset[int], npt.NDArray[np.int64]]]:
    """The sets of classes that must share a domain, each with its domains by row."""
    tied: list[tuple[set[int], npt.NDArray[np.int64]]] = []
    for rule in rules:
        classes = {rule.owner, *rule.about}
        apart = []
        for known, domains in tied:
            if classes & known and np.array_equal(domains, rule.domains):
                classes |= known
            else:
                apart.append((known, domains))
        tied = [*apart, (classes, rule.domains)]
    live = {c for c, count in enumerate(problem.counts) if count}
    return [(frozenset(classes & live), domains) for classes, domains in tied]


def _homes(
    problem: GangProblem, classes: frozenset[int], domains: npt.NDArray[np.int64]
) -> list[Mask]:
    """The domains in which all of these pods may fit, the domain with most room first."""
    members = sorted(classes)
    top = int(domains.max(initial=0)) + 1
    good = np.ones(top, dtype=np.bool_)
    good[0] = False
    room = np.full(top, np.inf)
    for c in members:
        have = np.bincount(domains, problem.slots[c], top)
        good &= have >= problem.counts[c]
        room = np.minimum(room, have / problem.counts[c])
    wanted = sum(problem.counts[c] * problem.needs[c] for c in members)
    may = problem.rows[members].any(axis=0)
    for need, free in zip(np.atleast_1d(wanted).tolist(), problem.free, strict=True):
        have = np.bincount(domains, np.where(may, free, 0), top)
        good &= have >= need
        if need:
            room = np.minimum(room, have / need)
    order = sorted(np.flatnonzero(good).tolist(), key=lambda d: (-room[d], d))
    return [domains == d for d in order[:VARIANTS_MAX]]


def _split(problem: GangProblem, rules: list[Rule]) -> Variant | None:
    """Split the classes of rules about domains; None if their pods find no domains."""
    caps, apart = list(problem.caps), problem.apart.copy()
    parts: dict[int, list[tuple[int, Mask]]] = {}
    taken: list[tuple[npt.NDArray[np.int64], frozenset[int], I64]] = []
    for rule in rules:
        c = rule.owner
        if not problem.counts[c]:
            continue
        if len(np.unique(rule.domains[rule.domains > 0])) == np.count_nonzero(rule.domains):
            _by_row(rule, problem, caps, apart)
            continue
        if c in parts:  # a second rule about zones: left to the filters
            continue
        levels = rule.there.copy()
        for domains, about, counts in taken:
            if about & (rule.about | {c}) and np.array_equal(domains, rule.domains):
                levels = levels + counts
        quota = _quotas(problem, rule, levels)
        if quota is None:
            return None
        used = np.flatnonzero(quota).tolist()
        if sum(map(len, parts.values())) + len(used) > PARTS_MAX:
            continue  # left to the filters, too
        taken.append((rule.domains, frozenset((c,)), quota))
        parts[c] = [(int(quota[d]), rule.domains == d) for d in used]
    return _put_together(replace(problem, caps=tuple(caps), apart=apart), parts)


def _by_row(rule: Rule, problem: GangProblem, caps: list[int], apart: Mask) -> None:
    """A rule whose domains are single rows."""
    c = rule.owner
    if rule.kind == "apart":
        for other in rule.about:
            if other == c:
                caps[c] = 1
            else:
                apart[c, other] = apart[other, c] = True
    elif c in rule.about:
        rows = max(int(np.count_nonzero(problem.slots[c])), 1)
        caps[c] = min(caps[c], problem.counts[c] // rows + rule.skew)


def _quotas(problem: GangProblem, rule: Rule, levels: I64) -> I64 | None:
    """int64[D]: how many pods of the class each domain gets; None if they find no domains."""
    c, top = rule.owner, len(levels)
    room = np.bincount(rule.domains, problem.slots[c], top).astype(np.int64)
    room[0] = 0
    if rule.kind == "apart":
        own = 1 if c in rule.about else problem.counts[c]
        room = np.where(levels > 0, 0, np.minimum(room, own))
    quota = np.zeros(top, dtype=np.int64)
    # The emptiest of those with room, among equals the one with most of it; of those that are
    # apart the one with the least.
    is_apart = rule.kind == "apart"
    spare, level = room.tolist(), levels.tolist()
    next_ = [(spare[d] if is_apart else level[d], -spare[d], d) for d in range(top) if spare[d] > 0]
    heapify(next_)
    for _ in range(problem.counts[c]):
        if not next_:
            return None
        key, negated, d = next_[0]
        quota[d] += 1
        if negated + 1 < 0:
            heapreplace(next_, (key - 1 if is_apart else key + 1, negated + 1, d))
        else:
            heappop(next_)
    return quota


def _put_together(problem: GangProblem, parts: dict[int, list[tuple[int, Mask]]]) -> Variant:
    everywhere = np.ones(problem.rows.shape[1], np.bool_)
    every = [
        (c, part, home)
        for c, count in enumerate(problem.counts)
        for part, home in parts.get(c, [(count, everywhere)])
    ]
    parents, counts, homes = zip(*every, strict=True)
    at = np.array(parents)
    split = replace(
        problem,
        counts=counts,
        needs=problem.needs[at],
        rows=problem.rows[at] & np.array(homes),
        caps=tuple(problem.caps[c] for c in parents),
        apart=problem.apart[np.ix_(at, at)],
    )
    return Variant(split, parents)
