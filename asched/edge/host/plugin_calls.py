"""Coroutines of users' plugins under way: what becomes of one is the answer to who asked for it."""

import asyncio
from collections.abc import Callable

from asched.core.framework.effects import CallPlugin, CancelCall
from asched.core.state.facts import Answer, Raised, Returned, TimedOut
from asched.edge.host.tasks import Tasks


class PluginCalls:
    """`put` takes the answers."""

    def __init__(self, tasks: Tasks, put: Callable[[Answer], None]) -> None:
        self._tasks = tasks
        self._put = put
        self._by_effect: dict[int, asyncio.Task[None]] = {}

    def begin(self, effect: CallPlugin) -> None:
        task = self._tasks.spawn(f"plugin {effect.plugin}", self._call(effect))
        self._by_effect[effect.id] = task
        task.add_done_callback(lambda _: self._by_effect.pop(effect.id, None))

    def cancel(self, effect: CancelCall) -> None:
        """Nobody waits for its answer any more."""
        if effect.call_id in self._by_effect:
            self._by_effect[effect.call_id].cancel()

    async def _call(self, effect: CallPlugin) -> None:
        answer: Answer
        try:
            async with asyncio.timeout(effect.timeout_s) as limit:
                answer = Returned(effect.id, await effect.call())
        except TimeoutError as error:
            answer = TimedOut(effect.id) if limit.expired() else Raised(effect.id, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # it is us who are to end
            answer = Raised(effect.id, RuntimeError("its coroutine was cancelled"))
        except Exception as error:  # noqa: BLE001 - the machine tells the pod and the operator
            answer = Raised(effect.id, error)
        self._put(answer)
