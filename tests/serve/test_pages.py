"""When the pages open: not before the first decisions, and not much later than the start."""

import asyncio
import socket
from contextlib import suppress
from types import SimpleNamespace

import pytest

from asched.core.config.defaults import default_configuration
from asched.serve import opening as pages
from asched.serve.opening import Pages
from asched.serve.options import CannotServeError, ServingOptions, ServingPlan
from tests.patience import HANG_S

CONFIGURATION = default_configuration("asched")


class Serving:
    """What would serve; tells when it opened."""

    def __init__(self):
        self.opened = asyncio.Event()
        self.closed = False
        self.failure = None

    async def open(self, *_, **__):
        if self.failure is not None:
            raise self.failure
        self.opened.set()
        return self

    async def close(self):
        self.closed = True


@pytest.fixture
async def world(monkeypatch):
    serving, stopped = Serving(), []
    scheduler = SimpleNamespace(begun=asyncio.Event(), stop=lambda: stopped.append(True))
    monkeypatch.setattr("asched.serve.serving.Serving", serving)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ServingOptions(bind_address="127.0.0.1", secure_port=port)
    made = Pages(ServingPlan(options), scheduler, None, None, None)
    await made.take_port()
    yield SimpleNamespace(pages=made, serving=serving, scheduler=scheduler, stopped=stopped)
    with suppress(CannotServeError):
        await made.close()


async def test_they_open_when_the_first_decisions_are_out(world, monkeypatch):
    monkeypatch.setattr(pages, "OPEN_S", 2 * HANG_S)
    opening = asyncio.ensure_future(world.pages.open(CONFIGURATION))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not world.serving.opened.is_set()

    world.scheduler.begun.set()
    await opening

    assert world.serving.opened.is_set()
    await world.pages.close()
    assert world.serving.closed


async def test_a_standby_opens_them_too(world, monkeypatch):
    monkeypatch.setattr(pages, "OPEN_S", 0.01)
    await world.pages.open(CONFIGURATION)
    assert world.serving.opened.is_set()
    assert world.stopped == []


async def test_what_keeps_them_from_opening_stops_the_scheduler_and_is_told_at_the_end(world):
    world.scheduler.begun.set()
    world.serving.failure = CannotServeError("no such certificate")
    await world.pages.open(CONFIGURATION)
    assert world.stopped == [True]
    with pytest.raises(CannotServeError, match="no such certificate"):
        await world.pages.close()


async def test_port_0_serves_nothing():
    made = Pages(ServingPlan(), None, None, None, None)
    await made.take_port()
    await made.open(CONFIGURATION)
    await made.close()
