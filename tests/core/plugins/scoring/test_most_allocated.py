"""MostAllocated on numbers."""

import numpy as np

from asched.core.plugins.scoring.most_allocated import most_allocated, most_allocated_one


def test_each_share_is_floored_and_weighed_and_full_is_the_limit() -> None:
    requested, allocatable = np.array([[1, 9, 0], [2, 9, 7]]), np.array([[3, 3, 9], [3, 0, 9]])

    points = most_allocated(requested, allocatable, np.array([1, 3]))

    assert points.tolist() == [(33 + 3 * 66) // 4, 100, 3 * 77 // 4]
    for node, found in enumerate(points.tolist()):
        held, offered = requested[:, node].tolist(), allocatable[:, node].tolist()
        assert most_allocated_one(held, offered, (1, 3)) == found
    assert most_allocated_one((5, 5), (0, 0), (1, 3)) == 0
    assert most_allocated_one((1,), (1,), (2,)) == 100
