"""What calls cost: what operands hold all the way down, and more where the work is larger."""

from typing import Any

import pytest

from asched.core.dra.cel.costs import EXTRA, weight
from asched.core.dra.cel.regex import steps_of
from asched.core.dra.cel.values import NOTHING, Optional


@pytest.mark.parametrize(
    ("value", "weighs"),
    [
        (5, 0),
        ("abc", 3),
        (b"ab", 2),
        ([], 0),
        ([1, 2], 2),
        (["abc", [1]], 2 + 3 + 1),
        ({"a": "bcd"}, 1 + 3),
        (Optional(is_present=True, value="ab"), 2),
        (NOTHING, 0),
    ],
)
def test_a_value_weighs_what_it_holds(value: Any, weighs: int) -> None:
    assert weight(value, 1000) == weighs


def test_counting_ends_where_it_is_too_much() -> None:
    shared: list[Any] = ["a" * 10]
    for _ in range(60):
        shared = [shared, shared]
    assert weight(shared, 100) > 100


@pytest.mark.parametrize(
    ("function", "operands", "extra"),
    [
        ("matches", ("a" * 100, "b" * 40), 11 * 11),
        ("matches", ("", ""), 1),
        ("replace", ("a" * 10, "a", "b" * 5), 5),
        ("replace", ("a", 1, "b"), 0),
        ("join", (["a"] * 20, "--"), 4),
        ("join", (["a"] * 20,), 0),
        ("sum", ([["a"] * 5] * 4,), 8),
        ("sum", (1,), 0),
        ("sets.contains", ([1] * 10, [1] * 20), 20),
        ("sets.equivalent", ([1] * 10, [1] * 20), 40),
        ("sets.intersects", ([1] * 10, [1] * 20), 60),
        ("sets.contains", (1, [1]), 0),
    ],
)
def test_work_beyond_the_operands_is_charged(
    function: str, operands: tuple[Any, ...], extra: int
) -> None:
    compiled = steps_of(operands[1]) // 2 if function == "matches" else 0
    assert EXTRA[function](*operands) == extra + compiled
