"""Bindings seen around the same time, and the orders in which they may have been decided."""

from asched.core.state.pods import PodInfo
from asched.insight.shadow.neighbours import (
    NEAR,
    Neighbours,
    ObservedBinding,
    ReorderedBindings,
)
from tests.builders import a_cluster, a_node, a_pod, pending


def binding(number: int, came: int, priority: int = 0) -> ObservedBinding:
    return ObservedBinding(number, f"uid-{number}", came, priority)


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


def test_nobody_is_before_who_stands_at_the_same_place() -> None:
    one, same = binding(1, came=1), binding(1, came=1)
    assert not one.came_before(same)
    assert not one.was_its_turn(same)
    assert not one.had_priority(same)
    vip = binding(1, came=1, priority=1)
    assert not vip.was_its_turn(one)
    assert not vip.had_priority(one)


Named = tuple[list[str], list[str]]


class Scene:
    def __init__(self) -> None:
        self.cluster = a_cluster(a_node("n1"), a_node("n2"), a_node("n3"))
        self.placed: dict[str, PodInfo] = {}
        self.neighbours = Neighbours(self.placed, lambda node: "b" if node == "n2" else "a")

    def bound(
        self, name: str, came: int, node: str = "n1", priority: int = 0, seen_s: float = 0.0
    ) -> ObservedBinding:
        info = pending(self.cluster, a_pod(name))
        self.cluster.assume(info, node)
        self.placed[info.pod.uid] = info
        return self.neighbours.add(info.pod.uid, came, priority, seen_s)

    def orders(
        self, of: ObservedBinding, node: str = "n1", *, is_late: bool = False
    ) -> list[Named]:
        found = self.neighbours.orders(of, node, is_late=is_late)
        return [(names(moved.after), names(moved.before)) for moved in found]


def names(bindings: tuple[ObservedBinding, ...]) -> list[str]:
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


def around(scene: Scene, came: int = 0) -> ObservedBinding:
    """One on n1 between three others on each side, which came as they were seen: nothing moves for
    the order in which they came.
    """
    for number, name in enumerate(("a1", "a2", "a3"), came):
        scene.bound(name, came=number, node=f"n{name[1]}")
    one = scene.bound("one", came=came + 3)
    for number, name in enumerate(("c1", "c2", "c3"), came + 4):
        scene.bound(name, came=number, node=f"n{name[1]}")
    return one


#: n1 and n3 are in one zone.
AFTER_ALL = ([], ["c1", "c2", "c3"])
BEFORE_ITS_NODE = (["a1"], ["c2", "c3"])
BEFORE_ITS_ZONE = (["a1", "a3"], ["c2"])


def test_before_those_beside_it_and_after_those_elsewhere() -> None:
    scene = Scene()
    one = around(scene)
    assert scene.orders(one) == [AFTER_ALL, BEFORE_ITS_NODE, BEFORE_ITS_ZONE]
    assert scene.orders(one, is_late=True) == scene.orders(one)
    assert (["a2"], ["c1", "c3"]) in scene.orders(one, "n2")


def test_after_those_on_the_node_that_is_chosen_here_which_was_full() -> None:
    scene = Scene()
    one = around(scene)
    tried = scene.neighbours.orders(one, "n1", "n3", is_late=False)
    found = [(names(moved.after), names(moved.before)) for moved in tried]
    assert ([], ["c3"]) in found
    scene.bound("early", came=0, node="n1")
    scene.bound("late", came=99, node="n3")
    tried = scene.neighbours.orders(one, "n1", "n3", is_late=False)
    assert ([], ["c3", "early", "late"]) in [(names(m.after), names(m.before)) for m in tried]


def test_node_by_node_those_seen_later_were_there_and_then_those_seen_before_were_not() -> None:
    scene = Scene()
    one, moved = around(scene), ReorderedBindings()
    found: list[Named] = []
    for node in ("n3", "n2", "n3", "n9"):
        again = scene.neighbours.otherwise(one, moved, node)
        if again is not None:
            moved = again
            found.append((names(moved.after), names(moved.before)))
    assert found == [([], ["c3"]), ([], ["c2", "c3"]), (["a3"], ["c2"])]


def test_what_helped_most_often_is_tried_first() -> None:
    scene = Scene()
    one = around(scene)
    for times, wanted in ((1, 1), (2, 2)):
        for _ in range(times):
            tried = scene.neighbours.orders(one, "n1", is_late=False)
            wants = [AFTER_ALL, BEFORE_ITS_NODE, BEFORE_ITS_ZONE][wanted]
            for moved in tried:
                if (names(moved.after), names(moved.before)) == wants:
                    scene.neighbours.helped()
                    break
    assert scene.orders(one) == [BEFORE_ITS_ZONE, BEFORE_ITS_NODE, AFTER_ALL]


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
    assert [
        i.pod.metadata.name for i in scene.neighbours.gone(one, ReorderedBindings(), is_late=False)
    ] == [
        "after",
        "later",
    ]
    moved = ReorderedBindings((before,), (after,))
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
    moved = ReorderedBindings((a,), (b,))
    assert len(moved) == 2
    assert moved.without(a) == ReorderedBindings((), (b,))
    assert moved.without(b) == ReorderedBindings((a,), ())
    assert scene.neighbours.only(moved, {"n2"}) == ReorderedBindings((), (b,))
    assert scene.neighbours.only(moved, {"n1"}) == ReorderedBindings((a,), ())
    del scene.placed[a.uid]
    assert scene.neighbours.node_of(a) == ""


def test_how_far_away_each_was_seen() -> None:
    scene = Scene()
    early = scene.bound("early", came=1, seen_s=1.0)
    near = scene.bound("near", came=2, seen_s=3.5)
    one = scene.bound("one", came=3, seen_s=4.0)
    late = scene.bound("late", came=0, node="n2", seen_s=6.0)
    told = scene.neighbours.told(one, ReorderedBindings((early, near), (late,)))
    assert told == {
        "decidedAfter": [
            {"pod": "default/near", "node": "n1", "places": 1, "seconds": 0.5},
            {"pod": "default/early", "node": "n1", "places": 2, "seconds": 3.0},
        ],
        "decidedBefore": [{"pod": "default/late", "node": "n2", "places": 1, "seconds": 2.0}],
    }
    assert scene.neighbours.told(one, ReorderedBindings((early,), ())).keys() == {"decidedAfter"}
    soon = scene.bound("soon", came=4, seen_s=4.12345)
    (shown,) = scene.neighbours.told(one, ReorderedBindings((), (soon,)))["decidedBefore"]
    assert shown["seconds"] == 0.123
