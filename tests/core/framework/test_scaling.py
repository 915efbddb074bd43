"""Raw scores as shares of the largest one."""

import numpy as np
import pytest

from asched.core.framework.scaling import ScaledByLargest, by_largest, default_normalize


@pytest.mark.parametrize(
    ("raw", "reverse", "scaled"),
    [
        ([0, 1, 2, 3], False, [0, 33, 66, 100]),
        ([0, 1, 2, 3], True, [100, 67, 34, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([1], False, [100]),
        ([200, 50], False, [100, 25]),
    ],
)
def test_the_largest_gets_all(raw: list[int], reverse: bool, scaled: list[int]) -> None:
    assert default_normalize(np.array(raw), reverse=reverse).tolist() == scaled


def test_the_largest_may_be_elsewhere() -> None:
    assert by_largest(np.array([1, 2]), 4).tolist() == [25, 50]


class Plain(ScaledByLargest):
    def score(self, pod, nodes, data): ...


class Turned(Plain):
    reverses = True


def test_a_scorer_scales_by_its_bounds() -> None:
    raw = np.array([1, 4])
    assert Plain().bounds(raw, None) == 4
    assert Plain().scaled(raw, 4, None).tolist() == [25, 100]
    assert Turned().scaled(raw, 4, None).tolist() == [75, 0]
