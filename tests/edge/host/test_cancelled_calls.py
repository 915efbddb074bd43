"""Coroutines of plugins end when nobody waits for them any more."""

import asyncio

import pytest

from asched.core.framework.effects import CallPlugin, CancelCall
from asched.core.state.facts import Returned
from tests.edge.host.observing import Observed, observing
from tests.patience import HANG_S

observed = pytest.fixture(observing)


async def test_a_call_that_is_cancelled_ends_and_answers_nothing(observed: Observed) -> None:
    scheduler, ended = observed.scheduler, asyncio.Event()
    heard = []
    scheduler.inbox.put = heard.append  # type: ignore[method-assign]

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def at_once() -> str:
        return "done"

    async with asyncio.timeout(HANG_S):
        scheduler._perform(CallPlugin(id=10**9, plugin="Mine", call=forever))
        await asyncio.sleep(0)
        scheduler._perform(CancelCall(call_id=10**9))
        await ended.wait()
        scheduler._perform(CallPlugin(id=10**9 + 1, plugin="Mine", call=at_once))
        while scheduler._calls:
            await asyncio.gather(*scheduler._calls.values(), return_exceptions=True)
        scheduler._perform(CancelCall(call_id=10**9 + 1))  # too late: it has ended
    assert [fact for fact in heard if isinstance(fact, Returned)] == [Returned(10**9 + 1, "done")]
    assert not scheduler.tasks.failed.done(), "a cancelled coroutine is nobody's failure"
