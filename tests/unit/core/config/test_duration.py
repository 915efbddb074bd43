import pytest

from asched.core.config.duration import parse, render

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "ns", "shown"),
    [
        ("15s", 15 * SECOND, "15s"),
        ("1m", 60 * SECOND, "1m0s"),
        ("1h2m3s4ms", 3_723_004_000_000, "1h2m3.004s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("250ms", 250_000_000, "250ms"),
        ("1.5us", 1_500, "1.5µs"),
        ("0", 0, "0s"),
        ("-2h", -7_200 * SECOND, "-2h0m0s"),
        ("+.5s", 500_000_000, "500ms"),
        ("10ns", 10, "10ns"),
    ],
)
def test_a_duration_is_read_and_printed_as_go_does(text: str, ns: int, shown: str) -> None:
    assert parse(text) == ns
    assert render(ns) == shown
    assert parse(shown) == ns


@pytest.mark.parametrize(
    "text",
    [
        *("", "15", "1d", "5 s", '1"', "a\nb", "1é", "s", ".s", "1..5s", "1s ", "\u0663s", "1e2s"),
        *("fifteen seconds", "300000h400000h9000000h", "--1s", "+", "00", "9223372036854775808ns"),
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse(text)


@pytest.mark.parametrize("text", ["1" * 5_000 + "h", "-" + "9" * 20 + "ns", "1h" + "9" * 400 + "s"])
def test_thousands_of_digits_are_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse(text)


def test_digits_that_do_not_count_are_read() -> None:
    assert parse("0" * 5_000 + "1s") == parse("1s")
    assert parse("1." + "0" * 5_000 + "s") == parse("1s")
