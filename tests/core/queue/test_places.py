"""Places: one pod, one place."""

import pytest

from asched.core.model.pod import Pod
from asched.core.queue.lane import SORTED_AT_ONCE, PodHeap
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


def test_who_is_taken_stands_nowhere_and_of_an_empty_lane_nobody_is() -> None:
    places, queued = SubQueues(by_priority), a_queued("web")
    places.into(queued, places.active)
    assert places.all() == [queued]
    assert places.take(places.active) is queued
    assert (places.get("default/web"), len(places), queued.lane) == (None, 0, None)
    assert places.take(places.active) is None


def test_it_is_known_whether_one_would_be_the_next() -> None:
    places = SubQueues(by_priority)
    low, high, equal = a_queued("low", priority=1), a_queued("high", priority=2), a_queued("equal")
    assert places.is_before_active(low), "nobody is active"
    places.into(low, places.active)
    assert places.is_before_active(high)
    equal.pod, equal.arrival = a_pod("equal", priority=1), 1
    assert not places.is_before_active(equal), "it came later"


def test_a_new_version_takes_its_class_and_gang_along_wherever_the_pod_waits() -> None:
    places, queued = SubQueues(by_priority), a_queued("web")
    places.into(queued, places.active)
    newer = a_pod("web", version=2)
    assert not places.replace_pod(queued, newer, 7, "crew")
    assert (queued.pod, queued.class_key, queued.gang) == (newer, 7, "crew")
    assert places.active.head() is queued
    places.to_rest(queued)
    newest = a_pod("web", version=3)
    places.replace_pod(queued, newest, 8, "other")
    assert (queued.pod, queued.class_key, queued.gang) == (newest, 8, "other")
    assert places.name_of(queued) == "unschedulable"


def test_everybody_is_listed_in_one_place() -> None:
    places = SubQueues(by_priority)
    pods = {name: a_queued(name, 3.0) for name in ("a", "b", "e", "u", "g")}
    places.into(pods["a"], places.active)
    places.into(pods["b"], places.backoff)
    places.into(pods["e"], places.errors)
    pods["g"].gated_by = "Gate"
    places.to_rest(pods["u"])
    places.to_rest(pods["g"])
    assert [names(some) for some in places.listing()] == [["a"], ["b"], ["e"], ["u"], ["g"]]
    assert places.pending() == (1, 2, 1, 1)


def test_a_long_lane_is_listed_in_steps() -> None:
    places, count = SubQueues(by_priority), 4 * SORTED_AT_ONCE
    for number in range(count):
        places.into(a_queued(f"p{number}"), places.active)
    name, steps = next(places.by_steps())
    assert name == "active"
    assert [queued is None for queued in steps] == [True] * 4 + [False] * count


class OwnOrder(PodHeap):
    """A plugin's queue."""


def by_name_backwards(pod: Pod, _timestamp_s: float) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in pod.metadata.name)


@pytest.mark.parametrize("before", [PodHeap, OwnOrder])
@pytest.mark.parametrize("after", [PodHeap, OwnOrder])
def test_another_order_counts_in_every_lane_and_everybody_keeps_his_place(
    before: type[PodHeap], after: type[PodHeap]
) -> None:
    places = SubQueues(by_priority, before)
    assert places.has_own_order == (before is OwnOrder)
    lanes = [("active", 2), ("backoff", 2), ("errors", 2)]
    for lane, count in lanes:
        for number in range(count):
            queued = a_queued(f"{lane}-{number}", 3.0, priority=9 - number)
            queued.arrival = number
            places.into(queued, getattr(places, lane))
    kept = places.active
    poured = list(places.resort(by_name_backwards, after))
    assert len(poured) == 6
    listing = places.listing()
    assert names(listing.active) == ["active-1", "active-0"]
    assert names(listing.backoff) == ["backoff-1", "backoff-0"]
    assert names(listing.errors) == ["errors-0", "errors-1"], "in the order of their arrival"
    assert [places.name_of(q) for q in listing.active] == ["active", "active"]
    assert type(places.active) is after
    assert (places.active is kept) == (before is after is OwnOrder), "it may know more"
    assert places.has_own_order == (after is OwnOrder)
