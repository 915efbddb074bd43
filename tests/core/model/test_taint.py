"""Tolerations by what they may meet: the same answers as one after the other, in fewer looks."""

import random
from itertools import product

import pytest

from asched.core.model.taint import (
    Taint,
    Toleration,
    Tolerations,
    tolerated,
)

KEYS = ("", "a", "b")
VALUES = ("", "1", "2", "10", "-3", "x", str(2**63), "9" * 5000)
EFFECTS = ("", "NoSchedule", "NoExecute", "PreferNoSchedule")
OPERATORS = ("", "Equal", "Exists", "Lt", "Gt", "Nope")


@pytest.mark.parametrize("seed", range(50))
def test_they_tolerate_what_one_of_them_tolerates(seed: int) -> None:
    rng = random.Random(seed)
    some = tuple(
        Toleration(*(rng.choice(of) for of in (KEYS, OPERATORS, VALUES, EFFECTS)))
        for _ in range(rng.randint(0, 6))
    )
    together = Tolerations(some)
    for key, value, effect in product(KEYS[1:], VALUES, EFFECTS[1:]):
        taint = Taint(key, value, effect)
        assert together.tolerate(taint) is tolerated(taint, some), f"seed {seed}: {taint}"


LEAST, MOST = str(-(2**63)), str(2**63 - 1)


def test_equal_ones_are_one_key() -> None:
    one, other = (Tolerations((Toleration("k", "Exists"),)) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    assert one != Tolerations(())
    assert one != (Toleration("k", "Exists"),)
