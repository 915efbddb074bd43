"""Attempts that wait for cycles that are open: in which order they go on, and who need not wait."""

from dataclasses import dataclass
from typing import Any

from asched.core.cycle import parked
from asched.core.cycle.group import GroupAttempt
from asched.core.cycle.parked import Parked
from asched.core.model.pod import Pod
from tests.builders import a_pod


@dataclass
class One:
    """An attempt, as far as those who park it look."""

    id: int
    pod: Pod
    consults: bool = True


def one(id_: int, priority: int = 0, *, consults: bool = True) -> Any:
    return One(id_, a_pod(f"p{id_}").priority(priority).build(), consults)


def group(id_: int, priority: int = 0) -> GroupAttempt:
    return GroupAttempt("default/crew", [one(id_, consults=False)], id_, one(id_, priority).pod, 0)


def popped(line: Parked) -> list[int]:
    found = []
    while (attempt := line.pop(is_deciding=False)) is not None:
        found.append(attempt.id)
    return found


def test_the_more_important_go_first_and_equals_in_the_order_of_their_attempts() -> None:
    line = Parked()
    for attempt in (one(4), one(1, -5), one(3, 7), one(2)):
        line.add(attempt)
    assert len(line) == 4
    assert line.is_due(is_deciding=False)
    assert not line.is_due(is_deciding=True)
    assert popped(line) == [3, 2, 4, 1]
    assert line.pop(is_deciding=False) is None
    assert not line.is_due(is_deciding=False)


def test_nobody_goes_on_while_an_extender_thinks() -> None:
    line = Parked()
    line.add(one(1))
    assert line.pop(is_deciding=True) is None
    assert len(line) == 1


def test_a_group_waits_for_another_one_and_those_behind_it_do_not() -> None:
    line = Parked()
    line.open_groups.add("default/other")
    line.add(group(1, priority=9))
    line.add(one(2))
    assert popped(line) == [2]
    assert not line.is_due(is_deciding=False)
    line.open_groups.clear()
    assert popped(line) == [1]


def test_who_asks_no_extender_need_not_wait_for_one() -> None:
    line = Parked()
    assert line.has_to_wait(one(1), is_deciding=True)
    assert not line.has_to_wait(one(1), is_deciding=False)
    assert not line.has_to_wait(one(1, consults=False), is_deciding=True)
    line.open_groups.add("default/other")
    assert line.has_to_wait(group(1), is_deciding=False)
    assert not line.has_to_wait(one(2, consults=False), is_deciding=False)


def test_it_is_full_with_so_many(monkeypatch: Any) -> None:
    monkeypatch.setattr(parked, "PARKED_MAX", 2)
    line = Parked()
    line.add(one(1))
    assert not line.is_full
    line.add(one(2))
    assert line.is_full
