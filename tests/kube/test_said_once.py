"""What is so for every kind is one line in the log, not one for each."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from asched.core.model.kinds import KINDS
from asched.kube.errors import ClientError, ConnectFailed, Forbidden, Unauthorized
from asched.kube.pace import ReflectorOptions
from asched.kube.watch import Reflector
from asched.serve.telemetry.flood import Flood
from tests.patience import HANG_S


class Nowhere:
    """A transport on which everything fails, or streaming lists only."""

    def __init__(self, error: ClientError) -> None:
        self._error = error

    @asynccontextmanager
    async def stream(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise self._error
        yield

    async def request(self, *_: object, **__: object) -> Any:
        raise self._error


class NoStreams(Nowhere):
    """Refuses streaming lists; pages cannot be reached."""

    status = 400

    @asynccontextmanager
    async def stream(self, path: str, **_: object) -> AsyncIterator[Any]:
        if "sendInitialEvents" not in path:
            raise self._error
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("nobody reads on after a refusal")
        yield

    def header(self, _: str) -> None:
        return None

    async def read_all(self) -> bytes:
        return b"sendInitialEvents is forbidden"


async def said(transport: object, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that get through to the log while every kind is tried twice."""
    caplog.set_level(logging.INFO, "asched")
    tried = dict.fromkeys(KINDS, 0)
    enough = asyncio.Event()

    def failed(kind: Any, _: object) -> None:
        tried[kind] += 1
        if min(tried.values()) >= 2:
            enough.set()

    options = ReflectorOptions(sleep=lambda _: asyncio.sleep(0))
    tasks = [
        asyncio.create_task(
            Reflector(
                kind, cast("Any", transport), lambda _: None, options=options, on_failure=failed
            ).run()
        )
        for kind in KINDS
    ]
    async with asyncio.timeout(HANG_S):
        await enough.wait()
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    flood = Flood()
    return [record.getMessage() for record in caplog.records if flood.filter(record)]


@pytest.mark.parametrize(
    "error", [ConnectFailed("cannot reach https://x: refused"), Unauthorized(401, "who is that?")]
)
async def test_a_server_that_is_away_is_one_line(
    error: ClientError, caplog: pytest.LogCaptureFixture
) -> None:
    assert await said(Nowhere(error), caplog) == [f"cannot follow the cluster: {error}"]


async def test_a_server_without_streaming_lists_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = await said(NoStreams(ConnectFailed("cannot reach x")), caplog)
    assert lines == [
        "no streaming lists (sendInitialEvents is forbidden), listing in pages",
        "cannot follow the cluster: cannot reach x",
    ]


async def test_what_concerns_one_kind_is_told_of_each(caplog: pytest.LogCaptureFixture) -> None:
    lines = await said(Nowhere(Forbidden(403, "no")), caplog)
    assert len(lines) == len(set(lines)) == len(KINDS)
