"""A proxy between one scheduler and an API server that delays and reorders bindings.

    async with LateProxy(kubeconfig) as proxy:
        proxy.hold = lambda path: asyncio.sleep(28) if path.endswith(BINDING) else None
        ... a scheduler with proxy.write_kubeconfig(folder / "kubeconfig")

A POST or PATCH waits for what `hold` returns for its path, or passes at once for None. It is sent
on a connection of its own, also if its sender has been killed meanwhile: so it arrives as late as a
real network, proxy or API server may deliver it, and after requests that were sent later.
Everything else passes as it comes, watches included.

`cut` stops everything in both directions, as a network that is interrupted: what was sent waits,
and `mend` lets it through. Requests that are held are on their way and arrive.

Clients speak plain HTTP/1.1; the proxy adds the token of the kubeconfig, since client-go sends none
without TLS.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import yaml

from asched.kube.certificates import client_context
from asched_lab.apiserver.server import accept_no_more

CHUNK: Final = 1 << 16
#: The largest head of a request.
HEAD_MAX: Final = 1 << 16
#: The end of the path of a binding, and of a change of a pod's status.
BINDING: Final = "/binding"
STATUS: Final = "/status"
HELD_METHODS: Final = ("POST", "PATCH")

Hold = Callable[[str], Awaitable[object] | None]


class LateRequest:
    """A request about a pod that was held. `status`: of the server's answer, which came at
    `answered_s` of the monotonic clock; 0 before that, -1 if the server gave none.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.status = 0
        self.answered_s = 0.0

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return self.path.split("/")[-2]


class LateProxy:
    """Listens on `url` for the server of a kubeconfig (a token or nothing, a file or data of an
    authority or none). An async context manager; its end drops what is held.
    """

    def __init__(self, kubeconfig: str) -> None:
        self.hold: Hold = lambda _path: None
        self.late: list[LateRequest] = []
        #: When bindings that were not held were last let through, by pod.
        self.passed_s: dict[str, float] = {}
        self.url = ""
        document = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        parts = urlsplit(cluster["server"])
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = None
        if parts.scheme == "https":
            authority = Path(cluster["certificate-authority"]).read_bytes()
            self._tls = client_context(authorities=authority)
        token = user.get("token", "")
        self._credentials = f"Authorization: Bearer {token}\r\n".encode() if token else b""
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_MAX)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await accept_no_more(*self._server.sockets)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*map(self._closed, list(self._writers)), return_exceptions=True)

    def write_kubeconfig(self, path: Path) -> str:
        """Write a kubeconfig for clients of this proxy, and return its path."""
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "late",
            "clusters": [{"name": "late", "cluster": {"server": self.url}}],
            "users": [{"name": "late", "user": {}}],
            "contexts": [{"name": "late", "context": {"cluster": "late", "user": "late"}}],
        }
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)

    def cut(self) -> None:
        """Let nothing pass in either direction."""
        self._passes.clear()

    def mend(self) -> None:
        """Let everything pass that was sent, and what follows."""
        self._passes.set()

    @property
    def passes(self) -> bool:
        """Whether it lets anything pass."""
        return self._passes.is_set()

    @property
    def held_count(self) -> int:
        """How many held requests are on their way."""
        return sum(not request.status for request in self.late)

    # --- connections -----------------------------------------------------------------------------

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self._spawn(self._serve(reader, writer))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        self._writers.add(writer)
        return reader, writer

    def _close(self, writer: asyncio.StreamWriter | None) -> None:
        if writer is not None:
            writer.close()
            self._spawn(self._closed(writer))

    async def _closed(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the requests of one connection, until either side ends it."""
        upstream: asyncio.StreamWriter | None = None
        try:
            back, upstream = await self._connect()
            ways = [
                self._spawn(self._answers(back, writer)),
                self._spawn(self._requests(reader, writer, upstream)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                await self._passes.wait()  # the end of a connection does not pass either
            finally:
                for way in ways:
                    way.cancel()
        except OSError:
            pass  # the server is away; the end of the connection says so
        finally:
            self._close(writer)
            self._close(upstream)

    async def _answers(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await back.read(CHUNK):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: asyncio.StreamWriter,
    ) -> None:
        """Requests are not pipelined: while one is held, no other is on this connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length_of(head))
                await self._passes.wait()
                method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                path = target.partition("?")[0]
                waits = None
                if method in HELD_METHODS:
                    waits = self.hold(path)
                if waits is None:
                    if path.endswith(BINDING):
                        self.passed_s[path.split("/")[-2]] = time.monotonic()
                    upstream.write(self._with_credentials(head) + body)
                    await upstream.drain()
                    continue
                late = LateRequest(path)
                self.late.append(late)
                sent = self._with_credentials(head, b"Connection: close\r\n") + body
                held = self._spawn(self._deliver(late, sent, waits, writer))
                gone = asyncio.ensure_future(reader.read(1))  # b"" at the end of the connection
                await asyncio.wait((held, gone), return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                return

    async def _deliver(
        self,
        request: LateRequest,
        sent: bytes,
        waits: Awaitable[object],
        writer: asyncio.StreamWriter,
    ) -> None:
        """Send a held request when its time has come, whether its sender still exists or not."""
        await waits
        upstream, status, answer = None, -1, b""
        try:
            back, upstream = await self._connect()
            upstream.write(sent)
            answer = await back.read()
            status = int(answer.split(b" ", 2)[1])
        except (OSError, IndexError, ValueError):
            pass  # the server is away
        finally:
            request.status, request.answered_s = status, time.monotonic()
            self._close(upstream)
        await self._passes.wait()
        with suppress(OSError):
            writer.write(answer)
            await writer.drain()

    def _with_credentials(self, head: bytes, more: bytes = b"") -> bytes:
        first, _, rest = head.partition(b"\r\n")
        return first + b"\r\n" + self._credentials + more + rest


def _length_of(head: bytes) -> int:
    """The length of a request's body."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
