"""Samples, percentiles and curves."""

import pytest

from asched_lab.bench.metrics import curve_of, latency, samples, spread, throughput, whole_rate
from asched_lab.bench.watching import Collection, PodWatch

CASES = [
    ("nothing, no samples", [], []),
    ("one interval is only a baseline", [0.1, 0.9], []),
    ("the second interval counts", [0.5, 1.1, 1.2, 1.9], [3.0]),
    ("silence before the first pod does not count", [5.5, 6.1, 6.2], [2.0]),
    ("silence repeats the rate over all of it", [0.5, 3.5], [1 / 3, 1 / 3, 1 / 3]),
    ("a pod at the tick belongs to the interval that ends", [0.5, 2.0], [1.0]),
]


@pytest.mark.parametrize(("times_s", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_samples(times_s: list[float], expected: list[float]) -> None:
    assert samples(times_s, 0.0, 1.0) == pytest.approx(expected)


def test_spread_has_an_average_and_percentiles() -> None:
    data = spread([1.0, 2.0, 3.0, 4.0])
    assert data["Average"] == 2.5
    assert data["Perc50"] == 2.5
    assert data["Perc99"] <= 4.0


def collection(times_s: list[float]) -> Collection:
    made = Collection("ns", frozenset({"ns"}), None, 10.0)
    made.scheduled_at_s = times_s
    return made


def test_a_fine_clock_cuts_a_short_run_into_intervals() -> None:
    """A thousand pods at an even pace: every sample says so."""
    times_s = [10.0 + (i + 1) / 1000 for i in range(1000)]
    item = throughput(collection(times_s), "Case/w", is_fine=True)
    assert item.data["Average"] == pytest.approx(1000, rel=0.01)
    assert item.data["Whole"] == pytest.approx(1000, rel=0.01)
    assert "sampled" not in item.labels


def test_a_coarse_clock_says_that_it_could_not_sample() -> None:
    item = throughput(collection([10.2, 10.4]), "Case/w", is_fine=False)
    assert "before the second sample" in item.labels["sampled"]
    assert item.data["Average"] == pytest.approx(5.0)


def test_an_item_has_upstreams_form() -> None:
    item = throughput(collection([10.5, 11.5, 12.5]), "Case/w", is_fine=False).as_json()
    assert item["unit"] == "pods/s"
    assert item["labels"]["Metric"] == "SchedulingThroughput"
    assert item["labels"]["Name"] == "Case/w/ns"
    assert item["data"]["Average"] == 1.0


def test_latencies_are_milliseconds() -> None:
    item = latency("m", "run", [0.001, 0.003])
    assert item is not None
    assert item.data["Average"] == pytest.approx(2.0)
    assert latency("m", "run", []) is None


def test_the_whole_rate_starts_with_the_collection() -> None:
    assert whole_rate([11.0, 12.0], 10.0) == 1.0
    assert whole_rate([], 10.0) == 0.0


def test_a_curve_accounts_for_every_pod() -> None:
    times_s = [10.0 + i * 0.0137 for i in range(1, 400)]
    points = curve_of(collection(times_s))
    width_s = points[1][0] - points[0][0]
    assert sum(rate * width_s for _, rate in points) == pytest.approx(399)
    assert curve_of(collection([])) == []


def test_a_collection_sees_its_namespaces_and_labels_only() -> None:
    pods = PodWatch()
    wanted = Collection("c", frozenset({"a"}), {"type": "x"}, 0.0)
    pods.collections.append(wanted)
    for key, labels in (("a/1", {"type": "x"}), ("a/2", {"type": "y"}), ("b/3", {"type": "x"})):
        pods.created(key, labels, 1.0)
        pods.scheduled(key, 2.0)
        pods.scheduled(key, 3.0)
    assert wanted.scheduled_at_s == [2.0]
    assert wanted.waited_s == [1.0]


def test_waiting_counts_pods_that_are_not_there_yet() -> None:
    pods = PodWatch()
    for name in ("1", "2", "3"):
        pods.created(f"a/{name}", {"type": "x"}, 0.0)
    pods.scheduled("a/1", 1.0)
    pods.attempted("a/2")
    assert pods.waiting(()) == 2
    assert pods.waiting((), attempted_is_enough=True) == 1
    assert pods.waiting(("b",)) == 0
    pods.deleted("a/3")
    assert pods.waiting(("a",), {"type": "x"}) == 1
