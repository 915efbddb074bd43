"""Rest: groups of equal rejectors, classes inside them, and counts."""

from collections.abc import Hashable

from asched.core.queue.due import Reason
from asched.core.queue.hints import Worth
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import Equals, UnschedulablePods, equals_of
from tests.core.queue.waiting import a_pod


def an_unschedulable(
    name: str, *plugins: str, gated_by: str = "", cls: Hashable = None
) -> QueuedPod:
    queued = QueuedPod(a_pod(name), 0.0, cls)
    queued.rejected_by, queued.gated_by = frozenset(plugins), gated_by
    return queued


def test_equal_rejectors_share_a_group_and_equal_pods_a_class() -> None:
    unschedulable = UnschedulablePods()
    for queued in (
        an_unschedulable("a", "Fit", cls=1),
        an_unschedulable("b", "Fit", cls=1),
        an_unschedulable("c", "Fit", cls=2),
        an_unschedulable("d", "Ports", cls=1),
    ):
        unschedulable.add(queued)

    shapes = {
        tuple(g.rejectors): [len(pods) for pods in g.classes.values()]
        for g in unschedulable.groups()
    }
    assert shapes == {("Fit",): [2, 1], ("Ports",): [1]}


def test_pods_without_a_class_share_nothing() -> None:
    unschedulable = UnschedulablePods()
    unschedulable.add(an_unschedulable("a", "Fit"))
    unschedulable.add(an_unschedulable("b", "Fit"))

    (group,) = unschedulable.groups()
    assert len(group.classes) == 2


def test_nothing_stays_behind() -> None:
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable("a", "Fit", cls=1), an_unschedulable("b", "Gate", gated_by="Gate")]
    for queued in pods:
        unschedulable.add(queued)
    assert (unschedulable.unschedulable_count, unschedulable.gated_count, len(unschedulable)) == (
        1,
        1,
        2,
    )

    pods[1].gated_by = ""  # it has just passed, and leaves the group it was filed under
    for queued in pods:
        unschedulable.discard(queued)

    assert (unschedulable.unschedulable_count, unschedulable.gated_count) == (0, 0)
    assert list(unschedulable.groups()) == []


DUE = Reason(Worth.AFTER_BACKOFF, "NodeAdd")


def an_equals(*names: str, gang: str = "") -> tuple[Equals, list[QueuedPod]]:
    equals = Equals(lambda queued: queued.key)
    pods = [an_unschedulable(name, "Fit", cls=name[0]) for name in names]
    for queued in pods:
        queued.gang = gang
        equals.add(queued)
    return equals, pods


def test_whoever_was_tried_is_not_first_until_something_has_happened() -> None:
    equals, (one, two) = an_equals("a1", "a2")
    equals.due = DUE
    assert equals.awaits_look
    equals.note_tried(one)
    assert (equals.first(1.0), equals.awaits_look) == (two, False)
    equals.look_again(two)
    assert equals.first(1.0) is two, "it stands in line already"
    equals.note_tried(two)
    assert equals.first(1.0) is None
    equals.look_again(one)
    assert equals.first(1.0) is one
    equals.look_again()
    equals.discard(one)
    assert equals.first(1.0) is two


def test_one_that_was_tried_is_alone_in_vain() -> None:
    equals, (one,) = an_equals("a1")
    equals.note_tried(one)
    assert equals.first(1.0) is None
    equals.look_again(one)
    assert equals.first(1.0) is one


def test_who_never_backed_off_stands_before_who_does() -> None:
    equals, (one, two) = an_equals("a1")[0], [an_unschedulable(n, "Fit", cls="a") for n in "bc"]
    one.backoff_until_s = 9.0
    for queued in (one, two):
        equals.add(queued)
    equals.note_tried(next(iter(equals)))
    assert equals.first(1.0) is two
    equals.note_tried(two)
    assert equals.first(1.0) is one, "where all back off, the one whose backoff ends first"


def test_a_gang_is_told_apart_by_the_classes_that_are_left_of_it() -> None:
    equals, (one, two, other) = an_equals("a1", "a2", "b1", gang="default/crew")
    assert {cls: list(pods) for cls, pods in equals.classes().items()} == {
        "a": ["default/a1", "default/a2"],
        "b": ["default/b1"],
    }
    equals.discard(one)
    assert set(equals.classes()) == {"a", "b"}
    equals.discard(two)
    assert set(equals.classes()) == {"b"}
    equals.discard(other)
    assert len(equals) == 0


def test_a_due_pod_with_another_version_is_due_still_or_another_pod() -> None:
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Fit", cls="a") for name in ("one", "two", "three")]
    equals, *_ = map(unschedulable.add, pods)
    assert not unschedulable.replace(pods[0], a_pod("one", version=2), "b"), "nobody was due"
    assert not unschedulable.replace(pods[0], a_pod("one", version=3), "a")
    unschedulable.due.add(equals, DUE)
    assert not unschedulable.replace(pods[0], a_pod("one", version=4), "a")
    assert equals.due == DUE
    assert unschedulable.replace(pods[1], a_pod("two", version=2), "b")
    assert equals_of(pods[1]).due is None
    assert unschedulable.replace(pods[2], a_pod("three", nominated="n1"), "a"), "it stands apart"
    assert [queued.key for queued in (*equals.in_turn.values(), *equals.apart.values())] == [
        "default/one",
        "default/three",
    ]


def test_pods_apart_and_behind_a_gate_are_not_due_with_their_like() -> None:
    for change in ("apart", "gated"):
        unschedulable = UnschedulablePods()
        first, second = (an_unschedulable(name, "Fit", cls="a") for name in ("one", "two"))
        unschedulable.add(first)
        unschedulable.due.add(unschedulable.add(second), DUE)
        second.is_promised = change == "apart"
        second.gated_by = "Gate" if change == "gated" else ""
        second.rejected_by = frozenset({"Ports"})

        unschedulable.refile(second)

        assert equals_of(first).due == DUE
        assert equals_of(second).due is None
        assert len(unschedulable.due) == 1


def test_pods_behind_a_gate_stand_in_no_line() -> None:
    """Nobody looks at one of them before the others; a gang of thousands would be sorted twice."""
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Gang", cls="a") for name in ("one", "two", "three")]
    for queued in pods:
        queued.gated_by = queued.gang = "Gang"
        unschedulable.add(queued)
    assert list(unschedulable) == pods
    assert [queued.lane for queued in pods] == [None] * 3
    for queued in pods:
        unschedulable.discard(queued)
    assert list(unschedulable.groups()) == []


def test_who_is_filed_anew_while_due_is_looked_at_among_its_new_like() -> None:
    unschedulable = UnschedulablePods()
    first, second, third = (an_unschedulable(name, "Fit", cls="a") for name in "abc")
    third.rejected_by = frozenset({"Ports"})
    unschedulable.add(first)
    unschedulable.due.add(unschedulable.add(second), DUE)
    unschedulable.due.add(unschedulable.add(third), DUE)
    second.rejected_by = frozenset({"Ports"})
    unschedulable.refile(second)
    equals = equals_of(third)
    assert equals_of(second) is equals
    equals.note_tried(third)
    assert equals.first(1.0) is second
    assert unschedulable.knows(first, frozenset({"Ports"}))
    assert not unschedulable.knows(first, frozenset({"Volumes"}))


def test_who_was_tried_and_left_does_not_keep_the_others_from_awaiting_a_look() -> None:
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Fit", cls=1) for name in "ab"]
    for queued in pods:
        equals = unschedulable.add(queued)
    unschedulable.due.add(equals, Reason(Worth.AFTER_BACKOFF, "x"))
    equals.note_tried(pods[0])
    assert not equals.awaits_look

    unschedulable.discard(pods[0])

    assert equals.awaits_look


def test_another_order_may_have_keys_that_no_old_one_can_be_compared_with() -> None:
    """Those of two queue sorts: nothing that was ordered by one is left beside the other."""
    keys: dict[str, object] = {}
    unschedulable = UnschedulablePods(lambda queued: keys.get(queued.key, queued.timestamp_s))
    pods = [an_unschedulable(name, "Fit", cls=cls) for name, cls in (("a", 1), ("b", 1), ("c", 2))]
    for queued in pods:
        unschedulable.add(queued)
    for queued in pods[1:]:
        unschedulable.due.add(equals_of(queued), Reason(Worth.AFTER_BACKOFF, "x"))
    unschedulable.due.file(1.0)
    for queued in pods:
        unschedulable.discard(queued)
    keys.update({queued.key: queued.key for queued in pods})

    unschedulable.renew()
    for queued in reversed(pods):
        unschedulable.add(queued)
    for queued in pods[1:]:
        unschedulable.due.add(equals_of(queued), Reason(Worth.AFTER_BACKOFF, "x"))

    assert unschedulable.due.first(1.0) is equals_of(pods[0])
    assert [equals.first(1.0) for equals in unschedulable.due] == [pods[0], pods[2]]


def test_a_pod_of_a_gang_that_stands_apart_is_of_its_own_class() -> None:
    """Room is promised to it alone."""
    unschedulable = UnschedulablePods()
    pods = [an_unschedulable(name, "Fit", cls=name) for name in "abc"]
    for queued in pods:
        queued.gang = "default/crew"
    pods[2].is_promised = True
    found = [unschedulable.add(queued) for queued in pods]
    assert found[0] is found[1]
    assert found[2] is not found[0]


def test_who_is_ready_goes_before_one_of_higher_rank_that_backs_off() -> None:
    equals, (ready, backing_off) = an_equals("b", "a")
    for queued in (ready, backing_off):
        equals.discard(queued)
    backing_off.backoff_until_s = 10.0
    for queued in (ready, backing_off):
        equals.add(queued)
    assert equals.first(5.0) is ready
    assert equals.first(11.0) is backing_off, "its pause is over"


def test_who_rests_without_having_been_tried_is_first_and_who_was_is_not() -> None:
    equals, (tried, other) = an_equals("a", "b")
    for queued in (tried, other):
        equals.discard(queued)
    equals.add(tried, was_tried=True)
    assert equals.first(0.0) is None
    equals.add(other)
    assert equals.first(0.0) is other


def test_those_in_turn_await_a_look_only_while_something_is_due() -> None:
    equals, _ = an_equals("a", "b")
    assert not equals.awaits_look
    equals.due = Reason(Worth.IMMEDIATELY, "NodeAdd")
    assert equals.awaits_look
