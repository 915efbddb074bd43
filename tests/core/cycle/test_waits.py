"""Questions are asked when something of what they look at has moved, and at no other time."""

from collections.abc import Callable

from msgspec.structs import force_setattr

from asched.core.cycle.waits import Waits
from asched.core.framework.effects import CallPlugin, Topic, WaitFor
from asched.core.model.kinds import NODE, POD, RESOURCE_CLAIM
from asched.core.state.change_log import ObjectLog
from asched.core.state.cluster import ObservedChange
from asched.core.state.facts import Answer, Done, TimedOut
from tests.builders import a_node, a_pod


class Asking:
    """Waits with a log of objects, and questions that answer what `is_so` holds."""

    def __init__(self) -> None:
        self.waits = Waits()
        self.log = ObjectLog()
        self.decided: list[Topic] = []
        self.is_so: set[int] = set()

    def wait(self, number: int, *on: Topic, timeout_s: float = 60.0, now_s: float = 0.0) -> None:
        ready: Callable[[], bool] = lambda: number in self.is_so  # noqa: E731
        effect = WaitFor(ready=ready, timeout_s=timeout_s, on=on)
        force_setattr(effect, "id", number)
        self.waits.add(effect, now_s)

    def look(self, now_s: float = 0.0) -> list[Answer]:
        self.waits.catch_up(self.log, self.decided)
        return [answer for _, answer in self.waits.look(now_s)]

    def see(self, *pods: str) -> None:
        for name in pods:
            self.waits.saw(ObservedChange(POD, None, a_pod(name).build()))


def pod(name: str) -> Topic:
    return "Pod", f"default/{name}"


def test_a_turn_asks_those_whom_it_concerns_and_nobody_else() -> None:
    asking = Asking()
    for number in range(1000):
        asking.wait(number, pod(f"p{number}"))
    assert asking.look() == []
    asked = asking.waits.asked
    for _ in range(50):
        asking.look()
    assert asking.waits.asked == asked, "nothing has moved"

    asking.see("p7", "p8", "a-stranger")
    asking.is_so = {7}
    assert asking.look() == [Done(7)]
    assert asking.waits.asked == asked + 2


def test_a_topic_named_twice_is_followed_once() -> None:
    asking = Asking()
    asking.wait(1, pod("web"), pod("web"))
    assert asking.look(61.0) == [TimedOut(1)]
    asking.see("web")
    assert asking.look() == []


def test_nodes_objects_and_decisions_move_questions_too() -> None:
    asking = Asking()
    asking.wait(1, ("Node", "n1"))
    asking.wait(2, (RESOURCE_CLAIM.resource, "default/c"))
    asking.wait(3, pod("web"))
    asking.look()
    asking.is_so = {1, 2, 3}
    assert asking.look() == []
    asking.waits.saw(ObservedChange(NODE, a_node("n1").build(), None))
    assert asking.look() == [Done(1)]
    asking.log.add(RESOURCE_CLAIM.resource, "default/c")
    assert asking.look() == [Done(2)]
    asking.decided.append(pod("web"))
    assert asking.look() == [Done(3)]
    assert not asking.waits


def test_a_question_that_names_nothing_is_asked_every_time() -> None:
    asking = Asking()
    asking.wait(1)
    asking.look()
    asking.is_so = {1}
    assert asking.look() == [Done(1)]


def test_a_log_that_has_forgotten_has_everybody_asked() -> None:
    asking = Asking()
    asking.wait(1, (RESOURCE_CLAIM.resource, "default/c"))
    asking.look()
    asking.is_so = {1}
    for _ in range(70_000):
        asking.log.add("PersistentVolume", "other")
    asking.log.add(RESOURCE_CLAIM.resource, "default/c")
    assert asking.look() == [Done(1)]


def test_patience_ends_in_order_and_not_for_those_who_were_answered() -> None:
    asking = Asking()
    asking.wait(1, pod("a"), timeout_s=5.0)
    asking.wait(2, pod("b"), timeout_s=3.0)
    asking.wait(3, pod("c"), timeout_s=1.0)
    asking.waits.drop(3)
    assert asking.waits.next_deadline_s == 3.0
    assert asking.look(4.0) == [TimedOut(2)]
    assert asking.look(4.9) == []
    assert asking.look(5.0) == [TimedOut(1)]
    assert asking.waits.next_deadline_s is None


def test_a_coroutine_has_no_deadline_here_but_may_become_pointless() -> None:
    asking = Asking()

    async def think() -> None: ...

    call = CallPlugin(plugin="Mine", call=think, ready=lambda: 9 in asking.is_so, on=(pod("a"),))
    force_setattr(call, "id", 9)
    asking.waits.add(call, 0.0)
    assert asking.look(1e6) == []
    asking.is_so = {9}
    asking.decided.append(pod("a"))
    assert asking.look() == [Done(9)]
