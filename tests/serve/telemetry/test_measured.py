"""The dispatcher's own figures: what went out, again or late, and what is under way."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asched.core.config.v1 import Extender
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    DeletePod,
    Effect,
    PatchPodStatus,
    PodRef,
)
from asched.core.state.facts import Replied
from asched.kube.session import ConnectionOptions, connect
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from tests.kube.scripted import reply, scripted, status
from tests.patience import HANG_S


class Bench:
    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.dispatcher: Any = None
        self.host = ""
        self._answers: list[Any] = []
        self._news = asyncio.Event()

    def hear(self, answer: Any) -> None:
        self._answers.append(answer)
        self._news.set()

    async def perform(self, *effects: Effect) -> None:
        """Submit, and wait for all answers."""
        wanted = len(self._answers) + len(effects)
        for effect in effects:
            self.dispatcher.submit(effect)
        async with asyncio.timeout(HANG_S):
            while len(self._answers) < wanted:
                self._news.clear()
                await self._news.wait()

    def value(self, sample: str) -> float | None:
        """A sample of the page, written as the page has it."""
        page = self.metrics.render().decode()
        found = re.search(rf"^{re.escape(sample)} (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found is not None else None


@asynccontextmanager
async def bench(
    handler: Any,
    *,
    counts_calls: bool = False,
    may_send: Callable[[], bool] = lambda: True,
    dispatching: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Bench]:
    metrics = Metrics()
    if counts_calls:
        metrics.show_async_calls()
    async with scripted(handler) as server:
        session = await connect(ConnectionOptions(master=server.url, **options), handshake=False)
        made = Bench(metrics)
        made.host = session.credentials.host
        made.dispatcher = MeasuredDispatcher(
            session, made.hear, metrics=metrics.client, may_send=may_send, **(dispatching or {})
        )
        task = asyncio.ensure_future(made.dispatcher.run())
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            await made.dispatcher.drain(0.1)
            await task
            await session.close()


async def accept(seen: Any, _wire: Any) -> bytes:
    return reply(201 if seen.method == "POST" else 200, {"status": "Success"})


def pod(name: str = "a") -> PodRef:
    return PodRef(namespace="t", name=name, uid=f"u-{name}")


def bind(number: int) -> Bind:
    return Bind(id=number, pod=pod(f"p{number}"), node="n1")


def patch(number: int) -> PatchPodStatus:
    condition = {"type": "PodScheduled", "status": "False", "message": "m"}
    return PatchPodStatus(id=number, pod=pod(f"p{number}"), condition=condition)


async def test_a_repeated_request_counts_as_a_retry_with_its_own_code() -> None:
    codes = iter([503, 500, 201])

    async def sometimes(_seen: Any, _wire: Any) -> bytes:
        code = next(codes)
        return reply(code, status(code, "ServerTimeout", "m") if code >= 400 else {})

    async with bench(sometimes) as made:
        await made.perform(DeletePod(id=1, pod=pod()))
        sample = 'rest_client_request_retries_total{{code="{}",host="{}",verb="DELETE"}}'
        assert made.value(sample.format(503, made.host)) is None
        assert made.value(sample.format(500, made.host)) == 1
        assert made.value(sample.format(201, made.host)) == 1


async def test_waiting_for_the_own_rate_is_measured_where_one_is_set() -> None:
    """Two go at once; the third has to wait a twentieth of a second."""
    async with bench(accept, qps=20.0, burst=2) as made:
        await made.perform(bind(1), bind(2), bind(3))
        labels = f'{{host="{made.host}",verb="POST"}}'
        assert made.value(f"rest_client_rate_limiter_duration_seconds_count{labels}") == 3
        waited_s = made.value(f"rest_client_rate_limiter_duration_seconds_sum{labels}")
        assert waited_s is not None
        assert waited_s == pytest.approx(0.05, abs=0.04)


async def test_without_a_rate_nothing_is_measured_about_it() -> None:
    async with bench(accept) as made:
        await made.perform(bind(1))
        assert "rest_client_rate_limiter" not in made.metrics.render().decode()


async def test_calls_are_counted_by_type_and_result_behind_the_gate() -> None:
    async def half(seen: Any, wire: Any) -> bytes:
        if seen.method == "PATCH":
            return reply(403, status(403, "Forbidden", "no"))
        return await accept(seen, wire)

    async with bench(half, counts_calls=True) as made:
        await made.perform(bind(1), patch(2), DeletePod(id=3, pod=pod()))
        sample = 'scheduler_async_api_call_execution_total{{call_type="{}",result="{}"}}'
        assert made.value(sample.format("pod_binding", "success")) == 1
        assert made.value(sample.format("pod_status_patch", "error")) == 1
        assert (
            made.metrics.render().decode().count("\nscheduler_async_api_call_execution_total{") == 2
        )
        assert made.dispatcher.pending_calls() == {("pod_binding",): 0, ("pod_status_patch",): 0}


async def test_calls_that_wait_are_known_by_type() -> None:
    async with bench(accept, qps=0.01, burst=1) as made:
        for number in range(3):
            made.dispatcher.submit(bind(number + 1))
        made.dispatcher.submit(patch(9))
        assert made.dispatcher.pending_calls() == {("pod_binding",): 2, ("pod_status_patch",): 1}


async def test_evictions_under_way_are_counted_once_there_was_one() -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(seen: Any, wire: Any) -> bytes:
        arrived.set()
        await go.wait()
        return await accept(seen, wire)

    async with bench(slow) as made:
        assert made.dispatcher.evicting is None
        done = asyncio.ensure_future(made.perform(DeletePod(id=1, pod=pod())))
        await arrived.wait()
        assert made.dispatcher.evicting == 1
        go.set()
        await done
        assert made.dispatcher.evicting == 0


class Asked:
    """Extenders that note who asks them."""

    prioritizing = None

    def __init__(self) -> None:
        self.asked: list[AskExtender] = []

    async def ask(self, effect: AskExtender) -> Replied:
        self.asked.append(effect)
        return Replied(effect.id, {})


async def test_no_extender_binds_behind_the_fence() -> None:
    """They write for us, over connections that nobody else looks at."""
    leads, extenders = True, Asked()
    options = {"may_send": lambda: leads, "dispatching": {"extenders": extenders}}
    async with bench(accept, **options) as made:  # type: ignore[arg-type]
        extender = Extender(url_prefix="http://localhost:1", bind_verb="bind")
        await made.perform(AskExtender(id=1, extender=extender, verb="bind", body={}))
        leads = False
        made.dispatcher.submit(AskExtender(id=2, extender=extender, verb="bind", body={}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert [effect.id for effect in extenders.asked] == [1]
