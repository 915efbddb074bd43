"""What is counted by words of others stays bounded, and nothing of it is lost."""

import random

import pytest

from asched.serve.telemetry.instruments import (
    CHILDREN_MAX,
    OTHER,
    Families,
    Histogram,
    Pulled,
    exponential,
)


def test_words_without_end_share_one_child_in_the_end() -> None:
    families = Families()
    refusals = families.counter("refusals", "Pods refused.", ("reason",))
    for number in range(CHILDREN_MAX + 500):
        refusals.of(f"OutOfexample.com/made-up-{number}").value += 1
    assert len(refusals.children) == CHILDREN_MAX + 1
    assert refusals.of(OTHER).value == 500
    assert refusals.of("OutOfexample.com/made-up-7").value == 1


def test_the_child_for_all_others_has_a_word_for_each_label() -> None:
    full = Families().counter("pairs", "Pairs.", ("a", "b"))
    for number in range(CHILDREN_MAX):
        full.of("x", str(number))
    assert full.of("x", "more") is full.of("y", "still more") is full.of(OTHER, OTHER)


@pytest.mark.parametrize("seed", range(10))
def test_an_observation_is_in_the_first_bucket_whose_bound_it_does_not_exceed(seed: int) -> None:
    rng = random.Random(seed)
    bounds = sorted(rng.sample(range(1, 20), 5))
    histogram = Histogram(bounds)
    expected, total = [0] * 6, 0
    for _ in range(40):
        value, times = rng.randrange(22), rng.choice((1, 1, 3))
        if times == 1:
            histogram.observe(value)
        else:
            histogram.observe(value, times)
        expected[sum(bound < value for bound in bounds)] += times
        total += value * times
    assert (histogram.counts, histogram.total) == (expected, total)
    histogram.reset()
    assert (histogram.counts, histogram.total) == ([0] * 6, 0)


def test_families_come_by_name_and_without_labels_show_a_zero_from_the_start() -> None:
    families = Families()
    families.histogram("d", "x", (1.0,))
    families.counter("b", "x")
    families.gauge("c", "x", ("l",))
    families.pulled("a", "gauge", "x", ("l",), lambda: {("z",): 1.0, ("y",): 2.0})
    assert [(one.name, one.kind) for one in families] == [
        ("a", "gauge"),
        ("b", "counter"),
        ("c", "gauge"),
        ("d", "histogram"),
    ]
    first, *others = families
    assert isinstance(first, Pulled)
    assert list(first.values()) == [(("y",), 2.0), (("z",), 1.0)]
    assert [len(one.children) for one in others if not isinstance(one, Pulled)] == [1, 0, 1]


def test_a_reset_forgets_counters_with_their_labels_and_keeps_gauges() -> None:
    """Whoever holds a child without labels goes on with it, from zero."""
    families = Families()
    plain, labelled = families.counter("a", "x"), families.counter("b", "x", ("l",))
    state, times = families.gauge("c", "x", ("l",)), families.histogram("d", "x", (1.0,))
    held = plain.of()
    held.value = labelled.of("y").value = state.of("y").value = 3
    times.of().observe(0.5)
    families.pulled("e", "counter", "x", (), lambda: {(): 7.0})

    families.reset()

    assert plain.of() is held
    assert (held.value, labelled.children, state.of("y").value) == (0, {}, 3)
    assert (times.of().counts, times.of().total) == ([0, 0], 0)


def test_bounds_are_multiplied_up_as_go_does_it() -> None:
    """prometheus.ExponentialBuckets(start, factor, count)."""
    assert exponential(0.5, 3, 4) == (0.5, 1.5, 4.5, 13.5)
    third = 0.1 * 1.5 * 1.5
    assert exponential(0.1, 1.5, 3) == (0.1, 0.1 * 1.5, third)
