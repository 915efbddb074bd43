"""A real browser without a window, spoken to by its DevTools protocol; whoever wants one skips
where none is installed (apt-get install chromium-headless-shell).
"""

import asyncio
import base64
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.support import HANG_S

PROGRAMS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--ignore-certificate-errors", "--no-first-run", "--disable-background-networking"),
    *("--hide-scrollbars", "--remote-debugging-port=0"),
)


class Tab:
    """One page. `errors` are what it complained of: exceptions, and what its policy refused."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                answer = self._answers.pop(told["id"])
                if not answer.done():
                    answer.set_result(told)
            elif told["method"] == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(told["params"]["exceptionDetails"])[:500])
            elif told["method"] == "Log.entryAdded":
                self.errors.append(told["params"]["entry"]["text"])
            elif told["method"] == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])

    async def call(self, method: str, **params: Any) -> Any:
        self._numbers += 1
        number = self._numbers
        asked = {"id": number, "method": method, "params": params}
        if self.session:
            asked["sessionId"] = self.session
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_str(json.dumps(asked))
        told = await asyncio.wait_for(future, HANG_S)
        assert "error" not in told, told
        return told["result"]

    async def eval(self, expression: str) -> Any:
        told = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def open(self, url: str) -> None:
        """Wait until it is there, script and all."""
        await self.call("Page.navigate", url=url)
        there = f"location.href === {json.dumps(url)} && document.readyState === 'complete'"
        await self.until(there)

    async def until(self, expression: str) -> None:
        """Wait until the page makes it true."""
        async with asyncio.timeout(HANG_S):
            while not await self.eval(f"Boolean({expression})"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)

    async def look(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """The size of the window in points, and the scheme that its user prefers."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, file: Path, *, whole: bool = False) -> None:
        told = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(told["data"]))


@asynccontextmanager
async def a_tab() -> AsyncIterator[Tab]:
    """Skips where no browser is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed (one of {', '.join(PROGRAMS)})")
    with tempfile.TemporaryDirectory(prefix="asched-browser-", ignore_cleanup_errors=True) as home:
        process = await asyncio.create_subprocess_exec(
            *(program, *FLAGS, f"--user-data-dir={home}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        drained = None
        try:
            url = await _address(process)
            drained = asyncio.ensure_future(process.stderr.read())
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(url, max_msg_size=0) as socket,
            ):
                tab = Tab(socket)
                listening = asyncio.ensure_future(tab.listen())
                try:
                    target = (await tab.call("Target.createTarget", url="about:blank"))["targetId"]
                    told = await tab.call("Target.attachToTarget", targetId=target, flatten=True)
                    tab.session = told["sessionId"]
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await tab.call(f"{domain}.enable")
                    yield tab
                finally:
                    listening.cancel()
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with its children
            await process.wait()
            if drained is not None:
                await drained


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(HANG_S):
        async for line in process.stderr:
            said, _, url = line.decode(errors="replace").partition("DevTools listening on ")
            if not said and url:
                return url.strip()
    pytest.fail("the browser ended before it listened")
