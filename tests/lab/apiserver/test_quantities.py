"""Quantities in canonical form."""

from decimal import Decimal

import pytest

from asched_lab.apiserver.quantities import canonical, text_of, value


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("16777216Ki", "16Gi"),
        ("4000m", "4"),
        ("1500m", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("0", "0"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("1000Ki", "1000Ki"),
        ("100n", "100n"),
        ("-1", "-1"),
        ("+1", "1"),
    ],
)
def test_canonical(sent: str, kept: str) -> None:
    assert canonical(sent) == kept
    assert value(kept) == value(sent)


@pytest.mark.parametrize("sent", ["", "lots", "1x", "1 Gi", "Gi", "1.2.3", "1KiB"])
def test_no_quantity(sent: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(sent)


def test_numbers_stand_for_their_text() -> None:
    assert text_of(1) == "1"
    assert text_of(0.5) == "500m"
    assert value("1Ki") == Decimal(1024)
    with pytest.raises(ValueError, match="quantities must match"):
        text_of(True)
