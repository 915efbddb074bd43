"""What is counted by words of others stays bounded, and nothing of it is lost."""

from asched.serve.telemetry.instruments import CHILDREN_MAX, OTHER, Exposition, Families
from asched.serve.telemetry.page import MetricsPage


def test_words_without_end_share_one_child_in_the_end() -> None:
    families = Families()
    refusals = families.counter("refusals", "Pods refused.", ("reason",))
    for number in range(CHILDREN_MAX + 500):
        refusals.of(f"OutOfexample.com/made-up-{number}").value += 1
    assert len(refusals.children) == CHILDREN_MAX + 1
    assert refusals.of(OTHER).value == 500
    assert refusals.of("OutOfexample.com/made-up-7").value == 1


def test_many_long_label_sets_stay_within_the_bytes_of_a_page() -> None:
    """Each family stays below its number of label sets; together they would be 45 MB."""
    families = Families()
    bounds = [float(number) for number in range(40)]
    for family in range(6):
        histogram = families.histogram(f"durations_{family}", "A time.", bounds, ("a", "b"))
        for number in range(1_000):
            histogram.of(f"{number:07}" + "x" * 9_000, f"{number:07}" + "\ud800" * 100).observe(1)
    page = MetricsPage(families, Exposition()).text()
    assert len(page) < 40 << 20
    lines = [line for line in page.splitlines() if b"_count{" in line]
    for family in range(6):
        counts = [
            line.rpartition(b" ")[2]
            for line in lines
            if line.startswith(b"durations_%d_count" % family)
        ]
        assert sum(map(float, counts)) == 1_000


def test_pulled_values_have_the_same_limits() -> None:
    families = Families()
    values = {(f"{number}" + "x" * 1_000,): 1.0 for number in range(CHILDREN_MAX + 500)}
    families.pulled("held", "gauge", "Held.", ("resource",), lambda: values)
    page = MetricsPage(families, Exposition()).text()
    assert len(page) < 1 << 20
    assert b'held{resource="other"} 500.0' in page
