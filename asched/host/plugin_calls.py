"""Coroutines of users' plugins: run them, and answer with their results."""

import asyncio
from collections.abc import Callable

from asched.core.cluster.facts import Answer, Raised, Returned, TimedOut
from asched.core.framework.effects import CallPlugin, CancelCall
from asched.core.framework.status import MISTAKES
from asched.kube.tasks import Tasks, begin_thread


class PluginCalls:
    """`put` gets the answers."""

    def __init__(self, tasks: Tasks, put: Callable[[Answer], None]) -> None:
        self._tasks = tasks
        self._put = put
        self._by_effect: dict[int, asyncio.Task[None]] = {}

    def begin(self, effect: CallPlugin) -> None:
        task = self._tasks.spawn(f"plugin {effect.plugin}", self._call(effect))
        self._by_effect[effect.id] = task
        task.add_done_callback(lambda _: self._by_effect.pop(effect.id, None))

    def cancel(self, effect: CancelCall) -> None:
        """Cancel a call whose answer is no longer needed."""
        if effect.call_id in self._by_effect:
            self._by_effect[effect.call_id].cancel()

    async def _call(self, effect: CallPlugin) -> None:
        self._put(await answer_of(effect, effect.timeout_s))


async def answer_of(effect: CallPlugin, timeout_s: float) -> Answer:
    """The result of a plugin's coroutine, within this time."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return Returned(effect.id, await effect.call())
    except TimeoutError as error:
        return TimedOut(effect.id) if limit.expired() else Raised(effect.id, error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # this task itself was cancelled
        return Raised(effect.id, RuntimeError("its coroutine was cancelled"))
    except MISTAKES as error:  # the machine reports it in condition and log
        return Raised(effect.id, error)


def answer_now(effect: CallPlugin, timeout_s: float) -> Answer:
    """As `answer_of`, blocking: in its own thread, since the caller may be in a running loop."""
    return begin_thread("plugin", lambda: asyncio.run(answer_of(effect, timeout_s))).result()
