"""Times of the API, both ways."""

import pytest

from asched.core.model.timestamp import NS_PER_SECOND, micro_time, microseconds, rfc3339


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000),
    ],
)
def test_microseconds(text: str, wanted: int) -> None:
    assert microseconds(text) == wanted


@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T00:00:00", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        microseconds(text)


def test_times_are_written_in_whole_seconds() -> None:
    assert rfc3339(1_767_225_600.9) == "2026-01-01T00:00:00Z"


def test_a_micro_time_has_six_digits() -> None:
    assert micro_time(1_700_000_000 * NS_PER_SECOND) == "2023-11-14T22:13:20.000000Z"
    assert micro_time(999_999_999) == "1970-01-01T00:00:00.999999Z"
    assert micro_time(1_700_000_000 * NS_PER_SECOND + 1_999) == "2023-11-14T22:13:20.000001Z"
