"""LeastAllocated beside its mirror image, on numbers."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from asched.core.plugins.scoring.balanced_allocation import balanced_allocation
from asched.core.plugins.scoring.least_allocated import least_allocated, least_allocated_one
from asched.core.plugins.scoring.most_allocated import most_allocated, most_allocated_one
from asched.core.plugins.scoring.requested_to_capacity_ratio import requested_to_capacity_ratio

I64 = npt.NDArray[np.int64]


def column(*amounts: int) -> I64:
    """One node: int64[R, 1]."""
    return np.array(amounts, dtype=np.int64)[:, None]


WEIGHTS = np.array([1, 1])


@pytest.mark.parametrize(
    ("name", "requested", "allocatable", "least", "most"),
    [
        ("empty", (0, 0), (10, 10), 100, 0),
        ("full", (10, 10), (10, 10), 0, 100),
        ("overdrawn counts as nothing left, and as full", (11, 0), (10, 10), 50, 50),
        ("nothing offered leaves the mean", (5, 3), (10, 0), 50, 50),
        ("nothing at all", (0, 0), (0, 0), 0, 0),
        ("each share is floored before the mean", (1, 2), (3, 3), (66 + 33) // 2, (33 + 66) // 2),
    ],
)
def test_least_and_most(
    name: str, requested: tuple[int, ...], allocatable: tuple[int, ...], least: int, most: int
) -> None:
    assert least_allocated(column(*requested), column(*allocatable), WEIGHTS).tolist() == [least]
    assert most_allocated(column(*requested), column(*allocatable), WEIGHTS).tolist() == [most]


def by_the_rule(
    requested: list[int], allocatable: list[int], weights: list[int], *, is_free: bool
) -> int:
    """The share that is free, or that is used, of each resource; floored, and so is their mean."""
    parts = []
    for held, offered, weight in zip(requested, allocatable, weights, strict=True):
        if offered:
            used = min(held, offered)
            parts.append((weight, (offered - used if is_free else used) * 100 // offered))
    total = sum(weight for weight, _ in parts)
    return sum(weight * points for weight, points in parts) // total if total else 0


@pytest.mark.parametrize("resources", [1, 2, 3])
def test_many_nodes_together_and_each_alone_are_scored_by_the_rule(resources: int) -> None:
    random = np.random.default_rng(resources)
    shape = (resources, 200)
    requested, allocatable = random.integers(0, 12, shape), random.integers(0, 10, shape)
    weights = random.integers(1, 5, resources)
    for kernel, alone, is_free in (
        (least_allocated, least_allocated_one, True),
        (most_allocated, most_allocated_one, False),
    ):
        points = kernel(requested, allocatable, weights).tolist()
        for node, found in enumerate(points):
            amounts = requested[:, node].tolist(), allocatable[:, node].tolist(), weights.tolist()
            assert found == alone(*amounts) == by_the_rule(*amounts, is_free=is_free)


@pytest.mark.parametrize("alone", [least_allocated_one, most_allocated_one])
def test_each_resource_has_one_amount_of_each(alone: Callable[..., int]) -> None:
    with pytest.raises(ValueError, match="argument"):
        alone((1, 2), (3, 4), (1,))


def test_weights_count() -> None:
    weights = np.array([3, 1, 2])

    assert least_allocated(column(5, 0, 2), column(10, 10, 0), weights).tolist() == [250 // 4]


def test_rows_do_not_disturb_each_other() -> None:
    requested, allocatable = np.array([[1, 5, 0], [2, 9, 0]]), np.array([[10, 0, 0], [10, 10, 0]])

    assert least_allocated(requested, allocatable, WEIGHTS).tolist() == [85, 10, 0]


def test_the_inputs_are_left_alone() -> None:
    requested, allocatable = column(1, 2), column(10, 10)
    for array in (requested, allocatable):
        array.flags.writeable = False

    least_allocated(requested, allocatable, WEIGHTS)
    most_allocated(requested, allocatable, WEIGHTS)
    balanced_allocation(requested, requested, allocatable)
    requested_to_capacity_ratio(requested, allocatable, WEIGHTS, np.arange(101))


def test_products_beyond_64_bits_wrap_as_upstream_does() -> None:
    huge = 2**62

    (points,) = least_allocated(column(0), column(huge), np.array([1])).tolist()

    wrapped = (huge * 100 + 2**63) % 2**64 - 2**63
    assert points == int(wrapped / huge)
