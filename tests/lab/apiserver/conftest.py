"""A running embedded server, and a client for it."""

from collections.abc import AsyncIterator

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import Client


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """A server without kubelet whose waits are short."""
    running = ApiServer(pace=0.05, seed=1)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(server.url) as opened:
        yield opened
