"""Prices of pieces and rests: right for cases that can be seen through, and bounds that must hold
for all.
"""

import itertools
import random

import numpy as np
import pytest

from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, placements
from asched.hardware.gpu.stock import Stock


def asked(lengths: dict[int, int]) -> list[tuple[GpuDemand, float]]:
    return [(GpuDemand(0, milli, 1), float(count)) for milli, count in lengths.items()]


def test_pieces_that_complete_each_other_waste_nothing() -> None:
    prices = Stock(asked({600: 5, 400: 5}))
    assert prices.price(600) + prices.price(400) == pytest.approx(1)
    assert prices.loss(np.array([1000, 400]), 400) == pytest.approx([0, 0])


def test_a_small_piece_goes_where_the_rest_was_lost_anyway() -> None:
    prices = Stock(asked({810: 50, 470: 50, 160: 5}))
    in_hole, in_half = prices.loss(np.array([190, 530]), 160)
    assert in_half > in_hole + 0.3


def test_whatever_is_asked_for_no_way_to_cut_is_worth_more_than_a_device() -> None:
    draw = random.Random(7)
    for _ in range(30):
        lengths = {draw.randrange(150, 990, 10): draw.randrange(1, 100) for _ in range(6)}
        prices = Stock(asked(lengths))
        for number in range(1, 7):
            for pieces in itertools.combinations_with_replacement(lengths, number):
                if sum(pieces) <= WHOLE:
                    assert sum(map(prices.price, pieces)) <= 1 + 1e-6
        bars = sum(count * prices.price(milli) for milli, count in lengths.items())
        material = sum(count * milli for milli, count in lengths.items()) / WHOLE
        assert material <= bars + 1e-6
        assert bars <= first_fit_decreasing(lengths)


def first_fit_decreasing(lengths: dict[int, int]) -> int:
    bars: list[int] = []
    for milli in sorted(lengths, reverse=True):
        for _ in range(lengths[milli]):
            at = next((at for at, rest in enumerate(bars) if rest >= milli), None)
            if at is None:
                bars.append(WHOLE - milli)
            else:
                bars[at] -= milli
    return len(bars)


def shares(cpu: int, *left: int) -> GpuShares:
    return GpuShares(
        np.array([cpu]), np.array([left]), np.array([len(left)]), np.zeros(1, np.int32), ("A",)
    )


def test_devices_without_their_cpu_count_as_stranded() -> None:
    stock = Stock([(GpuDemand(10_000, 1000, 1), 1.0)])
    assert stock.stranded(shares(15_000, 1000, 1000)).tolist() == [0.5]
    plain = GpuDemand(5_000)
    node = shares(20_000, 1000, 1000)
    assert stock.costs(node, plain, placements(node, plain)).tolist() == [0.5]
