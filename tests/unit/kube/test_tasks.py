"""Tasks beside each other, and threads whose end nobody waits for."""

import asyncio

from asched.kube.tasks import Tasks


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
