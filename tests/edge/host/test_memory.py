"""The collector of garbage around a scheduler's life: off, then slow, then as it was."""

import gc
from collections.abc import Iterator

import pytest

from asched.edge.host.memory import GC_THRESHOLDS, own_process

#: What a pause of ten milliseconds looks through on a slow machine.
PAUSE_CONTAINERS_MAX = 30_000


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_while_everything_is_listed() -> None:
    with own_process():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_the_first_lists_made_is_never_gone_through() -> None:
    frozen = gc.get_freeze_count()
    with own_process() as settle:
        listed = [[number] for number in range(1000)]
        settle()

        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(listed)


def test_no_collection_goes_through_everything() -> None:
    """Young ones every so many containers, old ones after some of these, and never all of it."""
    told: list[int] = []
    looked_through: list[int] = []

    def hear(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            told.append(info["generation"])
            young = gc.get_objects(generation=0)
            old = gc.get_objects(generation=1) if info["generation"] else ()
            looked_through.append(len(young) + len(old))

    with own_process() as settle:
        settle()
        gc.callbacks.append(hear)
        try:
            made: list[list[int]] = [[] for _ in range(GC_THRESHOLDS[0] * 30)]
        finally:
            gc.callbacks.remove(hear)

    assert len(made) // GC_THRESHOLDS[0] >= len(told) >= 20
    assert set(told) == {0, 1}
    assert max(looked_through) <= PAUSE_CONTAINERS_MAX
