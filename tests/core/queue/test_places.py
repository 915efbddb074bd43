"""Places: one pod, one place."""

import pytest

from asched.core.queue.places import SubQueues
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import a_pod, by_priority


def a_queued(name: str, until_s: float | None = None, priority: int = 0) -> QueuedPod:
    queued = QueuedPod(a_pod(name, priority=priority), 0.0)
    queued.backoff_until_s = until_s
    return queued


def names(pods: list[QueuedPod]) -> list[str]:
    return [queued.pod.metadata.name for queued in pods]


def test_a_pod_moves_from_place_to_place() -> None:
    places, queued = SubQueues(by_priority), a_queued("web", 3.0)
    seen = []
    for lane in (places.active, places.backoff, places.errors):
        places.into(queued, lane)
        seen.append((places.name_of(queued), tuple(places.pending())))
    assert places.to_rest(queued)
    seen.append((places.name_of(queued), tuple(places.pending())))

    assert seen == [
        ("active", (1, 0, 0, 0)),
        ("backoff", (0, 1, 0, 0)),
        ("backoff", (0, 1, 0, 0)),
        ("unschedulable", (0, 0, 1, 0)),
    ]
    assert len(places) == 1
    assert "default/web" in places
    places.leave(queued)
    assert len(places) == 0
    assert "default/web" not in places
    places.leave(queued)  # it stands nowhere, which is no harm


def test_backoff_is_ordered_by_its_end_before_the_queue_sort() -> None:
    places = SubQueues(by_priority)
    for queued in (a_queued("late", 5, 9), a_queued("low", 4, 1), a_queued("high", 4, 2)):
        places.into(queued, places.backoff)

    assert names(places.listing().backoff) == ["high", "low", "late"]


def test_errors_are_ordered_by_their_end_alone() -> None:
    places = SubQueues(by_priority)
    for queued in (a_queued("first", 4, 1), a_queued("second", 4, 9), a_queued("third", 3, 0)):
        places.into(queued, places.errors)

    assert names(places.listing().errors) == ["third", "first", "second"]


def test_a_new_version_takes_the_place_its_priority_now_gives_it() -> None:
    places = SubQueues(by_priority)
    low, high = a_queued("low", priority=1), a_queued("high", priority=2)
    places.into(low, places.active)
    places.into(high, places.active)

    places.replace_pod(low, a_pod("low", priority=3), None)

    assert names(places.listing().active) == ["low", "high"]


def test_resting_pods_are_filed_anew_when_their_gate_changes() -> None:
    places, queued = SubQueues(by_priority), a_queued("web")
    places.to_rest(queued)

    queued.gated_by = "Gate"

    assert not places.to_rest(queued)
    assert (places.pending().unschedulable, places.pending().gated) == (0, 1)


def test_of_equals_in_backoff_who_came_first_is_before() -> None:
    places = SubQueues(by_priority)
    first, second = a_queued("first", 4, 1), a_queued("second", 4, 1)
    first.arrival, second.arrival = 1, 2
    assert places.is_before_backoff(first)
    places.into(first, places.backoff)
    assert not places.is_before_backoff(second)
    assert not places.is_before_backoff(first), "nobody is before himself"
    assert places.is_before_backoff(a_queued("early", 3, 0))


def test_whoever_comes_to_rest_from_elsewhere_is_told_from_whoever_is_filed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places, queued = SubQueues(by_priority), a_queued("web")
    assert places.to_rest(queued)
    with monkeypatch.context() as patched:
        patched.delattr(places.unschedulable.__class__, "refile")
        assert not places.to_rest(queued), "nothing has changed"
    queued.rejected_by = frozenset({"Fit"})
    assert not places.to_rest(queued)
    (group,) = places.unschedulable.groups()
    assert group.rejectors == {"Fit"}
