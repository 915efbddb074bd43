"""An event loop in virtual time: stepped by the clock's owner, never waiting by itself."""

import asyncio
from collections.abc import Iterator

import pytest

from asched_lab.sim.clock import START_S, VirtualClock
from asched_lab.sim.loop import VirtualLoop

VIRTUAL_S = 30.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def loop(clock: VirtualClock) -> Iterator[VirtualLoop]:
    made = VirtualLoop(clock)
    yield made
    made.close()


def run(loop: VirtualLoop, clock: VirtualClock) -> None:
    while (next_s := loop.next_s()) is not None:
        clock.jump(next_s)
        loop.step()


def test_timers_are_met_at_their_moment_and_take_no_time(
    loop: VirtualLoop, clock: VirtualClock
) -> None:
    met: list[tuple[str, float]] = []

    async def live(name: str, *pauses_s: float) -> None:
        for pause_s in pauses_s:
            await asyncio.sleep(pause_s)
            met.append((name, round(loop.time() - START_S, 3)))

    tasks = [loop.create_task(live("a", 1.0, 3600.0)), loop.create_task(live("b", 2.0))]
    run(loop, clock)

    assert met == [("a", 1.0), ("b", 2.0), ("a", 3601.0)]
    assert all(task.done() for task in tasks)


def test_a_deadline_ends_what_waits(loop: VirtualLoop, clock: VirtualClock) -> None:
    async def live() -> float:
        try:
            async with asyncio.timeout(VIRTUAL_S):
                await asyncio.Event().wait()
        except TimeoutError:
            return loop.time()
        raise AssertionError("nobody set the event")

    task = loop.create_task(live())
    run(loop, clock)

    assert task.result() == START_S + 30.0


def test_nothing_moves_until_it_is_stepped(loop: VirtualLoop, clock: VirtualClock) -> None:
    made: list[float] = []
    loop.call_later(1.0, lambda: made.append(loop.time()))
    clock.jump(START_S + 10.0)

    assert not made
    loop.step()
    assert made == [START_S + 10.0]
    assert loop.next_s() is None
