"""Division as upstream does it."""

import numpy as np
import pytest

from asched.core.plugins.scoring.quotient import EXACT_MAX, quotient


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"), [(7, 2, 3), (-7, 2, -3), (-6, 2, -3), (0, 5, 0)]
)
def test_division_truncates_toward_zero(dividend: int, divisor: int, expected: int) -> None:
    both = np.array([dividend, 1]), np.array([divisor, 1])

    assert quotient(*both).tolist() == [expected, 1]


@pytest.mark.parametrize("most", [9, 1 << 40, 1 << 62])
def test_signs_of_all_kinds_beside_each_other(most: int) -> None:
    """As in the language of upstream: the quotient of the amounts, and then the sign."""
    rng = np.random.default_rng(7)
    dividends = rng.integers(-most, most, 500, endpoint=True)
    dividends[:3] = 0, -most, most
    divisors = rng.integers(1, min(most, 1 << 20), 500, endpoint=True)
    divisors[3:9] = range(1, 7)
    for some in (
        dividends,
        -abs(dividends),
        np.minimum(dividends, 5),
        abs(dividends),
        dividends[:0],
    ):
        pairs = list(zip(some.tolist(), divisors.tolist(), strict=False))
        expected = [abs(a) // b * (1 if a >= 0 else -1) for a, b in pairs]
        assert quotient(some.copy(), divisors[: len(some)]).tolist() == expected


def test_just_below_a_multiple_is_not_rounded_up() -> None:
    """Where floats divide: as near to the next whole number as 53 bits allow, and beyond them."""
    rng = np.random.default_rng(5)
    divisors = np.concatenate((rng.integers(1, 1 << 36, 4_000), rng.integers(1, 100, 4_000)))
    for limit in (EXACT_MAX, 1 << 62):
        multiples = (limit // divisors - 1) * divisors
        for dividends in (multiples - 1, multiples, multiples // 3):
            expected = [a // b for a, b in zip(dividends.tolist(), divisors.tolist(), strict=True)]
            assert quotient(dividends.copy(), divisors).tolist() == expected
