"""MostAllocated on numbers."""

import numpy as np

from asched.core.plugins.scoring.most_allocated import most_allocated


def test_each_share_is_floored_and_weighed_and_full_is_the_limit() -> None:
    requested, allocatable = np.array([[1, 9, 0], [2, 9, 7]]), np.array([[3, 3, 9], [3, 0, 9]])

    points = most_allocated(requested, allocatable, np.array([1, 3]))

    assert points.tolist() == [(33 + 3 * 66) // 4, 100, 3 * 77 // 4]
