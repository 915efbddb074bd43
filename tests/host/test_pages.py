"""When the pages open: not before the first decisions, and not much later than the start."""

import asyncio
import socket
from contextlib import suppress
from types import SimpleNamespace

import pytest

from asched.core.config.defaults import default_configuration
from asched.host.opening import Pages
from asched.serve.options import CannotServeError, ServingOptions, ServingPlan

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
    monkeypatch.setattr("asched.host.serving.Serving", serving)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ServingOptions(bind_address="127.0.0.1", secure_port=port)
    made = Pages(ServingPlan(options), scheduler, None, None, None)
    await made.take_port()
    yield SimpleNamespace(pages=made, serving=serving, scheduler=scheduler, stopped=stopped)
    with suppress(CannotServeError):
        await made.close()


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
