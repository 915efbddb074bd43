"""Coroutines of plugins end when nobody waits for them any more."""

import asyncio

import pytest

from asched.core.framework.effects import CallPlugin, CancelCall
from asched.core.state.facts import Returned
from asched.host.plugin_calls import PluginCalls
from tests.host.observing import Observed, observing
from tests.patience import HANG_S

observed = pytest.fixture(observing)


async def test_a_call_that_is_cancelled_ends_and_answers_nothing(observed: Observed) -> None:
    ended, heard = asyncio.Event(), []
    calls = PluginCalls(observed.scheduler.tasks, heard.append)

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def at_once() -> str:
        return "done"

    async with asyncio.timeout(HANG_S):
        calls.begin(CallPlugin(id=10**9, plugin="Mine", call=forever))
        await asyncio.sleep(0)
        calls.cancel(CancelCall(call_id=10**9))
        await ended.wait()
        calls.begin(CallPlugin(id=10**9 + 1, plugin="Mine", call=at_once))
        while calls._by_effect:
            await asyncio.gather(*calls._by_effect.values(), return_exceptions=True)
        calls.cancel(CancelCall(call_id=10**9 + 1))  # too late: it has ended
    assert [fact for fact in heard if isinstance(fact, Returned)] == [Returned(10**9 + 1, "done")]
    assert not observed.scheduler.tasks.failed.done(), "a cancelled coroutine is nobody's failure"
