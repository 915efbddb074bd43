"""Thousands of selectors asked at once say what each of them says alone."""

import random

import pytest

from asched.core.model.selector import Requirement, Selector
from asched.core.state.many_selectors import ManySelectors

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def a_selector(rng: random.Random) -> Selector:
    """Some ask twice for a key, some for nothing."""
    parts = []
    for _ in range(rng.randrange(4)):
        operator = rng.choice(OPERATORS)
        values = frozenset(rng.sample("vwx", rng.randint(1, 2))) if "I" in operator else frozenset()
        parts.append(Requirement(rng.choice("abc"), operator, values))
    return Selector(tuple(parts))


@pytest.mark.parametrize("seed", range(60))
def test_each_says_what_it_says_alone(seed: int) -> None:
    rng = random.Random(seed)
    selectors = [a_selector(rng) for _ in range(rng.randint(1, 30))]
    many = ManySelectors()
    for selector in selectors:
        many.add(selector.requirements)

    for _ in range(20):
        labels = {key: rng.choice("vwxy") for key in rng.sample("abcdef", rng.randrange(6))}
        assert many.matching(labels).tolist() == [one.matches(labels) for one in selectors]


@pytest.mark.parametrize("count", [2, 128, 256, 300])
def test_one_that_is_barred_by_many_labels_at_once_does_not_hold(count: int) -> None:
    """A tenant may write hundreds of requirements, and as many labels."""
    keys = [f"k{number}" for number in range(count)]
    absent = tuple(Requirement(key, "DoesNotExist", frozenset()) for key in keys)
    other = tuple(Requirement(key, "NotIn", frozenset(("v",))) for key in keys)
    needs = (*absent, Requirement("a", "Exists", frozenset()))
    many = ManySelectors()
    for selector in (absent, other, needs, absent[:-1]):
        many.add(selector)

    labels = dict.fromkeys((*keys, "a"), "v")
    assert many.matching(labels).tolist() == [False] * 4
    assert many.matching({keys[-1]: "v"}).tolist() == [False, False, False, True]
    assert many.matching({"a": "v"}).tolist() == [True] * 4


def test_one_that_is_added_later_is_asked_too() -> None:
    many = ManySelectors()
    many.add((Requirement("a", "In", frozenset("v")),))
    assert many.matching({"a": "v"}).tolist() == [True]
    many.add((Requirement("a", "NotIn", frozenset("v")),))
    assert many.matching({"a": "v"}).tolist() == [True, False]
    assert many.matching({}).tolist() == [False, True]
