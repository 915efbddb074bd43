"""Bindings seen around the same time, and the orders in which they may have been decided."""

import pytest

from asched.core.shadow import neighbours
from asched.core.shadow.neighbours import NEAR, Binding, Moved, Neighbours
from asched.core.state.pods import PodInfo
from tests.builders import a_cluster, a_node, a_pod, pending


def binding(number: int, came: int, priority: int = 0) -> Binding:
    return Binding(number, f"uid-{number}", came, priority)


def test_equals_are_taken_as_they_came_others_as_they_were_seen() -> None:
    early, late = binding(1, came=5), binding(2, came=3)
    assert late.came_before(early)
    assert not early.came_before(late)
    assert late.was_its_turn(early)
    vip = binding(3, came=1, priority=9)
    assert not vip.was_its_turn(early)
    assert early.was_its_turn(vip)


def test_the_more_important_were_first() -> None:
    vip, plain = binding(2, came=9, priority=5), binding(1, came=1)
    assert not vip.had_priority(plain), "it was seen later"
    assert binding(0, came=9, priority=5).had_priority(plain)
    assert not plain.had_priority(vip)
    assert binding(3, came=0).had_priority(plain)
    assert not plain.had_priority(binding(3, came=0))


Named = tuple[list[str], list[str]]


class Scene:
    def __init__(self) -> None:
        self.cluster = a_cluster(a_node("n1"), a_node("n2"))
        self.placed: dict[str, PodInfo] = {}
        self.neighbours = Neighbours(self.placed, lambda node: node)

    def bound(
        self, name: str, came: int, node: str = "n1", priority: int = 0, seen_s: float = 0.0
    ) -> Binding:
        info = pending(self.cluster, a_pod(name))
        self.cluster.assume(info, node)
        self.placed[info.pod.uid] = info
        return self.neighbours.add(info.pod.uid, came, priority, seen_s)

    def orders(self, of: Binding, node: str = "n1", *, is_late: bool = False) -> list[Named]:
        found = self.neighbours.orders(of, node, is_late=is_late)
        return [(names(moved.after), names(moved.before)) for moved in found]


def names(bindings: tuple[Binding, ...]) -> list[str]:
    return [other.uid.removeprefix("uid-") for other in bindings]


def test_who_came_later_may_have_been_decided_later_and_the_other_way_round() -> None:
    scene = Scene()
    scene.bound("came-later", came=9)
    scene.bound("came-before", came=1)
    one = scene.bound("one", came=5)
    scene.bound("also-before", came=2)
    scene.bound("also-later", came=10)
    assert scene.orders(one)[0] == (["came-later"], ["also-before"])


def test_each_possible_order_is_tried_once_and_not_the_one_that_was_seen() -> None:
    scene = Scene()
    scene.bound("a", came=9)
    one = scene.bound("one", came=5)
    scene.bound("b", came=1, node="n2")
    orders = scene.orders(one)
    assert len(orders) == len({(tuple(after), tuple(before)) for after, before in orders})
    assert ([], []) not in orders
    assert ([], ["b"]) in orders, "after all of the nearest"
    assert (["a"], ["b"]) in orders, "before the others on its node, after those elsewhere"


def test_the_reach_is_greater_for_a_late_look() -> None:
    scene = Scene()
    scene.bound("far", came=99_999)
    for number in range(NEAR):
        scene.bound(f"p{number}", came=number, node="n2")
    one = scene.bound("one", came=500)
    assert not any("far" in after for after, _ in scene.orders(one))
    assert any("far" in after for after, _ in scene.orders(one, is_late=True))


def test_who_was_not_there_yet() -> None:
    scene = Scene()
    before = scene.bound("before", came=1)
    one = scene.bound("one", came=2)
    after, later = scene.bound("after", came=3), scene.bound("later", came=4)
    assert [i.pod.metadata.name for i in scene.neighbours.gone(one, Moved(), is_late=False)] == [
        "after",
        "later",
    ]
    moved = Moved((before,), (after,))
    gone = scene.neighbours.gone(one, moved, is_late=False)
    assert [info.pod.metadata.name for info in gone] == ["before", "later"]
    del scene.placed[later.uid]
    assert len(scene.neighbours.gone(one, moved, is_late=False)) == 1


def test_who_was_bound_much_later_was_decided_later_in_any_order() -> None:
    scene = Scene()
    one = scene.bound("one", came=0)
    for number in range(NEAR):
        scene.bound(f"p{number}", came=number)
    assert scene.neighbours.far(one, is_late=False) == ()
    scene.bound("far", came=0)
    assert [i.pod.metadata.name for i in scene.neighbours.far(one, is_late=False)] == ["far"]
    assert scene.neighbours.far(one, is_late=True) == ()


def test_some_of_those_that_moved() -> None:
    scene = Scene()
    a, b = scene.bound("a", came=1), scene.bound("b", came=2, node="n2")
    moved = Moved((a,), (b,))
    assert len(moved) == 2
    assert moved.without(a) == Moved((), (b,))
    assert moved.without(b) == Moved((a,), ())
    assert scene.neighbours.only(moved, {"n2"}) == Moved((), (b,))
    assert scene.neighbours.only(moved, {"n1"}) == Moved((a,), ())
    del scene.placed[a.uid]
    assert scene.neighbours.node_of(a) == ""


def test_how_far_away_each_was_seen() -> None:
    scene = Scene()
    early = scene.bound("early", came=1, seen_s=1.0)
    near = scene.bound("near", came=2, seen_s=3.5)
    one = scene.bound("one", came=3, seen_s=4.0)
    late = scene.bound("late", came=0, node="n2", seen_s=6.0)
    told = scene.neighbours.told(one, Moved((early, near), (late,)))
    assert told == {
        "decidedAfter": [
            {"pod": "default/near", "node": "n1", "places": 1, "seconds": 0.5},
            {"pod": "default/early", "node": "n1", "places": 2, "seconds": 3.0},
        ],
        "decidedBefore": [{"pod": "default/late", "node": "n2", "places": 1, "seconds": 2.0}],
    }
    assert scene.neighbours.told(one, Moved((early,), ())).keys() == {"decidedAfter"}


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LAST_MAX", 3)
    scene = Scene()
    bindings = [scene.bound(f"p{number}", came=-number) for number in range(5)]
    assert scene.neighbours.count == 5
    assert scene.orders(bindings[-1])[0] == (["p2", "p3"], [])
    assert Neighbours({}, str).far(bindings[0], is_late=False) == ()
