"""Division as upstream does it."""

import numpy as np
import pytest

from asched.core.plugins.scoring.quotient import quotient


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"), [(7, 2, 3), (-7, 2, -3), (-6, 2, -3), (0, 5, 0)]
)
def test_division_truncates_toward_zero(dividend: int, divisor: int, expected: int) -> None:
    both = np.array([dividend, 1]), np.array([divisor, 1])

    assert quotient(*both).tolist() == [expected, 1]
