"""The collector of garbage around a scheduler's life: off, then between turns, then as it was."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from asched.host.memory import (
    EVERY_S,
    PAUSE_CONTAINERS_MAX,
    Collector,
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
        collector.turn_ended()


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


def test_nothing_is_collected_by_itself(looks: list[int]) -> None:
    with own_process() as collector:
        assert not gc.isenabled()
        listed = [[number] for number in range(10_000)]
        collector.turn_ended()
        collector.settle()
        made = [[number] for number in range(10_000)]
        assert not gc.isenabled()
        assert looks == []
    assert len(listed) == len(made)
    assert gc.isenabled()


def test_garbage_goes_after_a_turn_once_it_is_due(looks: list[int]) -> None:
    clock = Clock()
    collector = Collector(clock)
    gc.disable()
    collector.settle()

    ring = a_ring()
    collector.turn_ended()
    assert ring() is not None
    clock.look(collector)
    assert ring() is None
    collector.turn_ended()  # the next one is not due
    assert looks == [0]


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
