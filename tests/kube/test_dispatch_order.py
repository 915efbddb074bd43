"""What waits for what on its way to the server, and how long: in virtual time, answered by hand."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from asched.core.framework.effects import (
    Bind,
    DeletePod,
    Effect,
    EmitEvent,
    Lane,
    PatchPodStatus,
    PodRef,
)
from asched.core.model.meta import ObjectReference
from asched.core.state.facts import Answer, Replied
from asched.kube.dispatch import Dispatcher
from asched.kube.events import EventRecorder
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
