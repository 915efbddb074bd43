"""Tasks beside each other, and threads whose end nobody waits for."""

import asyncio
import threading

import pytest

from asched.kube.tasks import Tasks, in_thread, tell_loop
from tests.patience import HANG_S


async def fail(text: str) -> None:
    raise ValueError(text)


async def nothing() -> int:
    return 7


async def test_the_first_task_that_fails_is_told_and_no_later_one() -> None:
    made = Tasks()
    fine = made.spawn("fine", nothing())
    assert await fine == 7
    assert not made.failed.done(), "an end is no failure"
    ended = made.spawn("ended", asyncio.Event().wait())
    await made.cancel("ended")
    assert ended.cancelled()
    assert not made.failed.done(), "nor is being cancelled"
    for name in ("first", "second"):
        task = made.spawn(name, fail(name))
        await asyncio.wait({task})
        await asyncio.sleep(0)
    assert str(made.failed.result()) == "first"
    assert not any(made.has(name) for name in ("fine", "ended", "first", "second"))


async def test_only_the_named_end_and_in_the_end_all() -> None:
    made, log = Tasks(), list[str]()

    async def live(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # an end takes its time, and is waited for
            log.append(name)

    for name in "abcd":
        made.spawn(name, live(name))
    await asyncio.sleep(0)
    await made.cancel("a", "c", "nobody")
    assert sorted(log) == ["a", "c"]
    assert [made.has(name) for name in "abcd"] == [False, True, False, True]
    await made.cancel_all()
    assert sorted(log) == ["a", "b", "c", "d"]
    assert not any(made.has(name) for name in "abcd")


async def test_a_thread_of_its_own_gives_what_it_makes_or_raises() -> None:
    def who() -> tuple[str, bool]:
        return threading.current_thread().name, threading.current_thread().daemon

    def leave() -> None:
        raise SystemExit(3)

    async with asyncio.timeout(HANG_S):
        assert await in_thread("mine", who) == ("mine", True)
        with pytest.raises(SystemExit) as caught:
            await asyncio.wait_for(asyncio.shield(in_thread("mine", leave)), HANG_S)
        assert caught.value.code == 3


async def test_whoever_waits_no_more_is_not_told() -> None:
    go, trouble = threading.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
    waiting = in_thread("mine", lambda: go.wait(HANG_S))
    waiting.cancel()
    go.set()
    async with asyncio.timeout(HANG_S):
        await in_thread("mine", lambda: None)
        while any(one.name == "mine" for one in threading.enumerate()):  # noqa: ASYNC110
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert trouble == []


async def test_a_loop_that_has_ended_hears_nothing_and_another_one_what_it_is_told() -> None:
    ended = asyncio.new_event_loop()
    ended.close()
    tell_loop(ended, print, "nobody")
    heard: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    threading.Thread(
        target=tell_loop, args=(asyncio.get_running_loop(), heard.set_result, 7)
    ).start()
    async with asyncio.timeout(HANG_S):
        assert await heard == 7
