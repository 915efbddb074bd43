"""The live view on this machine: adds the user's token to requests of a browser, which has none.

    browser ─> http://127.0.0.1:PORT/SECRET/ui/ ─> forwarder ─> source ─> the scheduler's pages

The address contains a secret, is reachable from this machine only, and answers only to a host name
of this machine, which stops pages of other sites (DNS rebinding). A client that knows the address
sees what its owner may see. Only the pages of the live view are forwarded.

Bounds  pages of the live view, GET only; a request is retried for PATIENCE_S while a scheduler
        starts.
"""

import asyncio
import re
import secrets
from hmac import compare_digest
from time import monotonic
from typing import Final
from urllib.parse import unquote

from aiohttp import web

from asched.cli.pages import PageError
from asched.cli.sources import ClusterSource, read_page
from asched.kube.transport import Reply

HOST: Final = "127.0.0.1"
NAMES: Final = (HOST, "localhost")
PAGE: Final = "ui/"
#: Paths below SECRET/ that are forwarded; names of objects may follow.
PASSED_ON: Final = tuple(
    f"debug/asched/{page}" for page in ("view", "pods/", "nodes/", "groups/", "shadow")
)
KEPT_HEADERS: Final = (
    "Content-Type",
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
)
PATIENCE_S: Final = 15.0
AGAIN_S: Final = 0.2


class Forwarder:
    """`start`, then `close`; the caller closes the source."""

    def __init__(self, source: ClusterSource) -> None:
        self._source = source
        self._secret = secrets.token_urlsafe(18)
        self._runner: web.ServerRunner | None = None
        self._port = 0

    async def check(self) -> None:
        """Check that the source serves the live view to this user. Raises PageError."""
        read_page(await self._source.page("/debug/asched/view"), "live view", dict)

    async def start(self, port: int) -> str:
        """Listen and return the page's address. Raises PageError if the port cannot be opened."""
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None))
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, HOST, port)
            await site.start()
        except OSError as error:
            raise PageError(
                f"cannot listen on {HOST}:{port}: {error.strerror}; choose another --port"
            ) from error
        self._port = self._runner.addresses[0][1]
        return f"http://{HOST}:{self._port}/{self._secret}/{PAGE}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.host.rpartition(":")[0]
        if name not in NAMES or request.host != f"{name}:{self._port}":
            return _refusal(421, "wrong host name; use the address that the command printed")
        secret, _, path = request.raw_path[1:].partition("/")
        if not compare_digest(secret.encode(), self._secret.encode()):
            return _refusal(404, "not found; use the whole address that the command printed")
        bare = path.partition("?")[0]
        if (bare != PAGE and not bare.startswith(PASSED_ON)) or has_dots(bare):
            return _refusal(404, "not found")
        if request.method != "GET":
            return _refusal(405, "only GET is supported")
        try:
            reply = await self._patiently(path) if bare == PAGE else await self._page(path)
        except PageError as error:
            return _refusal(502, str(error))
        headers = {name: reply.header(name) for name in KEPT_HEADERS}
        kept = {name: value for name, value in headers.items() if value is not None}
        kept |= {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return web.Response(body=reply.body, status=reply.status, headers=kept)

    async def _page(self, path: str) -> Reply:
        return await self._source.page(f"/{path}")

    async def _patiently(self, path: str) -> Reply:
        """Retry while the scheduler starts."""
        until_s = monotonic() + PATIENCE_S
        while True:
            try:
                return await self._page(path)
            except PageError:
                if monotonic() >= until_s:
                    raise
            await asyncio.sleep(AGAIN_S)


def has_dots(path: str) -> bool:
    """Whether a part of the path is `.` or `..`, plain or percent-encoded any number of times: the
    source or a proxy might resolve it to a page outside the live view.
    """
    while (decoded := unquote(path)) != path:
        path = decoded
    return any(part in (".", "..") for part in re.split(r"[/\\]", path))


def _refusal(status: int, said: str) -> web.Response:
    return web.Response(text=f"{said}\n", status=status, headers={"Cache-Control": "no-store"})
