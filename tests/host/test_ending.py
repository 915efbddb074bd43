"""A signal asks a process for its end, whichever of its lives it is in."""

import asyncio
import os
import signal

import pytest

from asched.host.ending import AskedToEndError, Ending
from tests.patience import HANG_S


@pytest.fixture(autouse=True)
async def _handlers_are_put_back():
    yield
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().remove_signal_handler(number)


async def signalled(ending):
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(HANG_S):
        while not ending.is_asked:  # noqa: ASYNC110 - the loop reads it from a pipe
            await asyncio.sleep(0)


async def test_a_signal_stops_what_runs():
    ending, stopped = Ending(), asyncio.Event()
    ending.listen(stopped.set)

    await signalled(ending)

    async with asyncio.timeout(HANG_S):
        await stopped.wait()
    assert ending.is_asked


async def test_a_signal_between_two_lives_stops_the_next_one():
    ending, stopped = Ending(), []
    ending.listen(lambda: stopped.append("first"))

    await signalled(ending)
    ending.listen(lambda: stopped.append("second"))

    assert stopped == ["first", "second"]


async def test_what_takes_long_before_a_life_is_given_up():
    ending, given_up = Ending(), asyncio.Event()
    ending.listen(lambda: None)

    async def connecting():
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    trying = asyncio.ensure_future(ending.unless_asked(connecting()))
    await signalled(ending)

    async with asyncio.timeout(HANG_S):
        with pytest.raises(AskedToEndError):
            await trying
    assert given_up.is_set()


async def test_what_comes_to_its_end_is_as_if_nobody_had_listened():
    async def result():
        return 7

    async def error():
        raise ValueError

    assert await Ending().unless_asked(result()) == 7
    with pytest.raises(ValueError):
        await Ending().unless_asked(error())
