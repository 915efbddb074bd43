"""A pod that left its node: whom it may have made room for is asked before anybody is looked at."""

from asched.core.framework.points import Registration
from asched.core.queue.due import Reason
from asched.core.queue.hints import Worth
from asched.core.queue.unschedulable import equals_of
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from tests.core.queue.test_looking import LATER_S, Own, Picky, Rooms, scene, taken
from tests.core.queue.waiting import NODE_ADDED, Scene, a_pod


def left(one: Scene, node: str, **more: object) -> int:
    gone = a_pod("gone", node=node)
    return one.queue.move(Change(ASSIGNED_POD_DELETE, gone, None, **more), LATER_S)


def hears_of_departures(rooms: Rooms, **more: object) -> Scene:
    one = Scene(
        {"Fit": [Registration(ASSIGNED_POD_DELETE), Registration(NODE_ADDED)]},
        class_key_of=lambda pod: str(sorted(pod.labels.items())),
        look=rooms,
        **more,
    )
    one.add(*(a_pod(name) for name in "abc"), a_pod("d", labels={"index": "d"}))
    for number in range(4):
        one.reject("Fit", now_s=1.0 + number)
    return one


def test_where_nobody_can_have_room_on_the_node_that_a_pod_left_nobody_is_looked_at() -> None:
    rooms = Rooms()
    rooms.full = {"n1"}
    one = hears_of_departures(rooms)

    assert left(one, "n1") == 0
    assert rooms.asked_about == [("a", "n1"), ("d", "n1")], "one of each class"
    assert not one.queue.places.unschedulable.due
    assert one.queue.looking.spared == 2
    assert taken(one, rooms) == []
    assert rooms.looked_at == []

    left(one, "n2")
    rooms.places = 2
    assert taken(one, rooms) == ["a", "b"]
    assert rooms.looked_at == ["a", "b", "c", "d"]


def test_who_is_due_already_stays_so_whatever_another_departure_comes_to() -> None:
    rooms = Rooms(places=1)
    rooms.full = {"n1"}
    one = hears_of_departures(rooms)

    left(one, "n2")
    rooms.asked_about.clear()
    left(one, "n1")
    assert rooms.asked_about == []
    assert taken(one, rooms) == ["a"]


def test_nor_once_some_of_the_class_were_looked_at() -> None:
    rooms = Picky("b")
    rooms.full = {"n1"}
    one = hears_of_departures(rooms)

    left(one, "n2")
    assert one.pop(LATER_S).pod.metadata.name == "b"
    rooms.asked_about.clear()
    left(one, "n1")
    assert rooms.asked_about == []


def test_of_a_class_of_which_only_those_apart_are_left_nobody_is_asked_about() -> None:
    rooms = Rooms()
    one = scene(rooms)
    one.add(a_pod("a"), a_pod("b", nominated="n1"))
    for _ in "ab":
        one.reject("Fit", now_s=1.0)
    equals = equals_of(one.queue.places.all()[0])
    one.queue.delete(one.api["default/a"])  # while a change goes through thousands
    one.queue.looking.wake(equals, Reason(Worth.AFTER_BACKOFF, "gone"), LATER_S, left="n1")
    assert rooms.asked_about == []
    assert taken(one, rooms) == []


def test_only_a_departure_that_is_nothing_more_is_asked_about() -> None:
    """A node that came may suit anybody; of room that was only promised others may know more."""
    for limits in ({"priority_at_most": 9}, {"only_if_fits": True}):
        rooms = Rooms()
        rooms.full = {"n1"}
        one = hears_of_departures(rooms)
        left(one, "n1", **limits)
        left(one, "")
        one.move(NODE_ADDED, now_s=LATER_S)
        assert rooms.asked_about == [], limits


def test_who_fits_now_because_of_something_that_nobody_heard_of_is_not_asked_about() -> None:
    """It was looked at: what that found may be room on another node."""
    rooms = Rooms(places=1)
    rooms.full = {"n1"}
    extra = {"Fit": [Registration(ASSIGNED_POD_DELETE)]}
    one = Scene({"Fit": []}, class_key_of=lambda _: "all", look=rooms, extra_events=extra)
    one.add(a_pod("a"))
    one.reject("Fit", now_s=1.0)

    left(one, "n1")
    assert rooms.asked_about == []
    assert taken(one, rooms) == ["a"]


def test_a_queue_of_its_own_sees_everybody_whom_a_departure_wakes() -> None:
    rooms = Rooms()
    rooms.full = {"n1"}
    one = hears_of_departures(rooms, active_queue=Own)

    left(one, "n1")
    assert rooms.asked_about == []
    assert sorted(one.names()["active"]) == ["a", "b", "c", "d"]
