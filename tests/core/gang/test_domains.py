"""Guesses at which domains the pods of a gang get: split so that rules about each other hold."""

from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from asched.batch.placement.domains import (
    LOOKED_MAX,
    PARTS_MAX,
    VARIANTS_MAX,
    Rule,
    Variant,
    planned,
    variants,
)
from asched.batch.placement.problem import GangProblem, Plan

ZONES = [1, 1, 2, 2]  # of four rows
HOSTS = [1, 2, 3, 4]


def a_problem(counts: tuple[int, ...], free: list[int], needs: Any = None) -> GangProblem:
    size = len(counts)
    return GangProblem(
        counts=counts,
        needs=np.array(needs or [[1]] * size),
        free=np.array([free]),
        rows=np.ones((size, len(free)), dtype=np.bool_),
        caps=counts,
        apart=np.zeros((size, size), dtype=np.bool_),
        needed=sum(counts),
    )


def rule(
    kind: Any, owner: int, *about: int, domains: Any = None, skew: int = 1, there: Any = None
) -> Rule:
    ids = np.array(domains or ZONES)
    levels = np.zeros(int(ids.max()) + 1, dtype=np.int64) if there is None else np.array(there)
    return Rule(kind, owner, frozenset(about), ids, skew, levels)


def parts(variant: Variant) -> list[tuple[int, int, list[int]]]:
    """(class, how many, on which rows) of each part."""
    found = variant.problem
    rows = [np.flatnonzero(mask).tolist() for mask in found.rows]
    return list(zip(variant.parents, found.counts, rows, strict=True))


def guesses(problem: GangProblem, *rules: Rule) -> list[list[tuple[int, int, list[int]]]]:
    every = variants(problem, list(rules))
    return [parts(variant) for variant in every if variant is not None]


ALL = [0, 1, 2, 3]


def test_without_rules_there_is_nothing_to_guess() -> None:
    assert guesses(a_problem((3, 2), [9] * 4)) == [[(0, 3, ALL), (1, 2, ALL)]]


def test_who_must_be_together_gets_one_domain_the_roomiest_first() -> None:
    problem = a_problem((2, 1), [1, 1, 5, 5])
    assert guesses(problem, rule("together", 0, 1)) == [[(0, 2, [2, 3]), (1, 1, [2, 3])]]
    roomy = a_problem((2, 1), [2, 2, 5, 5])
    assert [found[0][2] for found in guesses(roomy, rule("together", 0, 1))] == [[2, 3], [0, 1]]
    assert guesses(a_problem((9, 1), [1] * 4), rule("together", 0, 1)) == []


def test_rows_without_the_label_are_no_domain() -> None:
    found = guesses(a_problem((2,), [9] * 4), rule("together", 0, 0, domains=[0, 0, 1, 1]))
    assert [part[0][2] for part in found] == [[2, 3]]


def test_classes_that_are_tied_to_one_another_share_one_home() -> None:
    problem = a_problem((1, 1, 1), [9] * 4)
    for found in guesses(problem, rule("together", 0, 1), rule("together", 1, 2)):
        assert len({tuple(rows) for _, _, rows in found}) == 1


def test_even_pods_are_split_among_the_domains_the_emptier_first() -> None:
    (found,) = guesses(a_problem((4,), [9] * 4), rule("even", 0, 0))
    assert found == [(0, 2, [0, 1]), (0, 2, [2, 3])]
    (found,) = guesses(a_problem((3,), [9] * 4), rule("even", 0, 0, there=[0, 3, 0]))
    assert found == [(0, 3, [2, 3])]
    (found,) = guesses(a_problem((4,), [1, 0, 9, 9]), rule("even", 0, 0))
    assert found == [(0, 1, [0, 1]), (0, 3, [2, 3])]
    assert guesses(a_problem((4,), [1, 0, 1, 0]), rule("even", 0, 0)) == []


def test_pods_that_are_apart_take_a_domain_each() -> None:
    (found,) = guesses(a_problem((2,), [9] * 4), rule("apart", 0, 0))
    assert found == [(0, 1, [0, 1]), (0, 1, [2, 3])]
    assert guesses(a_problem((3,), [9] * 4), rule("apart", 0, 0)) == []
    (found,) = guesses(a_problem((1,), [9] * 4), rule("apart", 0, 0, there=[0, 1, 0]))
    assert found == [(0, 1, [2, 3])]


def test_a_class_apart_from_another_stays_out_of_its_domains() -> None:
    problem = a_problem((2, 1), [9] * 4)
    (found,) = guesses(problem, rule("even", 0, 0), rule("apart", 1, 0))[:1] or [None]
    assert found is None, "the first is everywhere"
    (found,) = guesses(a_problem((1, 1), [9] * 4), rule("even", 0, 0), rule("apart", 1, 0))
    (first,), (second,) = ([part[2] for part in found if part[0] == c] for c in (0, 1))
    assert not set(first) & set(second)


def test_who_must_stay_apart_from_others_alone_fills_few_domains() -> None:
    """Those with least room that nobody else is in: the others need the rest."""
    problem = a_problem((4, 0), [2, 1, 2, 2])
    (found,) = guesses(problem, rule("apart", 0, 1))
    assert [part for part in found if part[0] == 0] == [(0, 3, [0, 1]), (0, 1, [2, 3])]


def variant_of(problem: GangProblem, *rules: Rule) -> GangProblem:
    (variant,) = variants(problem, list(rules))
    assert variant is not None
    return variant.problem


def test_rules_about_single_rows_are_bounds_of_rows() -> None:
    problem = a_problem((3, 2), [9] * 4)
    own = variant_of(problem, rule("apart", 0, 0, domains=HOSTS))
    assert own.caps == (1, 2)
    others = variant_of(problem, rule("apart", 0, 1, domains=HOSTS))
    assert others.apart.tolist() == [[False, True], [True, False]]
    even = variant_of(a_problem((8,), [9] * 4), rule("even", 0, 0, domains=HOSTS, skew=1))
    assert even.caps == (3,)


def test_a_class_of_nobody_asks_for_nothing() -> None:
    assert guesses(a_problem((0, 1), [9] * 4), rule("even", 0, 0)) == [[(0, 0, ALL), (1, 1, ALL)]]


def plans(problem: GangProblem, *rules: Rule) -> list[Plan]:
    return [step for step in planned(problem, list(rules)) if isinstance(step, list)]


def test_plans_put_every_pod_where_its_part_may_be() -> None:
    problem = a_problem((4,), [2] * 4)
    (plan,) = plans(problem, rule("even", 0, 0))
    rows = [row for c, row, count in plan for _ in range(count) if c == 0]
    assert len(rows) == 4
    assert sum(row in (0, 1) for row in rows) == 2
    turns = [row in (0, 1) for row in rows]
    assert turns[0] != turns[1], "they come in turns, so that spread is kept on the way"
    assert turns[2] != turns[3]


def test_the_roomiest_home_is_the_one_that_would_hold_the_set_most_often() -> None:
    """The first has room for one time their two and one; the second for one and a half."""
    problem = a_problem((1, 2), [99] * 4, [[1, 0], [0, 1]])
    problem = replace(problem, free=np.array([[2, 2, 1, 1], [1, 1, 2, 1]]), caps=(9, 9))
    homes = [found[0][2] for found in guesses(problem, rule("together", 0, 1))]
    assert homes == [[2, 3], [0, 1]]


def test_room_on_rows_that_nobody_of_a_set_may_use_is_none() -> None:
    problem = a_problem((2, 1), [9, 2, 2, 2])
    problem.rows[:, 0] = False
    assert [found[0][2] for found in guesses(problem, rule("together", 0, 1))] == [[2, 3]]


def test_who_is_where_raises_the_level_for_those_whose_rule_is_about_them() -> None:
    """The first zone is the roomiest; once one is there it is the fullest."""
    problem = a_problem((1, 1), [9, 9, 5, 5])
    for about, where in (((1,), [0, 1]), ((0, 1), [2, 3])):
        (found,) = guesses(problem, rule("even", 0, 0), rule("even", 1, *about))
        assert found == [(0, 1, [0, 1]), (1, 1, where)]


def test_evenly_over_single_rows_are_those_that_take_any() -> None:
    problem = a_problem((8,), [99] * 4)
    problem.rows[0, 1:] = False
    assert variant_of(problem, rule("even", 0, 0, domains=HOSTS)).caps == (8,)


def test_where_packing_by_size_fails_prices_are_asked() -> None:
    """12 and 12 for 6, 5, 5, 4, 2 and 2: largest first, a 5 goes beside the 6 and all is lost."""
    needs = [[6], [5], [4], [2]]
    (plan,) = plans(a_problem((1, 2, 1, 2), [12, 12], needs))
    taken = [0, 0]
    for c, row, count in plan:
        taken[row] += needs[c][0] * count
    assert taken == [12, 12]
    assert plans(a_problem((2, 1), [4, 4], [[3], [2]])) == [], "prices refute it"


def test_so_many_guesses_are_packed() -> None:
    """Two sets that share no class have a home each, of seven: 49 guesses."""
    seven = [1 + row // 2 for row in range(14)]
    problem = a_problem((1, 1), [9] * 14)
    both = [rule("together", c, c, domains=seven) for c in (0, 1)]
    assert len(guesses(problem, *both)) == 49
    assert len(plans(problem, *both)) == VARIANTS_MAX


def test_steps_are_told_before_each_plan_and_guesses_are_bounded() -> None:
    problem = a_problem((1,), [9] * 60)
    many = rule("together", 0, 0, domains=[1 + row // 2 for row in range(60)])
    assert len(guesses(problem, many)) == VARIANTS_MAX
    steps = list(islice(planned(problem, [many]), 2))
    assert isinstance(steps[0], (int, float))
    assert steps[0] > 1
    assert isinstance(steps[1], list)


def test_guesses_in_which_somebody_finds_no_domain_are_counted_too() -> None:
    """Twelve pairs that must be together, over three zones, are half a million guesses; in none of
    them do four pods get a zone of their own each.
    """
    zones = [1, 1, 2, 2, 3, 3]
    pairs = [rule("together", c, c, domains=zones) for c in range(12)]
    problem = a_problem((*[2] * 12, 4), [99] * 6)
    steps = list(planned(problem, [*pairs, rule("apart", 12, 12, domains=zones)]))
    assert len(steps) == LOOKED_MAX
    assert all(isinstance(step, (int, float)) and step >= 1 for step in steps)


def plain_quota(kind: str, levels: list[int], room: list[int], count: int) -> list[int] | None:
    """Pod by pod: the emptiest domain with room, the roomiest of those; apart, the fullest one."""
    quota = [0] * len(room)
    for _ in range(count):
        spare = {d: room[d] - quota[d] for d in range(len(room)) if room[d] > quota[d]}
        if not spare:
            return None
        if kind == "apart":
            best = min(spare, key=lambda d: (spare[d], d))
        else:
            best = min(spare, key=lambda d: (levels[d] + quota[d], -spare[d], d))
        quota[best] += 1
    return quota


@pytest.mark.parametrize("seed", range(60))
def test_quotas_are_those_of_a_plain_reading(seed: int) -> None:
    random = Random(seed)
    top = random.randint(1, 6)
    domains = [random.randint(0, top) for _ in range(random.randint(2, 12))]
    problem = a_problem((random.randint(1, 14), 0), [random.randint(0, 3) for _ in domains])
    top = max(domains, default=0)
    there = [0, *(random.randint(0, 3) for _ in range(top))]
    kind = random.choice(("even", "apart"))
    about = random.choice(((0,), (1,)))  # apart from others, they may share a domain
    own = rule(kind, 0, *about, domains=domains, there=there)
    room = [0] * (top + 1)
    for d, slots in zip(domains, problem.slots[0].tolist(), strict=True):
        room[d] += slots if d else 0
    if kind == "apart":
        own_most = 1 if about == (0,) else problem.counts[0]
        room = [0 if at else min(have, own_most) for have, at in zip(room, there, strict=True)]
    expected = plain_quota(kind, there, room, problem.counts[0])

    is_by_row = len({d for d in domains if d}) == sum(map(bool, domains))
    found = guesses(problem, own)

    if is_by_row:
        assert [count for _, count, _ in found[0]] == list(problem.counts)
    elif expected is None:
        assert found == []
    else:
        assert [count for c, count, _ in found[0] if c == 0] == [n for n in expected if n]


def test_a_class_that_would_have_too_many_parts_is_left_whole() -> None:
    """Pairs of nodes that share a label: as many domains as half of the nodes."""
    pairs = [1 + row // 2 for row in range(2 * PARTS_MAX + 2)]
    problem = a_problem((PARTS_MAX, 2), [9] * len(pairs))
    even = rule("even", 0, 0, domains=pairs), rule("even", 1, 1, domains=pairs)
    counts = [count for c, count, _ in guesses(problem, *even)[0] if c == 1]
    assert counts == [2], "the first rule has taken all the parts there may be"
    assert [c for c, *_ in guesses(problem, *even)[0]].count(0) == PARTS_MAX
    more = a_problem((PARTS_MAX + 1, 2), [9] * len(pairs))
    (found,) = guesses(more, *even)
    assert [count for _, count, _ in found] == [PARTS_MAX + 1, 1, 1], "the second has all it needs"
