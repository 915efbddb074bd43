"""Quantities: read exactly, rounded up, kept within 64 bits."""

from fractions import Fraction

import pytest

from asched.core.model.quantity import INT64_MAX, QuantityError, ceiling, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        (7, 7),
        (0.5, Fraction(1, 2)),
        ("-2", -2),
        ("+3", 3),
        ("1.", 1),
        ("120.", 120),
        (".5", Fraction(1, 2)),
        ("100m", Fraction(1, 10)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("2k", 2_000),
        ("2M", 2_000_000),
        ("1E", 10**18),
        ("1Ki", 1_024),
        ("1.5Gi", 3 << 29),
        ("1Ei", 1 << 60),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("5E-3", Fraction(1, 200)),
        ("-1Ki", -1_024),
        ("1e40", 10**40),
    ],
)
def test_what_is_written_is_read_exactly(text: str | float, value: Fraction) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "1K", "1 Gi", "ten", "1.2.3", "1e", ".", "0x1", "1e41", "1e-41", "٣", "1e٣"]
)
def test_what_is_no_quantity_is_named(text: str) -> None:
    with pytest.raises(QuantityError, match="quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (Fraction(1, 3), 1),
        (Fraction(-1, 3), -1),
        (Fraction(0), 0),
        (Fraction(2), 2),
        (Fraction(7, 2), 4),
        (Fraction(10**30), INT64_MAX),
        (Fraction(-(10**30)), -INT64_MAX),
    ],
)
def test_rounding_is_away_from_zero_and_within_64_bits(value: Fraction, rounded: int) -> None:
    assert ceiling(value) == rounded


@pytest.mark.parametrize(
    "text", ["9" * 5_000, "0." + "1" * 5_000, "1e" + "9" * 5_000, "1e-" + "9" * 5_000]
)
def test_thousands_of_digits_are_no_quantity(text: str) -> None:
    """Amounts in custom resources and annotations are whatever their author wrote."""
    with pytest.raises(QuantityError, match="more than 1000 characters") as caught:
        parse(text)
    assert len(str(caught.value)) < 200
    assert parse("0" * 999 + "1") == 1
