"""The collector of garbage around a scheduler's life: off, then between turns, then as it was."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from asched.host import memory
from asched.host.memory import (
    EVERY_S,
    PAUSE_CONTAINERS_MAX,
    YOUNG_LOOKS,
    Collector,
    collected_seldom,
    own_process,
)


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.enable()


class Clock:
    """A clock that says when the next look is due."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def look(self, collector: Collector) -> None:
        self.now_s += EVERY_S
        collector.turned()


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """The generations that were collected."""
    told: list[int] = []

    def hear(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            told.append(info["generation"])

    gc.callbacks.append(hear)
    yield told
    gc.callbacks.remove(hear)


class Ring:
    """Knows itself: only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def a_ring() -> weakref.ref[Ring]:
    return weakref.ref(Ring())


def are_out_of_sight(made: list[list[int]]) -> bool:
    """Whether no collection looks at them. (How many are frozen in all, others change, too.)"""
    return set(map(id, gc.get_objects())).isdisjoint(map(id, made))


def test_nothing_is_collected_by_itself(looks: list[int]) -> None:
    with own_process() as collector:
        assert not gc.isenabled()
        listed = [[number] for number in range(10_000)]
        collector.turned()
        collector.settle()
        made = [[number] for number in range(10_000)]
        assert not gc.isenabled()
        assert looks == []
    assert len(listed) == len(made)
    assert gc.isenabled()


def test_what_the_first_lists_made_is_never_gone_through() -> None:
    listed = [[number] for number in range(1000)]
    Collector().settle()

    assert are_out_of_sight(listed)


def test_turns_before_all_is_listed_collect_nothing(looks: list[int]) -> None:
    clock = Clock()
    collector = Collector(clock)
    gc.disable()
    clock.look(collector)

    assert looks == []


def test_garbage_goes_after_a_turn_once_it_is_due(looks: list[int]) -> None:
    clock = Clock()
    collector = Collector(clock)
    gc.disable()
    collector.settle()

    ring = a_ring()
    collector.turned()
    assert ring() is not None
    clock.look(collector)
    assert ring() is None
    collector.turned()  # the next one is not due
    assert looks == [0]


def test_what_became_garbage_later_goes_too(looks: list[int]) -> None:
    """It was of use at the first look; no look goes through everything."""
    clock = Clock()
    collector = Collector(clock)
    gc.disable()
    collector.settle()

    ring = Ring()
    gone = weakref.ref(ring)
    clock.look(collector)
    del ring
    for _ in range(YOUNG_LOOKS - 1):
        assert gone() is not None
        clock.look(collector)
    assert gone() is None
    assert looks == [0, 0, 0, 1]


def test_a_pause_is_short_though_containers_are_given_back_meanwhile(looks: list[int]) -> None:
    """As many go as come: Python's own count of young ones stays where it is."""
    clock = Clock()
    collector = Collector(clock)
    gc.disable()
    old = [[number] for number in range(2 * PAUSE_CONTAINERS_MAX)]
    collector.settle()
    looks.clear()
    for at in range(len(old)):
        old[at] = [at]
    assert gc.get_count()[0] < PAUSE_CONTAINERS_MAX
    clock.look(collector)

    assert looks == []


def test_a_command_collects_seldom_and_then_as_before() -> None:
    before = gc.get_threshold()
    with collected_seldom():
        assert gc.get_threshold() == memory.SELDOM
        assert gc.isenabled()
    assert gc.get_threshold() == before
