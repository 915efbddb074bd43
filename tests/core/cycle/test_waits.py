"""Questions are asked when something of what they look at has moved, and at no other time."""

from collections.abc import Callable

from msgspec.structs import force_setattr

from asched.core.cycle.waits import SWEEP_FROM, Waits
from asched.core.framework.effects import CallPlugin, Topic, WaitFor
from asched.core.model.kinds import NODE, POD, RESOURCE_CLAIM
from asched.core.state.change_log import ObjectLog
from asched.core.state.cluster import Sight
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
            self.waits.saw(Sight(POD, None, a_pod(name).build()))


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


def test_a_question_that_is_settled_already_is_answered_at_the_first_look() -> None:
    asking = Asking()
    asking.is_so = {1}
    asking.wait(1, pod("web"))
    assert asking.waits.has_due
    assert asking.look() == [Done(1)]
    assert not asking.waits.has_due


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
    asking.waits.saw(Sight(NODE, a_node("n1").build(), None))
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


def test_deadlines_of_the_past_are_swept_out() -> None:
    asking = Asking()
    for number in range(10_000):
        asking.wait(number, pod("web"), timeout_s=900.0)
        asking.waits.drop(number)
    assert len(asking.waits._deadlines) <= SWEEP_FROM + 2


def test_deadlines_are_swept_only_once_most_of_them_are_nobodys() -> None:
    asking = Asking()
    for number in range(200):
        asking.wait(number, pod("web"), timeout_s=900.0)
    kept = asking.waits._deadlines
    for number in range(1_000, 2_000):
        asking.wait(number, pod("web"), timeout_s=900.0)
        asking.waits.drop(number)
        assert len(asking.waits._deadlines) <= SWEEP_FROM + 2 * 202
        if number < 1_150:
            assert asking.waits._deadlines is kept, "sweeping each time would cost all, each time"
    assert len(asking.waits) == 200
    assert asking.waits.next_deadline_s == 900.0


def test_what_has_moved_is_asked_about_once() -> None:
    asking = Asking()
    asking.wait(1, pod("web"), (RESOURCE_CLAIM.resource, "default/c"))
    asking.look()
    asking.log.add(RESOURCE_CLAIM.resource, "default/c")
    asking.decided.append(pod("web"))
    asking.look()
    asked = asking.waits.asked
    assert asking.decided == [], "or it would grow with every decision"
    asking.look()
    assert asking.waits.asked == asked


def test_a_question_that_ends_with_anothers_answer_is_answered_no_more() -> None:
    asking = Asking()
    asking.wait(1, pod("a"), timeout_s=5.0)
    asking.wait(2, pod("b"), timeout_s=5.0)
    asking.wait(3, pod("c"), timeout_s=6.0)
    asking.wait(4, pod("d"), timeout_s=6.0)
    asking.is_so = {1, 2}
    answers = []
    for _, answer in asking.waits.look(9.0):
        answers.append(answer)
        asking.waits.drop(2)
        asking.waits.drop(4)
    assert answers == [Done(1), TimedOut(3)]


def test_a_sweep_leaves_every_deadline_in_its_turn() -> None:
    asking = Asking()
    timeouts = {number: float((number * 37) % 101 + 1) for number in range(300)}
    for number, timeout_s in timeouts.items():
        asking.wait(number, pod("web"), timeout_s=timeout_s)
    staying = {number: at_s for number, at_s in timeouts.items() if number % 7 == 0}
    for number in timeouts.keys() - staying.keys():
        asking.waits.drop(number)
    asking.wait(1_000, pod("web"), timeout_s=900.0)
    assert len(asking.waits._deadlines) == len(staying) + 1, "it was swept"
    for now_s in range(102):
        due = {number for number, at_s in staying.items() if at_s == now_s}
        assert {answer.effect_id for answer in asking.look(float(now_s))} == due


def test_one_who_is_answered_leaves_the_others_and_nothing_of_itself() -> None:
    asking = Asking()
    asking.wait(1, pod("web"))
    asking.wait(2, pod("web"))
    asking.wait(3)
    asking.look()
    asking.see("web")
    assert asking.waits.drop(1) is not None
    assert asking.waits.drop(1) is None
    asking.waits.drop(3)
    asking.is_so = {2}
    assert asking.look() == [Done(2)]
    waits = asking.waits
    assert (len(waits), waits._by_topic, waits._restless, waits._due) == (0, {}, {}, {})
    asking.wait(4, pod("web"))
    asking.waits.drop(4)
    assert not asking.waits.has_due


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
