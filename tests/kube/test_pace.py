"""How long reflectors pause, and who ends a pause early."""

import asyncio
import random

import pytest

from asched.kube.backoff import INITIAL_S
from asched.kube.errors import ConnectionLost, TransportError, api_error
from asched.kube.pace import ListPacer, Pauses, ReflectorOptions


class Naps:
    """Sleeps of a reflector: told, and ended by hand."""

    def __init__(self):
        self.asked_s = []
        self.over = asyncio.Event()

    async def __call__(self, seconds):
        self.asked_s.append(seconds)
        await self.over.wait()


async def a_few_rounds():
    for _ in range(5):
        await asyncio.sleep(0)


async def begun(company, error, failures=6):
    """A reflector that has failed so often in a row, and pauses now."""
    naps = Naps()
    pauses = Pauses(ReflectorOptions(rng=random.Random(1), sleep=naps), company)
    for _ in range(failures - 1):
        naps.over.set()
        await pauses.after(error)
    naps.over.clear()
    pausing = asyncio.ensure_future(pauses.after(error))
    await a_few_rounds()
    return naps, pausing


async def test_a_pause_ends_soon_after_somebody_else_was_answered():
    company = ListPacer()
    naps, pausing = await begun(company, ConnectionLost("reset"))
    long_s = naps.asked_s[-1]
    assert long_s > 2 * INITIAL_S

    company.answered()
    await a_few_rounds()

    assert naps.asked_s[-1] < INITIAL_S
    assert not pausing.done()
    naps.over.set()
    await pausing


async def test_an_answer_before_the_pause_ends_nothing():
    company = ListPacer()
    company.answered()
    naps, pausing = await begun(company, ConnectionLost("reset"), failures=1)
    assert len(naps.asked_s) == 1
    naps.over.set()
    await pausing
    assert len(naps.asked_s) == 1


@pytest.mark.parametrize("status", [429, 500])
async def test_who_was_answered_with_a_refusal_pauses_to_the_end(status):
    company = ListPacer()
    naps, pausing = await begun(company, api_error(status, b"{}", None))
    company.answered()
    await a_few_rounds()
    assert len(naps.asked_s) == 6
    naps.over.set()
    await pausing


async def test_a_cancelled_pause_leaves_nothing():
    company = ListPacer()
    _, pausing = await begun(company, TransportError("away"))
    before = len(asyncio.all_tasks())
    pausing.cancel()
    await asyncio.gather(pausing, return_exceptions=True)
    await a_few_rounds()
    assert len(asyncio.all_tasks()) == before - 2
    company.answered()
