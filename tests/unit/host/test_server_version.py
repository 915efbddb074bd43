"""An API server that is another version than at the start."""

import asyncio
import logging
from typing import Any

import pytest

from asched.core.config.versions import VersionChoice
from asched.host.server_version import ServerVersionWatch
from asched.kube.errors import TransportError
from asched.kube.transport import Reply


class Server:
    """Answers with one version after another; "" for a request that fails."""

    def __init__(self, *versions: str) -> None:
        self.versions = list(versions)

    async def request(self, _method: str, _path: str, **_options: Any) -> Reply:
        version = self.versions.pop(0)
        if not version:
            raise TransportError("connection refused")
        return Reply(200, f'{{"gitVersion": "{version}"}}'.encode())


async def watched(version: VersionChoice, *answers: str) -> tuple[ServerVersionWatch, bool]:
    """The watch after it was asked as often as there are answers, and whether it ended the
    process.
    """
    stopped: list[bool] = []
    server = Server(*answers)
    watch = ServerVersionWatch(server, version, lambda: stopped.append(True))  # type: ignore[arg-type]
    task = asyncio.create_task(watch.run())
    while server.versions:
        watch.ask()
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    return watch, bool(stopped)


async def test_an_upgrade_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    start = VersionChoice("1.36", server="v1.36.3")
    with caplog.at_level(logging.WARNING):
        watch, stopped = await watched(start, "v1.36.4", "", "v1.37.0", "v1.37.0")
    assert [r.getMessage() for r in caplog.records] == [
        "The API server is v1.37.0 now; it was v1.36.4; restart asched"
    ]
    assert watch.server == "v1.37.0"
    assert not stopped


async def test_an_emulated_version_stays(caplog: pytest.LogCaptureFixture) -> None:
    start = VersionChoice("1.36", is_emulated=True)
    watch, stopped = await watched(start, "v1.37.0")
    assert (watch.server, stopped, caplog.records) == ("v1.37.0", False, [])


async def test_a_start_without_a_server_ends_where_its_rules_are_others() -> None:
    _, stopped = await watched(VersionChoice("1.36"), "v1.37.0")
    assert stopped
    _, stopped = await watched(VersionChoice("1.36"), "v1.36.3")
    assert not stopped
