"""A raw HTTP/1.1 server on loopback that does exactly what a test tells it, good or bad."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from asched_lab.apiserver.server import accept_no_more


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """What a handler may do to the connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def start_stream(self) -> None:
        await self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    async def event(self, kind: str, obj: Any) -> None:
        await self.chunk(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")


def reply(status: int, body: Any = None, *headers: str) -> bytes:
    """A whole answer with Content-Length."""
    content = (
        body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
    )
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def status(code: int, reason: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        **more,
    }


#: Answers a request: bytes to send, or None if the handler has used the wire itself.
Handler = Callable[[Seen, Wire], Awaitable[bytes | None]]


@dataclass
class Scripted:
    """The running server. Tests change `handler` as they go."""

    handler: Handler
    url: str = ""
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connection_count: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def has_seen(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.seen) >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        number = self.connection_count
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {
                    key.lower(): value.strip()
                    for key, _, value in (line.partition(":") for line in lines[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Seen(method, target, headers, body, number)
                self.seen.append(request)
                async with self.arrived:
                    self.arrived.notify_all()
                answer = await self.handler(request, Wire(writer))
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def scripted(handler: Handler, tls: ssl.SSLContext | None = None):
    """A server on a port of its own, gone at the end."""
    made = Scripted(handler)
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await made.serve(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{made.port}"
    try:
        yield made
    finally:
        await accept_no_more(*server.sockets)
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def always_ok(_request: Seen, _wire: Wire) -> bytes | None:
    return reply(200, {"ok": True})
