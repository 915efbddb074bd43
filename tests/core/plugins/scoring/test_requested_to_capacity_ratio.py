"""Curves and the mean along them."""

import numpy as np
import numpy.typing as npt
import pytest

from asched.core.config.args import UtilizationShapePoint
from asched.core.plugins.scoring.requested_to_capacity_ratio import (
    curve,
    requested_to_capacity_ratio,
)

I64 = npt.NDArray[np.int64]


def column(*amounts: int) -> I64:
    """One node: int64[R, 1]."""
    return np.array(amounts, dtype=np.int64)[:, None]


WEIGHTS = np.array([1, 1])


def shape(*corners: tuple[int, int]) -> list[UtilizationShapePoint]:
    return [UtilizationShapePoint(x, y) for x, y in corners]


def test_a_falling_curve_truncates_toward_zero() -> None:
    points = curve(shape((0, 10), (30, 0)))

    assert points[[0, 10, 20, 30, 31, 100]].tolist() == [100, 67, 34, 0, 0, 0]


def test_a_curve_is_flat_outside_its_corners() -> None:
    points = curve(shape((20, 3), (40, 7)))

    assert points[[0, 19, 20, 30, 40, 41, 100]].tolist() == [30, 30, 30, 50, 70, 70, 70]


def test_resources_without_points_leave_the_ratio() -> None:
    rising = curve(shape((0, 0), (100, 10)))

    assert requested_to_capacity_ratio(
        column(0, 50), column(100, 100), WEIGHTS, rising
    ).tolist() == [50]
    assert requested_to_capacity_ratio(column(0, 0), column(9, 9), WEIGHTS, rising).tolist() == [0]
    assert requested_to_capacity_ratio(column(7, 0), column(0, 9), WEIGHTS, rising).tolist() == [0]


def test_a_curve_has_as_many_corners_as_one_likes_and_ends_at_the_last() -> None:
    points = curve(shape((10, 2), (20, 8), (40, 4), (60, 4)))

    assert points[[0, 10, 15, 20, 30, 40, 50, 60, 61, 100]].tolist() == [
        20, 20, 50, 80, 60, 40, 40, 40, 40, 40
    ]  # fmt: skip
    assert len(points) == 101


@pytest.mark.parametrize(
    ("requested", "allocatable", "points"),
    [
        ((0, 5), (0, 10), 50),  # what is not offered has no points, though empty ones have
        ((0, 0), (0, 0), 0),
        ((0, 0), (1, 1), 100),
        ((1, 1), (1, 2), 50),  # the full one has no points and leaves the mean
        ((1, 0), (2, 1), 75),
        ((99, 50), (100, 100), 26),  # (1 + 50) / 2, rounded half up
    ],
)
def test_along_a_falling_curve_the_empty_have_most(
    requested: tuple[int, ...], allocatable: tuple[int, ...], points: int
) -> None:
    falling = curve(shape((0, 10), (100, 0)))
    amounts = column(*requested), column(*allocatable)

    assert requested_to_capacity_ratio(*amounts, WEIGHTS, falling).tolist() == [points]


def test_a_ratio_is_rounded_half_up() -> None:
    rising = curve(shape((0, 0), (100, 10)))
    weights = np.array([3, 1])

    assert requested_to_capacity_ratio(
        column(37, 27), column(100, 100), weights, rising
    ).tolist() == [35]
