"""Ways to place a pod on the devices of nodes, and the best of them, by a look at every device."""

import random

import numpy as np
import pytest

from asched.hardware.gpu.shares import (
    WHOLE,
    Demand,
    Placements,
    Shares,
    best_of,
    placements,
    tightest,
)

LEFT = (0, 100, 300, 300, 500, 1000, 1000)


def random_shares(draw: random.Random, width: int) -> Shares:
    rows = draw.randrange(6)
    left = [[draw.choice(LEFT) for _ in range(width)] for _ in range(rows)]
    return Shares(
        np.array([draw.randrange(9000) for _ in range(rows)], dtype=np.int64),
        np.array(left, dtype=np.int64).reshape(rows, width),
        np.full(rows, width, dtype=np.int64),
        np.zeros(rows, dtype=np.int32),
        ("A",),
    )


@pytest.mark.parametrize("seed", range(100))
def test_every_different_way_is_there_once(seed: int) -> None:
    draw = random.Random(seed)
    shares = random_shares(draw, draw.randrange(1, 5))
    milli = draw.choice((1, 300, 301, 999))
    fraction = Demand(700, milli, 1)
    expected = []
    for row, left in enumerate(shares.left.tolist()):
        for device, rest in enumerate(left):
            if rest >= milli and rest not in left[:device]:
                after = [*left[:device], rest - milli, *left[device + 1 :]]
                expected.append((row, device, int(shares.cpu[row]) - 700, after))
    before = shares.left.copy()
    assert listed(placements(shares, fraction)) == expected
    assert (shares.left == before).all()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_whole_devices_are_the_first_free_ones(number: int) -> None:
    left = [[500, 1000, 1000, 1000], [1000, 0, 1000, 300]]
    shares = Shares(
        np.array([9, 8]), np.array(left), np.array([4, 4]), np.zeros(2, np.int32), ("A",)
    )
    after = [list(row) for row in left]
    for row in after:
        for _ in range(number):
            row[row.index(WHOLE)] = 0
    demand = Demand(1, WHOLE, number) if number else Demand(1)
    assert listed(placements(shares, demand)) == [(0, -1, 8, after[0]), (1, -1, 7, after[1])]
    assert shares.left.tolist() == left


def listed(ways: Placements) -> list[tuple[int, int, int, list[int]]]:
    return list(
        zip(
            ways.position.tolist(),
            ways.device.tolist(),
            ways.after.cpu.tolist(),
            ways.after.left.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("seed", range(50))
def test_the_best_way_is_the_first_of_those_with_most_points(seed: int) -> None:
    draw = random.Random(seed)
    shares = random_shares(draw, 3)
    ways = placements(shares, Demand(0, 300, 1))
    points = np.array([draw.randrange(-2, 3) for _ in ways.position], dtype=np.int64)
    expected = []
    for row in range(len(shares.cpu)):
        here = [at for at, where in enumerate(ways.position.tolist()) if where == row]
        best = max(here, key=lambda at: points[at], default=-1)
        expected.append((best, int(ways.device[best]) if here else -1))
    index, device = best_of(ways, points, len(shares.cpu))
    assert list(zip(index.tolist(), device.tolist(), strict=True)) == expected


@pytest.mark.parametrize("milli", [1, 300, 301, 1000])
def test_the_tightest_device_is_the_first_with_least_that_gives_it(milli: int) -> None:
    draw = random.Random(milli)
    left = [[draw.choice(LEFT) for _ in range(4)] + [1000] for _ in range(100)]
    expected = [
        min((at for at in range(5) if row[at] >= milli), key=row.__getitem__) for row in left
    ]
    assert tightest(np.array(left), milli).tolist() == expected
