"""What waits for what on its way to the server, and how long: in virtual time, answered by hand."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from asched.core.framework.effects import (
    AskExtender,
    Bind,
    DeletePod,
    Effect,
    EmitEvent,
    Lane,
    PatchPodStatus,
    PodRef,
)
from asched.core.model.meta import ObjectReference
from asched.core.state.facts import Answer, Bound, Refused, Replied, Unknown
from asched.kube.dispatch import Dispatcher
from asched.kube.events import FINISH_S, REFRESH_S, EventRecorder
from asched.kube.retries import STATUS_ATTEMPTS
from asched.kube.session import ConnectionOptions
from asched.kube.transport import Reply
from asched_lab.sim.clock import START_S
from asched_lab.sim.loop import VirtualLoop
from tests.virtual import OnVirtualLoop


class Wire:
    """The session, its transport and extenders: all that was sent, and what is not answered."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.options = ConnectionOptions()
        self.sent: list[tuple[str, str, float]] = []
        self.open: dict[int, asyncio.Future[Reply]] = {}
        self.may_send: Callable[[], bool] | None = None

    def pool(self, _most: int, *, may_send: Callable[[], bool]) -> "Wire":
        self.may_send = may_send
        return self

    async def request(self, method: str, path: str, _: Any, **_more: Any) -> Reply:
        number = len(self.sent)
        self.sent.append((method, path, self.loop.time() - START_S))
        self.open[number] = self.loop.create_future()
        return await self.open[number]

    async def ask(self, effect: Effect) -> Answer:
        self.sent.append(("ASK", "", self.loop.time() - START_S))
        return Replied(effect.id, {})


class Bench(OnVirtualLoop):
    def __init__(self) -> None:
        super().__init__()
        self.wire: Any = Wire(self.loop)
        self.heard: list[Answer] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.loop.create_task(self._begin())
        self.until(0.0)

    async def _begin(self) -> None:
        recorder = EventRecorder("host", lambda: round(self.clock.now_s() * 1e9))
        self.dispatcher = Dispatcher(
            self.wire, self.heard.append, recorder=recorder, extenders=self.wire
        )
        self.tasks.append(asyncio.ensure_future(self.dispatcher.run()))

    def submit(self, *effects: Effect) -> None:
        for effect in effects:
            self.dispatcher.submit(effect)
        self.until(self.s)

    def answer(self, number: int, status: int, body: Any = None, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
        head = "\r\n".join(lines).encode()
        self.wire.open.pop(number).set_result(Reply(status, orjson.dumps(body or {}), head))
        self.until(self.s)

    def drain(self, timeout_s: float) -> asyncio.Task[None]:
        task = self.loop.create_task(self.dispatcher.drain(timeout_s))
        self.until(self.s)
        return task

    def answered(self) -> dict[int, str]:
        assert len({answer.effect_id for answer in self.heard}) == len(self.heard), "each once"
        return {answer.effect_id: type(answer).__name__ for answer in self.heard}

    def verbs(self) -> list[str]:
        return [method for method, _, _ in self.wire.sent]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def ref(name: str) -> PodRef:
    return PodRef(namespace="t", name=name, uid=f"u-{name}")


def bind(id_: int, name: str = "a") -> Bind:
    return Bind(id=id_, pod=ref(name), node="n1")


def patch(id_: int, name: str = "a") -> PatchPodStatus:
    return PatchPodStatus(id=id_, pod=ref(name), condition={"type": "PodScheduled"})


def event(id_: int = 0, name: str = "a") -> EmitEvent:
    regarding = ObjectReference(
        api_version="v1", kind="Pod", namespace="t", name=name, uid=f"u-{name}"
    )
    return EmitEvent(
        id=id_,
        regarding=regarding,
        type="Warning",
        reason="Failed",
        action="Scheduling",
        note="no",
        reporting_controller="me",
    )


def ask(id_: int) -> AskExtender:
    extender: Any = None
    return AskExtender(id=id_, extender=extender, verb="filter", body={})


def test_a_binding_waits_for_the_patch_of_its_pod_and_both_are_answered(bench: Bench) -> None:
    bench.submit(patch(1))
    bench.submit(bind(2), bind(3, "other"))
    assert bench.verbs() == ["PATCH", "POST"], "the other's need not wait"
    assert bench.dispatcher.queued_count(Lane.BINDING) == 1
    bench.answer(1, 201)
    bench.answer(0, 200)
    assert bench.dispatcher.queued_count(Lane.BINDING) == 0
    bench.answer(2, 201)
    assert bench.answered() == {1: "Done", 2: "Bound", 3: "Bound"}
    assert bench.dispatcher._tasks == set(), "nothing is kept of what is done"


def test_a_binding_that_waits_for_a_patch_holds_no_other_one_up(bench: Bench) -> None:
    bench.submit(patch(1), bind(2, "first"))
    bench.answer(1, 429, Retry_After="1")
    bench.submit(bind(3, "a"), bind(4, "b"))
    assert len(bench.wire.sent) == 2
    bench.until(1.0)
    paths = {path.partition("?")[0].split("/")[-2] for _, path, _ in bench.wire.sent[2:]}
    assert paths == {"first", "b"}


def test_a_second_binding_of_a_pod_does_not_take_the_place_of_one_that_waits(bench: Bench) -> None:
    bench.submit(patch(1), bind(2), bind(3))
    assert bench.verbs() == ["PATCH", "POST"]
    bench.answer(0, 200)
    for number in (1, 2):
        bench.answer(number, 201)
    assert bench.answered() == {1: "Done", 2: "Bound", 3: "Bound"}


def test_a_binding_waits_while_the_patch_of_its_pod_is_to_be_sent_again(bench: Bench) -> None:
    bench.submit(patch(1), bind(2))
    bench.answer(0, 500)
    assert bench.verbs() == ["PATCH"]
    bench.until(1.0)
    assert sorted(bench.verbs()) == ["PATCH", "PATCH", "POST"]


def test_a_patch_that_fails_each_time_is_given_up_ever_more_slowly(bench: Bench) -> None:
    bench.submit(patch(1))
    for number in range(STATUS_ATTEMPTS):
        bench.answer(number, 500)
        bench.until(bench.s + 5.0)
    assert bench.answered() == {1: "Unknown"}
    assert len(bench.wire.sent) == STATUS_ATTEMPTS
    assert bench.dispatcher.queued_count(Lane.STATUS) == 0


def test_overload_holds_a_lane_and_those_below_as_long_as_told_and_no_question_of_ours(
    bench: Bench,
) -> None:
    bench.submit(bind(1), bind(2, "b"))
    bench.answer(0, 429, Retry_After="10")
    bench.answer(1, 429, Retry_After="1")
    bench.submit(patch(3, "c"), DeletePod(id=4, pod=ref("d")), ask(5), event())
    assert bench.verbs() == ["POST", "POST", "ASK"]
    bench.until(9.9)
    assert len(bench.wire.sent) == 3, "the shorter pause does not end the longer one"
    bench.until(10.0)
    assert bench.verbs()[3:5] == ["POST", "POST"]
    assert sorted(bench.verbs()[5:]) == ["DELETE", "PATCH", "POST"]
    assert bench.answered() == {5: "Replied"}


def test_overload_of_a_lower_lane_does_not_hold_the_higher_ones(bench: Bench) -> None:
    bench.submit(patch(1))
    bench.answer(0, 429, Retry_After="5")
    bench.submit(bind(2), event())
    assert bench.verbs() == ["PATCH", "POST"]
    assert "/binding" in bench.wire.sent[1][1], "its own patch is not under way"
    bench.until(5.0)
    assert len(bench.wire.sent) >= 3


def test_the_lane_whose_pause_ends_first_goes_on_first(bench: Bench) -> None:
    bench.submit(event())
    bench.answer(0, 429, Retry_After="10")
    bench.submit(patch(1))
    bench.answer(1, 429, Retry_After="2")
    bench.until(2.0)
    assert bench.verbs() == ["POST", "PATCH", "PATCH"]
    bench.until(9.9)
    assert len(bench.wire.sent) == 3
    bench.until(10.0)
    assert bench.verbs()[3:] == ["POST"]


def test_draining_ends_as_soon_as_all_is_done(bench: Bench) -> None:
    bench.submit(bind(1), patch(2, "b"))
    task = bench.drain(30.0)
    bench.submit(bind(3, "late"))
    assert bench.answered() == {3: "Refused"}
    bench.answer(0, 201)
    assert not task.done()
    bench.answer(1, 200)
    assert task.done()
    assert bench.s == 0.0
    assert bench.tasks[0].done()
    assert bench.answered() == {1: "Bound", 2: "Done", 3: "Refused"}


@pytest.mark.parametrize("code", [500, 429])
def test_draining_waits_for_what_will_be_tried_again(bench: Bench, code: int) -> None:
    bench.submit(patch(1))
    bench.answer(0, code)
    task = bench.drain(30.0)
    assert bench.wire.open == {}
    assert not task.done()
    bench.until(5.0)
    bench.answer(1, 200)
    assert task.done()
    assert bench.answered() == {1: "Done"}


def test_draining_without_time_answers_all_that_waits_and_sends_nothing_more(bench: Bench) -> None:
    bench.submit(patch(1), bind(2))
    bench.submit(patch(3, "b"))
    bench.answer(1, 500)
    bench.submit(bind(4, "c"))
    sent = len(bench.wire.sent)
    bench.drain(0.0)
    bench.until(60.0)
    assert bench.answered() == {1: "Unknown", 2: "Refused", 3: "Unknown", 4: "Unknown"}
    assert len(bench.wire.sent) == sent
    assert bench.tasks[0].done()


def test_draining_again_answers_nothing_again(bench: Bench) -> None:
    bench.submit(patch(1), bind(2), bind(3, "b"), DeletePod(id=4, pod=ref("c")))
    numbers = {path.split("/")[-1]: at for at, (_, path, _) in enumerate(bench.wire.sent)}
    bench.answer(numbers["c"], 500)
    for _ in range(2):
        bench.drain(0.0)
        bench.until(bench.s + 60.0)
    assert sorted(bench.answered()) == [1, 2, 3, 4]


def test_what_is_only_counted_costs_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        bench.submit(event())
        assert bench.dispatcher.queued_count(Lane.EVENT) == 0
        for number in list(bench.wire.open):
            bench.answer(number, 201)
    assert bench.verbs() == ["POST", "PATCH"]
    assert caplog.records == []


def test_a_series_that_neither_exists_nor_can_be_made_is_given_up(bench: Bench) -> None:
    bench.submit(event())
    bench.answer(0, 201)
    bench.submit(event())
    bench.answer(1, 404)
    exists = {"kind": "Status", "status": "Failure", "reason": "AlreadyExists", "code": 409}
    bench.answer(2, 409, exists)
    bench.answer(3, 404)
    assert bench.verbs() == ["POST", "PATCH", "POST", "PATCH"]
    bench.until(60.0)
    assert len(bench.wire.sent) == 4


def test_a_series_that_lives_is_written_again_now_and_then_and_a_last_time_when_it_is_quiet(
    bench: Bench,
) -> None:
    for number in range(2):
        bench.submit(event())
        bench.answer(number, 201)
    for at_s in range(300, 3601, 300):
        bench.until(float(at_s))
        bench.submit(event())
        for number in list(bench.wire.open):
            bench.answer(number, 200)
    bench.until(3600 + 2 * FINISH_S)
    for number in list(bench.wire.open):
        bench.answer(number, 200)
    bench.until(4 * 3600.0)
    written = [at_s for method, _, at_s in bench.wire.sent[2:] if method == "PATCH"]
    assert written == [REFRESH_S, 2 * REFRESH_S, 3600 + 2 * FINISH_S]
    assert len(bench.wire.sent) == 5


def test_what_nobody_asked_to_hear_of_is_not_answered(bench: Bench) -> None:
    bench.submit(bind(0), patch(0, "b"))
    bench.answer(0, 201)
    bench.answer(1, 200)
    assert bench.heard == []


def test_a_refusal_is_heard_under_its_own_number(bench: Bench) -> None:
    bench.submit(bind(7))
    bench.answer(0, 404, {"kind": "Status", "message": "gone", "reason": "NotFound", "code": 404})
    (said,) = bench.heard
    assert isinstance(said, Refused)
    assert (said.effect_id, said.code) == (7, 404)


def test_who_is_cancelled_answers_what_was_under_way_and_begins_nothing(bench: Bench) -> None:
    bench.submit(patch(1), bind(2))
    bench.tasks[0].cancel()
    bench.until(1.0)
    assert bench.verbs() == ["PATCH"]
    assert [answer for answer in bench.heard if isinstance(answer, Bound)] == []
    assert {type(answer) for answer in bench.heard if answer.effect_id == 1} == {Unknown}
