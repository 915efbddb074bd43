"""Prices of pieces and rests: right for cases that can be seen through, and bounds that must hold
for all.
"""

import itertools
import random

import numpy as np
import pytest

from asched.hardware.gpu.shares import WHOLE, Demand, Shares, placements
from asched.hardware.gpu.stock import CELLS, LENGTHS_MAX, Stock, worth


def asked(lengths: dict[int, int]) -> list[tuple[Demand, float]]:
    return [(Demand(0, milli, 1), float(count)) for milli, count in lengths.items()]


def test_a_rest_nobody_can_use_is_worth_nothing() -> None:
    prices = worth(asked({810: 5, 1000: 5}))
    assert prices.price(810) == pytest.approx(1)
    assert prices.waste(810) == pytest.approx(0.19)
    assert prices.rest[CELLS * 19 // 100] == 0


def test_pieces_that_complete_each_other_waste_nothing() -> None:
    prices = worth(asked({600: 5, 400: 5}))
    assert prices.price(600) + prices.price(400) == pytest.approx(1)
    assert prices.loss(np.array([1000, 400]), 400) == pytest.approx([0, 0])


def test_a_small_piece_goes_where_the_rest_was_lost_anyway() -> None:
    prices = worth(asked({810: 50, 470: 50, 160: 5}))
    in_hole, in_half = prices.loss(np.array([190, 530]), 160)
    assert in_half > in_hole + 0.3


def test_whatever_is_asked_for_no_way_to_cut_is_worth_more_than_a_device() -> None:
    draw = random.Random(7)
    for _ in range(30):
        lengths = {draw.randrange(150, 990, 10): draw.randrange(1, 100) for _ in range(6)}
        prices = worth(asked(lengths))
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


def test_of_thousands_of_lengths_the_most_frequent_count() -> None:
    lengths = dict.fromkeys(range(1, 1001), 1) | {810: 1000}
    prices = worth(asked(lengths))
    assert len(prices.rest) == CELLS + 1
    assert len(set(np.round(prices.rest, 9).tolist())) <= 2**LENGTHS_MAX
    assert prices.price(810) <= 1 + 1e-6


def shares(cpu: int, *left: int) -> Shares:
    return Shares(
        np.array([cpu]), np.array([left]), np.array([len(left)]), np.zeros(1, np.int32), ("A",)
    )


def test_devices_without_their_cpu_count_as_stranded() -> None:
    stock = Stock([(Demand(10_000, 1000, 1), 1.0)])
    assert stock.stranded(shares(15_000, 1000, 1000)).tolist() == [0.5]
    plain = Demand(5_000)
    node = shares(20_000, 1000, 1000)
    assert stock.costs(node, plain, placements(node, plain)).tolist() == [0.5]


def test_only_a_device_that_a_whole_pod_could_use_is_opened() -> None:
    stock = Stock([(Demand(10_000, 1000, 1), 1.0), (Demand(3_000, 810, 1), 1.0)])
    fraction = Demand(3_000, 810, 1)
    for node, opens in ((shares(20_000, 1000), True), (shares(4_000, 1000), False)):
        assert stock.opens(node, fraction, placements(node, fraction)).tolist() == [opens]
    half = shares(20_000, 900)
    assert stock.opens(half, fraction, placements(half, fraction)).tolist() == [False]


def test_the_price_of_half_a_device_is_half_of_it() -> None:
    prices = worth(asked({500: 1}))
    assert prices.loss(np.array([1000, 700, 500]), 500) == pytest.approx([0, 0, 0])
    assert prices.loss(np.array([1000, 700, 500]), 200) == pytest.approx([0.5, 0, 0.5])


def test_a_length_that_is_often_asked_for_counts_before_many_that_are_not() -> None:
    """There is more than enough for the short ones beside the long ones."""
    prices = worth(asked(dict.fromkeys(range(10, 341, 10), 1) | {810: 1000}))
    assert prices.price(810) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(20))
def test_a_rest_is_worth_what_the_best_pieces_cut_from_it_are(seed: int) -> None:
    draw = random.Random(seed)
    lengths = {draw.randrange(10, 1000, 10): draw.randrange(1, 100) for _ in range(8)}
    prices = worth(asked(lengths))
    each = {milli // 10: prices.price(milli) for milli in (*lengths, WHOLE)}
    rest = prices.rest.tolist()
    assert (rest[0], rest[CELLS]) == (0, pytest.approx(1))
    for cells in range(1, CELLS + 1):
        cut = [rest[cells - length] + price for length, price in each.items() if length <= cells]
        assert rest[cells] == pytest.approx(max(rest[cells - 1], *cut, 0))


def test_where_pods_ask_for_no_cpu_no_device_is_stranded() -> None:
    stock = Stock([(Demand(0, 500, 1), 1.0), (Demand(9000), 5.0)])
    assert stock.stranded(shares(0, 1000, 1000)).tolist() == [0]
    assert Stock([]).stranded(shares(0, 1000)).tolist() == [0]


def test_a_way_costs_what_it_strands_beyond_what_was_stranded() -> None:
    stock = Stock([(Demand(10_000, 1000, 1), 1.0)])
    node = shares(15_000, 1000, 1000)
    for demand, cost in ((Demand(5_000), 0.5), (Demand(10_000, 1000, 1), 0), (Demand(0), 0)):
        assert stock.costs(node, demand, placements(node, demand)).tolist() == [cost]


def test_of_devices_that_lose_as_much_the_tightest_is_taken() -> None:
    stock = Stock([(Demand(0, 500, 1), 1.0)])
    node, half = shares(0, 1000, 700, 500), Demand(0, 500, 1)
    costs = stock.costs(node, half, placements(node, half))
    assert costs == pytest.approx([0.05, 0.02, 0])


def test_whole_devices_open_nothing_and_a_fraction_does_from_as_much_cpu_as_a_quarter_needs() -> (
    None
):
    whole = [(Demand(1_000, 1000, 1), 22.0), (Demand(3_000, 1000, 1), 78.0)]
    stock = Stock([*whole, (Demand(500, 500, 1), 1000.0), (Demand(100), 1000.0)])
    part, all_of_it, plain = Demand(500, 500, 1), Demand(500, 1000, 1), Demand(500)
    for cpu, opens in ((2_999, False), (3_000, True), (3_001, True)):
        node = shares(cpu, 1000)
        assert stock.opens(node, part, placements(node, part)).tolist() == [opens]
        for other in (all_of_it, plain):
            assert stock.opens(node, other, placements(node, other)).tolist() == [False]
    nobody = Stock([(Demand(500, 500, 1), 1.0)])  # nobody asks for a whole one
    node = shares(500, 1000)
    assert nobody.opens(node, part, placements(node, part)).tolist() == [True]
