"""Blocks against the whole."""

import numpy as np
import numpy.typing as npt
import pytest

from asched.core.plugins.scoring import blocks
from asched.core.plugins.scoring.blocks import by_blocks
from asched.core.plugins.scoring.least_allocated import least_allocated

I64 = npt.NDArray[np.int64]
WEIGHTS = np.array([1, 1])


def test_blocks_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    requested, allocatable = random.integers(0, 100, (2, 57)), random.integers(0, 100, (2, 57))

    def kernel(held: I64, offered: I64) -> I64:
        return least_allocated(held, offered, WEIGHTS)

    whole = by_blocks(kernel, requested, allocatable)
    monkeypatch.setattr(blocks, "VALUES_MAX", 20)

    assert by_blocks(kernel, requested, allocatable).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("resources", "rows", "sizes"),
    [
        (2, 0, [0]),
        (2, 9, [9]),
        (2, 10, [10]),
        (2, 11, [10, 1]),
        (2, 25, [10, 10, 5]),
        (3, 12, [6, 6]),
        (0, 21, [20, 1]),
        (21, 3, [1, 1, 1]),
        (40, 2, [1, 1]),
    ],
)
def test_a_block_has_as_many_rows_as_its_values_allow(
    resources: int, rows: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "VALUES_MAX", 20)
    asked = []

    def kernel(held: I64, offered: I64) -> I64:
        asked.append(held.shape[1])
        return np.zeros(held.shape[1], dtype=np.int64)

    amounts = np.zeros((resources, rows), dtype=np.int64)
    assert len(by_blocks(kernel, amounts, amounts)) == rows
    assert asked == sizes
