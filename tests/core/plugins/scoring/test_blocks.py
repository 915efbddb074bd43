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
