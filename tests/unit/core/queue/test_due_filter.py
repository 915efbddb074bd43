"""Pods that a change may help are looked at when their turn comes; who fits by then is tried."""

from collections.abc import Callable

import pytest

from asched.core.framework.registrations import Registration
from asched.core.queue.due_filter import DryRunner, DryRunVerdict
from asched.core.queue.gangs import Gangs
from asched.core.queue.queued import QueuedPod
from tests.unit.core.queue.waiting import NODE_ADDED, VOLUME_ADDED, Gate, Scene, a_pod

#: All backoffs are over by then.
LATER_S = 20.0


class Rooms:
    """What a look finds: so many places are free, and each pod takes one. `rejectors` stand against
    a pod while there is none; `is_of_class`: against all its equals. `full`: nodes without room,
    whoever leaves them.
    """

    def __init__(self, *rejectors: str, places: int = 0, is_of_class: bool = True) -> None:
        self.rejectors = frozenset(rejectors or ("Fit",))
        self.places = places
        self.is_of_class = is_of_class
        self.looked_at: list[str] = []
        self.counted: list[str] = []
        self.has_room_for_gangs = False
        self.asked_about: list[tuple[str, str]] = []
        self.full: set[str] = set()

    def __call__(self, queued: QueuedPod) -> DryRunVerdict | None:
        self.looked_at.append(queued.pod.metadata.name)
        return None if self.places else DryRunVerdict(self.rejectors, self.is_of_class)

    def rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        verdict = self(queued)
        return None if verdict is None else verdict.rejectors

    def may_start(self, queued: QueuedPod) -> bool:
        self.counted.append(queued.pod.metadata.name)
        return self.has_room_for_gangs

    def may_help(self, queued: QueuedPod, freed_node: str) -> bool:
        self.asked_about.append((queued.pod.metadata.name, freed_node))
        return freed_node not in self.full

    def room_test(self, freed_node: str) -> Callable[[QueuedPod], bool]:
        return lambda _queued: freed_node not in self.full


def scene(dry_runner: DryRunner, *gates: Gate, **more: object) -> Scene:
    """Fit hears of nodes, Ports of volumes; pods with the same labels are equal."""
    return Scene(
        {"Fit": [Registration(NODE_ADDED)], "Ports": [Registration(VOLUME_ADDED)]},
        gates=gates,
        class_key_of=lambda pod: str(sorted(pod.labels.items())),
        dry_runner=dry_runner,
        **more,
    )


def at_rest(rooms: Rooms, *gates: Gate, alike: bool = True, count: int = 3) -> Scene:
    one = scene(rooms, *gates)
    names = "abcdefgh"[:count]
    one.add(*(a_pod(n, labels={} if alike else {"index": n}) for n in names))
    for number in range(count):
        one.reject("Fit", now_s=1.0 + number)
    return one


def taken(one: Scene, rooms: Rooms, now_s: float = LATER_S) -> list[str]:
    """Everybody who is given out, one after the other; each takes a place."""
    names = []
    while (queued := one.queue.pop(now_s)) is not None:
        names.append(queued.pod.metadata.name)
        rooms.places -= rooms.places > 0
    return names


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("places", [0, 1, 2, 3])
def test_as_many_are_tried_as_fit_in_the_order_of_the_queue(places: int, alike: bool) -> None:
    rooms = Rooms(places=places)
    one = at_rest(rooms, alike=alike)

    one.move(NODE_ADDED, now_s=LATER_S)

    assert taken(one, rooms) == ["a", "b", "c"][:places]
    freed_node = ["a", "b", "c"][places:]
    assert one.names() == ({"unschedulable": freed_node} if freed_node else {})


def test_a_no_counts_nothing() -> None:
    """Neither an attempt nor a pause: the next change finds the pod as this one had found it."""
    rooms = Rooms()
    one = at_rest(rooms, count=1)
    (queued,) = one.queue.places.unschedulable
    before = (queued.attempts, queued.backoff_until_s, queued.timestamp_s, queued.rejected_by)

    one.move(NODE_ADDED, now_s=LATER_S)
    assert taken(one, rooms) == []

    after = (queued.attempts, queued.backoff_until_s, queued.timestamp_s, queued.rejected_by)
    assert after == before
    assert one.witness.waiting_for == {"Fit": 1}
    rooms.places = 1
    one.move(NODE_ADDED, now_s=LATER_S)
    assert taken(one, rooms) == ["a"]


def test_a_class_stays_due_whatever_became_of_the_one_that_was_tried() -> None:
    for end in ("bound", "error", "gone"):
        rooms = Rooms(places=2)
        one = at_rest(rooms)
        one.move(NODE_ADDED, now_s=LATER_S)
        queued = one.pop(LATER_S)
        if end == "error":
            one.fail(queued, now_s=LATER_S)
        elif end == "gone":
            one.queue.delete(one.api["default/a"])
        else:
            one.queue.done(queued.pod.uid)

        assert one.pop(LATER_S).pod.metadata.name == "b", end


def test_a_verdict_on_one_pod_alone_says_nothing_of_its_equals() -> None:
    rooms = Rooms(is_of_class=False)
    one = at_rest(rooms)

    one.move(NODE_ADDED, now_s=LATER_S)

    assert taken(one, rooms) == []
    assert rooms.looked_at == ["a", "b", "c"]
    assert (one.queue.due_filter.tried, one.queue.due_filter.not_tried) == (0, 3)


def test_who_backs_off_is_not_tried_early_while_others_are_active() -> None:
    rooms = Rooms(places=9)
    one = scene(rooms)
    one.add(a_pod("waits", labels={"index": "1"}))
    one.reject("Fit", now_s=1.0)  # until 2
    one.move(NODE_ADDED, now_s=1.1)
    one.add(a_pod("one"), a_pod("two"), now_s=1.2)

    assert one.pop(1.3).pod.metadata.name == "one"
    assert rooms.looked_at == []
    one.queue.tick(3.0)
    assert one.pop(3.0).pod.metadata.name == "waits", "it came before the other"


def test_due_and_active_pods_are_taken_in_one_order() -> None:
    rooms = Rooms(places=9)
    one = scene(rooms)
    for name, priority in (("high", 9), ("low", 1)):
        one.add(a_pod(name, priority=priority, labels={"index": name}))
        one.reject("Fit", now_s=1.0)
    one.add(a_pod("middle", priority=5), now_s=5.0)

    one.move(NODE_ADDED, now_s=LATER_S)

    assert one.pop(LATER_S).pod.metadata.name == "high"
    assert one.pop(LATER_S).pod.metadata.name == "middle"
    assert rooms.looked_at == ["high"], "nobody before its turn"
    assert taken(one, rooms) == ["low"]


def test_a_pod_that_becomes_another_while_it_is_due_is_woken() -> None:
    """The change may have helped it, and a look at those who were its equals says nothing."""
    rooms = Rooms()
    one = at_rest(rooms)
    one.move(NODE_ADDED, now_s=LATER_S)

    one.update(a_pod("c", version=2, labels={"app": "web"}), LATER_S)

    assert taken(one, rooms) == ["c"]


def test_a_gate_in_the_way_of_the_first_lets_the_second_go() -> None:
    rooms = Rooms(places=1)
    one = at_rest(rooms, Gate("Gates"))
    one.update(a_pod("a", version=2, gates=["Gates"]), 5.0)

    one.move(NODE_ADDED, now_s=LATER_S)

    assert taken(one, rooms) == ["b"]
    assert one.names() == {"gated": ["a"], "unschedulable": ["c"]}


def test_of_a_gang_one_pod_is_looked_at_for_all_after_its_backoff() -> None:
    rooms = Rooms(places=1)
    one = scene(rooms, gangs=Gangs(tries_groups=True))
    for name in "abc":
        one.add(a_pod(name, group="crew", labels={"index": name}))
    for _ in range(3):
        one.reject("Fit", now_s=1.0)  # until 2
    one.move(NODE_ADDED, now_s=1.1)

    one.queue.tick(1.2)
    assert one.queue.pop(1.2) is None
    assert one.queue.next_deadline_s() == 3.0
    first = one.pop(3.0)
    members = [one.queue.pop_member(one.api[f"default/{n}"], first, 3.0) for n in "bc"]

    assert rooms.counted == rooms.looked_at == ["a"]
    assert [q.woken_by for q in (first, *members) if q] == [NODE_ADDED.label] * 3


def test_room_that_suffices_ends_the_backoff_of_a_gang_once() -> None:
    rooms = Rooms(places=1)
    rooms.has_room_for_gangs = True
    one = scene(rooms, gangs=Gangs(tries_groups=True))
    one.add(a_pod("a", group="crew"))
    one.reject("Fit", now_s=1.0)  # until 2

    one.move(NODE_ADDED, now_s=1.1)
    early = one.queue.pop(1.1)
    assert early is not None
    one.fail(early, "Fit", now_s=1.2)  # until 3
    one.move(NODE_ADDED, now_s=1.3)

    assert one.queue.pop(1.3) is None
    assert one.pop(4.0) is not None
