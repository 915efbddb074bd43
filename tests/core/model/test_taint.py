"""Tolerations by what they may meet: the same answers as one after the other, in fewer looks."""

import random
from itertools import product
from typing import Any

import pytest

from asched.core.model.taint import (
    Taint,
    Toleration,
    Tolerations,
    tolerated,
    without_comparisons,
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


@pytest.mark.parametrize("seed", range(50))
def test_of_many_comparisons_the_loosest_count(seed: int) -> None:
    rng = random.Random(seed)
    values = ("1", "2", "3", "x", "01", "")
    some = tuple(
        Toleration("k", rng.choice(("Lt", "Gt")), rng.choice(values), "NoSchedule")
        for _ in range(rng.randint(1, 4))
    )
    for value in ("0", "1", "2", "3", "4"):
        taint = Taint("k", value, "NoSchedule")
        assert Tolerations(some).tolerate(taint) is tolerated(taint, some), some


LEAST, MOST = str(-(2**63)), str(2**63 - 1)


@pytest.mark.parametrize(
    ("operator", "value", "taint", "wanted"),
    [
        ("Equal", "1", "1", True),
        ("", "1", "1", True),
        ("Equal", "1", "01", False),
        ("Exists", "", "1", True),
        ("Nope", "1", "1", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "6", False),
        ("Gt", "5", "4", False),
        ("Gt", "5", "5", False),
        ("Gt", "5", "6", True),
        ("Lt", MOST, LEAST, True),
        ("Gt", LEAST, MOST, True),
        ("Gt", LEAST, "0", True),
        ("Lt", "0", LEAST, True),
        ("Lt", str(2**63), "0", False),
        ("Gt", str(-(2**63) - 1), "0", False),
        ("Gt", "05", "6", False),
        ("Gt", "+5", "6", False),
        ("Gt", "-0", "6", False),
        ("Gt", "5", "six", False),
    ],
)
def test_a_toleration_tolerates(operator: str, value: str, taint: str, wanted: bool) -> None:
    """`Lt` and `Gt` compare integers of 64 bits as people write them."""
    one = Toleration("k", operator, value)
    assert one.tolerates(Taint("k", taint, "NoSchedule")) is wanted
    assert Tolerations((one,)).tolerate(Taint("k", taint, "NoSchedule")) is wanted
    assert not one.tolerates(Taint("other", taint, "NoSchedule"))
    of_effect = Toleration("k", operator, value, "NoExecute")
    assert not of_effect.tolerates(Taint("k", taint, "NoSchedule"))
    assert of_effect.tolerates(Taint("k", taint, "NoExecute")) is wanted


def test_without_comparisons_the_others_stay() -> None:
    plain = tuple(Toleration("k", operator, "1") for operator in ("", "Equal", "Exists"))
    compared = tuple(Toleration("k", operator, "1") for operator in ("Lt", "Gt"))
    assert without_comparisons((compared[0], *plain, compared[1])) == plain
    assert without_comparisons(plain) is plain
    assert without_comparisons(compared) == ()


def test_two_effects_keep_pods_away() -> None:
    assert [Taint("k", "", effect).is_hard for effect in EFFECTS] == [False, True, True, False]


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("operator", ["Equal", "Lt", "Gt", "Exists"])
def test_a_taint_meets_few_of_thousands(
    operator: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = Tolerations(tuple(Toleration("k", operator, f"{sign}{i}") for i in range(1, 5000)))
    asked = []
    plain = Toleration.tolerates

    def tolerates(self: Toleration, taint: Taint) -> Any:
        asked.append(self)
        return plain(self, taint)

    monkeypatch.setattr(Toleration, "tolerates", tolerates)
    many.tolerate(Taint("k", "7", "NoSchedule"))
    assert len(asked) <= 1
    asked.clear()
    many.tolerate(Taint("other", "7", "NoSchedule"))
    assert not asked


def test_equal_ones_are_one_key() -> None:
    one, other = (Tolerations((Toleration("k", "Exists"),)) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    assert one != Tolerations(())
    assert one != (Toleration("k", "Exists"),)
