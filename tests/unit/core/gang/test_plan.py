"""Plans by prices: what they find fits, what they refute does not."""

import random
from itertools import product

import msgspec
import numpy as np

from asched.batch.placement import plan as plans
from asched.batch.placement.gang_problem import GangProblem, Infeasible, Plan
from asched.batch.placement.plan import R, Steps, by_size, patterns


def ended(steps: Steps[R]) -> R:
    while True:
        try:
            assert next(steps) > 0
        except StopIteration as end:
            found: R = end.value
            return found


def by_prices(problem: GangProblem) -> Plan | Infeasible | None:
    return ended(plans.by_prices(problem))


def a_problem(
    counts: tuple[int, ...], needs: list[list[int]], free: list[list[int]]
) -> GangProblem:
    amount, rows = np.array(free, dtype=np.int64), len(free[0])
    return GangProblem(
        counts=counts,
        needs=np.array(needs, dtype=np.int64),
        free=amount,
        rows=np.ones((len(counts), rows), dtype=np.bool_),
        caps=counts,
        apart=np.zeros((len(counts), len(counts)), dtype=np.bool_),
        needed=sum(counts),
    )


def test_prices_prove_what_no_single_resource_shows() -> None:
    """Each row takes a 3 or a 2 of its 4, never both: two rows take two pods of these."""
    problem = a_problem((1, 2), [[3], [2]], [[4, 4]])

    assert by_prices(problem) is not None
    proof = by_prices(a_problem((2, 1), [[3], [2]], [[4, 4]]))
    assert isinstance(proof, Infeasible)
    assert "the nodes hold 74 % of what it needs" in proof.why, "2 * 3 of 2 * 3 + 2, and a bit"


def fits(problem: GangProblem, plan: Plan) -> bool:
    """Whether a plan places as many pods as are needed, and no row more than it has."""
    used = np.zeros_like(problem.free)
    held = np.zeros(problem.rows.shape, dtype=np.int64)
    for c, row, count in plan:
        assert count > 0
        used[:, row] += count * problem.needs[c]
        held[c, row] += count
    assert not held[~problem.rows].any()
    assert (held.max(axis=1) <= problem.caps).all()
    assert not any(held[one][held[other] > 0].any() for one, other in np.argwhere(problem.apart))
    assert (held.sum(axis=1) <= problem.counts).all()
    return int(held.sum()) >= problem.needed and bool((used <= problem.free).all())


def is_possible(problem: GangProblem) -> bool:
    """By trying every number of each class on every row."""
    states = {problem.counts}
    for row in range(problem.free.shape[1]):
        after = set()
        for left in states:
            most = np.where(problem.rows[:, row], np.minimum(left, problem.caps), 0).tolist()
            for take in product(*(range(n + 1) for n in most)):
                clash = any(take[one] and take[other] for one, other in np.argwhere(problem.apart))
                if not clash and (np.array(take) @ problem.needs <= problem.free[:, row]).all():
                    after.add(tuple(a - b for a, b in zip(left, take, strict=True)))
        states = after
    return min(sum(left) for left in states) <= sum(problem.counts) - problem.needed


def test_plans_are_right_and_proofs_are_true_on_small_problems() -> None:
    found = 0
    for seed in range(100):
        rng = random.Random(seed)
        size, rows = rng.randint(1, 3), rng.randint(1, 4)
        counts = tuple(rng.randint(1, 3) for _ in range(size))
        needs = [[rng.randint(1, 4), rng.randint(0, 3)] for _ in range(size)]
        free = [[rng.randint(0, 8) for _ in range(rows)] for _ in range(2)]
        problem = a_problem(counts, needs, free)
        if rng.random() < 0.3:
            problem = msgspec.structs.replace(problem, needed=rng.randint(1, sum(counts)))
        if rng.random() < 0.6:
            rules = [[rng.random() < 0.7 for _ in range(rows)] for _ in counts]
            caps = tuple(rng.randint(1, 3) for _ in counts)
            apart = np.zeros((size, size), dtype=np.bool_)
            if size > 1 and rng.random() < 0.5:
                apart[0, 1] = apart[1, 0] = True
            problem = msgspec.structs.replace(problem, rows=np.array(rules), caps=caps, apart=apart)
        possible = is_possible(problem)
        for plan in (by_prices(problem), by_size(problem)):
            if isinstance(plan, Infeasible):
                assert not possible, (seed, plan)
            elif plan is not None:
                assert fits(problem, plan), (seed, plan)
                assert possible
                found += 1
    assert found > 45


def test_a_tight_packing_of_many_rows_is_found() -> None:
    """Each row was filled by a hidden pattern to its last unit."""
    rng = random.Random(1)
    needs = [[3, 1], [2, 2], [1, 4]]
    counts, free = [0, 0, 0], []
    for _ in range(100):
        take = [rng.randint(0, 2) for _ in needs]
        free.append([sum(n * need[r] for n, need in zip(take, needs, strict=True)) for r in (0, 1)])
        counts = [a + b for a, b in zip(counts, take, strict=True)]
    problem = a_problem(tuple(counts), needs, [list(row) for row in zip(*free, strict=True)])

    plan = by_prices(problem)

    assert by_size(problem) is None
    assert isinstance(plan, list)
    assert fits(problem, plan)


def test_many_classes_on_rows_that_all_differ_take_a_bounded_table_or_none() -> None:
    """A tenant may make every pod of a gang a class of its own."""
    rng = random.Random(3)
    needs = [[rng.randint(1, 9), rng.randint(1, 9)] for _ in range(40)]
    free = [[rng.randint(0, 90) for _ in range(60)] for _ in range(2)]
    problem = a_problem((2,) * 40, needs, free)
    most, cells = plans.PATTERNS_MAX, plans.DRAWN_MAX
    try:
        plans.PATTERNS_MAX = 50  # type: ignore[misc]
        assert ended(patterns(problem, only_all=True)) is None, "nothing is proved by some of them"
        plans.DRAWN_MAX = 10 * 40 * 60  # type: ignore[misc]
        steps = patterns(problem)
        assert sum(1 for _ in steps) > plans.DRAWS_MIN, "each way is a step of its own"
        found = ended(patterns(problem))
        assert found is not None
        assert found.drawn is not None
        assert plans.DRAWS_MIN <= found.drawn.size // (40 * 50) <= 12
        plans.DRAWN_MAX = 40 * 60  # type: ignore[misc]
        assert ended(patterns(problem)) is None
        assert by_prices(problem) is None
    finally:
        plans.PATTERNS_MAX, plans.DRAWN_MAX = most, cells  # type: ignore[misc]
