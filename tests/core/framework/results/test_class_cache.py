"""Kept work is bounded in bytes, and goes when it is dropped."""

import gc
from weakref import ref

import pytest

from asched.core.framework.results import class_cache
from asched.core.framework.results.class_cache import ClassCache
from asched.core.framework.results.shared import RESULT_BYTES, SharedResults
from tests.builders import a_node, a_pod
from tests.core.preemption.stage import Stage
from tests.weigh import weigh


def a_stage(nodes: int) -> Stage:
    stage = Stage()
    stage.nodes(*(a_node(f"n{number}").labels(zone=f"z{number % 3}") for number in range(nodes)))
    return stage


def ask(stage: Stage, number: int) -> ClassCache:
    pod = a_pod(f"p{number}").requests(cpu=f"{number + 1}m").prefers_nodes()
    stage.attempt(stage.pod(pod.selects(zone=f"z{number % 3}")))
    return stage.runner.cache


@pytest.mark.parametrize("nodes", [50, 500])
def test_work_is_bounded_by_its_bytes(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_cache, "BYTES_MAX", 1 << 20)
    stage = a_stage(nodes)
    for number in range(120):
        for _ in range(2):  # else it goes sooner
            cache = ask(stage, number)
        assert cache.bytes <= 1 << 20
    assert class_cache.CLASSES_MIN < cache.size < 120


def test_classes_that_nobody_asks_about_again_push_out_no_other() -> None:
    stage = a_stage(20)
    for _ in range(2):
        cache = ask(stage, 0)
    (known,) = [kept.state for kept in cache._again]
    room = int(class_cache.BYTES_MAX * class_cache.ONCE_SHARE / class_cache.CLASS_BYTES)
    for number in range(1, 2 * room):
        ask(stage, number)
    assert cache.size <= room + 1
    assert [kept.state for kept in cache._again] == [known]


def test_a_class_that_comes_again_too_late_stays_longer_from_then_on() -> None:
    stage = a_stage(20)
    first = a_pod("first").requests(cpu="1m")
    stage.attempt(stage.pod(first))
    room = int(class_cache.BYTES_MAX * class_cache.ONCE_SHARE / class_cache.CLASS_BYTES)
    for number in range(1, 2 * room):
        cache = ask(stage, number)
    assert not cache._again
    stage.attempt(stage.pod(first))
    assert len(cache._again) == 1


def test_bytes_are_what_arrays_hold() -> None:
    stage = a_stage(1_000)
    for number in range(20):
        cache = ask(stage, number)
    arrays = (
        weigh({n: kept.state for n, kept in enumerate(cache._once)})["bytes"]
        - weigh(stage.cluster)["bytes"]
    )
    told = cache.bytes - class_cache.CLASS_BYTES * cache.size
    told -= RESULT_BYTES * len(cache._shared)
    assert told / 2 < arrays <= told


def test_dropped_work_is_gone_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = a_stage(20)
    (kept,) = ask(stage, 0)._once
    state = ref(kept.state)
    del kept
    answers = [ref(verdict) for verdict in state().active]  # type: ignore[union-attr]
    monkeypatch.setattr(class_cache, "BYTES_MAX", 0)
    gc.disable()
    try:
        for number in range(1, 10):
            ask(stage, number)
        assert state() is None
        assert any(answer() is None for answer in answers)
    finally:
        gc.enable()


def test_a_class_that_comes_back_finds_the_results_it_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = a_stage(200)
    work = ask(stage, 0).work
    monkeypatch.setattr(class_cache, "BYTES_MAX", 7 << 17)
    for number in range(1, 14):
        cache = ask(stage, number)
    assert cache.size < 14
    passes = work.full_passes
    for number in range(14):
        ask(stage, number)
    assert work.full_passes == passes


def test_what_results_take_beside_their_rows_counts_in_a_small_cluster() -> None:
    """A thousand of one row each are not a few kilobytes."""
    shared, most = SharedResults(), 20 * RESULT_BYTES
    for number in range(1_000):
        shared.leave([shared.take(number, 8, object)])
        shared.drop_unused(most, 1)

    assert len(shared) == 19
    assert shared.bytes(1) <= most


def test_results_are_shared_by_the_classes_that_use_them_and_kept_for_a_while() -> None:
    shared = SharedResults()
    made: list[str] = []

    def make() -> object:
        made.append("one")
        return object()

    first = shared.take("a", 8, make)
    assert shared.take("a", 8, make) is first
    shared.leave([first])
    shared.drop_unused(0, 10)
    assert (shared.row_bytes, shared.unused_row_bytes) == (8, 0)  # one class still uses it
    shared.leave([first])
    shared.drop_unused(80 + RESULT_BYTES, 10)
    assert shared.take("a", 8, make) is first
    assert len(made) == 1
    shared.leave([first])
    shared.leave([shared.take("b", 4, make)])
    shared.drop_unused(40 + RESULT_BYTES, 10)  # what was left first goes first
    assert (shared.row_bytes, shared.unused_row_bytes) == (4, 4)
    assert shared.take("a", 8, make) is not first
