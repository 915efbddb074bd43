"""Classes that are due: who is looked at first, who not before its backoff ends, who no more."""

from asched.core.queue.due import Due, DueReason
from asched.core.queue.hints import Worth
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import EquivalenceClass
from tests.core.queue.waiting import a_pod

AT_ONCE, AFTER = DueReason(Worth.IMMEDIATELY, "now"), DueReason(Worth.AFTER_BACKOFF, "later")


def order(queued: QueuedPod) -> tuple[int, float]:
    return -queued.pod.priority, queued.timestamp_s


def a_class(
    name: str, priority: int = 0, backs_off_until_s: float | None = None, gang: str = ""
) -> EquivalenceClass:
    """A class of one pod."""
    queued = QueuedPod(a_pod(name, priority=priority), 0.0, name)
    queued.backoff_until_s, queued.gang = backs_off_until_s, gang
    equals = EquivalenceClass(order)
    equals.add(queued)
    return equals


def test_the_class_of_the_most_important_pod_is_first() -> None:
    due, low, high = Due(order), a_class("low"), a_class("high", 9)
    due.add(low, AT_ONCE)
    due.add(high, AT_ONCE)
    assert len(due) == 2
    assert set(due) == {low, high}
    assert due.first(1.0) is high
    due.drop(high)
    assert due.first(1.0) is low
    due.drop(low)
    assert (due.first(1.0), len(due), low.due) == (None, 0, None)


def test_the_greater_worth_counts_whichever_came_first() -> None:
    for reasons in ((AT_ONCE, AFTER), (AFTER, AT_ONCE)):
        due, one = Due(order), a_class("one")
        for reason in reasons:
            due.add(one, reason)
        assert one.due == AT_ONCE
    equal = DueReason(Worth.AFTER_BACKOFF, "another")
    due, one = Due(order), a_class("one")
    due.add(one, AFTER)
    due.add(one, equal)
    assert one.due == AFTER, "of two that are worth the same the first is told"


def test_who_backs_off_is_not_first_before_the_end_of_that_second() -> None:
    due, one = Due(order), a_class("one", backs_off_until_s=5.0)
    due.add(one, AFTER)
    assert due.first(5.9) is None
    assert due.first_backing_off(5.9) is one
    assert due.next_deadline_s() == 6.0
    assert due.first(6.0) is one
    assert due.first_backing_off(6.0) is None
    assert due.next_deadline_s() is None


def test_a_change_that_is_worth_it_at_once_ends_the_backoff() -> None:
    due, one = Due(order), a_class("one", backs_off_until_s=5.0)
    due.add(one, AT_ONCE)
    assert due.first(1.0) is one


def test_of_those_that_back_off_the_one_is_first_whose_pause_ends_first() -> None:
    due = Due(order)
    late, early = a_class("late", 9, backs_off_until_s=7.0), a_class("early", backs_off_until_s=5.0)
    due.add(late, AFTER)
    due.add(early, AFTER)
    assert due.first_backing_off(1.0) is early
    assert due.next_deadline_s() == 6.0


def test_nobody_looks_at_a_gang_before_its_pause_is_over() -> None:
    due, gang = Due(order), a_class("member", backs_off_until_s=5.0, gang="default/crew")
    due.add(gang, AFTER)
    assert due.first_backing_off(5.0) is None
    assert len(due) == 1
    assert list(due) == [gang]
    assert due.next_deadline_s() == 6.0
    assert due.first(6.0) is gang


def test_a_class_whose_last_pod_left_is_not_due() -> None:
    due, one = Due(order), a_class("one")
    due.add(one, AT_ONCE)
    (queued,) = one
    one.discard(queued)
    due.moved(one)
    assert due.first(1.0) is None
    assert (one.due, len(due)) == (None, 0)


def test_a_class_with_another_first_pod_stands_where_that_one_stands() -> None:
    due, one, other = Due(order), a_class("one"), a_class("other", 5)
    due.add(one, AT_ONCE)
    due.add(other, AT_ONCE)
    assert due.first(1.0) is other
    newcomer = QueuedPod(a_pod("vip", priority=9), 0.0, "one")
    one.add(newcomer)
    due.moved(one)
    assert due.first(1.0) is one


def test_all_that_are_due_are_told_wherever_they_stand() -> None:
    due = Due(order)
    ready, backs_off = a_class("ready"), a_class("backs-off", backs_off_until_s=5.0)
    gang = a_class("member", backs_off_until_s=3.0, gang="default/crew")
    for equals in (ready, backs_off, gang):
        due.add(equals, AFTER)
    assert due.first(1.0) is ready
    new = a_class("new")
    due.add(new, AFTER)
    assert list(due) == [new, ready, backs_off, gang]
    assert len(due) == 4
    assert due.next_deadline_s() == 4.0, "the gang's"
