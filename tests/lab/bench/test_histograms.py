"""Percentiles of a scheduler's own histograms."""

import pytest

from asched_lab.bench.histograms import item, read

PAGE = """
# HELP m_seconds how long
# TYPE m_seconds histogram
m_seconds_bucket{result="scheduled",le="0.001"} 5
m_seconds_bucket{result="scheduled",le="0.002"} 10
m_seconds_bucket{result="scheduled",le="+Inf"} 10
m_seconds_bucket{result="error",le="0.001"} 0
m_seconds_bucket{result="error",le="0.002"} 0
m_seconds_bucket{result="error",le="+Inf"} 10
m_seconds_sum{result="scheduled"} 0.01
m_seconds_sum{result="error"} 0.09
m_seconds_count{result="scheduled"} 10
other_total 7
"""


def test_series_of_a_name_are_added_up() -> None:
    found = read(PAGE)
    assert list(found) == ["m_seconds"]
    assert found["m_seconds"].count == 20


def test_values_are_spread_evenly_within_a_bucket() -> None:
    histogram = read(PAGE)["m_seconds"]
    assert histogram.percentile(25) == pytest.approx(0.001)
    assert histogram.percentile(37.5) == pytest.approx(0.0015)


def test_what_is_above_every_bound_counts_as_the_last_one() -> None:
    assert read(PAGE)["m_seconds"].percentile(99) == 0.002


def test_a_difference_forgets_what_was_before() -> None:
    before = read(PAGE)["m_seconds"]
    after = read(PAGE.replace('"0.001"} 5', '"0.001"} 9').replace('"0.002"} 10', '"0.002"} 14'))
    fresh = after["m_seconds"].since(before)
    assert fresh.counts[0.001] == 4
    assert fresh.counts[0.002] == 4


def test_an_item_is_in_milliseconds() -> None:
    histogram = read(PAGE)["m_seconds"]
    made = item("m_seconds", "run", histogram)
    assert made is not None
    assert made.data["Average"] == pytest.approx(5.0)
    assert item("m_seconds", "run", histogram.since(histogram)) is None
