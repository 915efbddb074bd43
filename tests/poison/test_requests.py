"""Whatever is sent to the served port, by whoever may see everything: no 500, no traceback, and the
next one is answered.
"""

import asyncio
import logging
import random
import ssl
from typing import Final

import pytest

from tests.support import HANG_S
from tests.unit.serve.world import a_port, client_tls

SEEDS: Final = range(4)
REQUESTS: Final = 40
METHODS: Final = (
    *("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"),
    *("CONNECT", "get", "G\x00T", "GET\t", "A" * 9000, ""),
)
TAILS: Final = (
    *("", "/", "//", "/..", "/../..", "/%2e%2e/%2e%2e/etc/passwd", "/%00", "/%ff", "/%zz", ";a=b"),
    *(
        "/NAMESPACE/NAME",
        "/default/web/extra",
        "/" + "a" * 5000,
        "/é",
        "/\u202e",
        "#x",
        "%0d%0aX:y",
    ),
)
QUERIES: Final = (
    *("", "?", "?seconds=0", "?seconds=-1", "?seconds=nan", "?seconds=1e400", "?seconds=abc"),
    *("?debug=2", "?debug=" + "9" * 5000, "?verbose", "?exclude=" + "a&exclude=" * 300, "?%ff=%00"),
    *("?since=-1", "?since=" + "9" * 30, "?names=" + "a," * 2000, "?node=..", "?a=" + "b" * 7000),
    "?" + "&".join(f"k{n}=v" for n in range(500)),
)
HEADERS: Final = (
    ("Accept", "application/json;q=" + "0" * 2000),
    ("Accept", "text/html, */*;q=nan"),
    ("Accept", ",".join(["a/b"] * 500)),
    ("Accept-Encoding", "gzip, br, zstd, " + "x" * 500),
    ("Content-Type", "multipart/form-data; boundary=" + "b" * 300),
    ("Content-Length", "-1"),
    ("Content-Length", "9" * 30),
    ("Transfer-Encoding", "chunked"),
    ("Transfer-Encoding", "gzip, chunked"),
    ("Range", "bytes=5-2,-1"),
    ("Host", "x" * 2000),
    ("Origin", "null"),
    ("Cookie", "a=" + "b" * 5000),
    ("X-Forwarded-For", "1.2.3.4, " * 300),
    ("X-Remote-User", "system:admin"),
    ("Expect", "100-continue"),
    ("Upgrade", "websocket"),
    ("If-None-Match", '"' * 99),
    ("A" * 3000, "b"),
    ("X-Binary", "\xff\x01\x7f"),
)
BODIES: Final = (
    b"",
    b"",
    b"1",
    b"\x00" * 99,
    b"{" * 5000,
    b"9" * 70_000,
    b"zz\r\n\r\n",
    b"5\r\nab",
)


def a_request(rng: random.Random, paths: list[str]) -> bytes:
    path = rng.choice(paths) + rng.choice(("", "", *TAILS)) + rng.choice(("", "", *QUERIES))
    lines = [f"{rng.choice(METHODS)} {path} HTTP/{rng.choice(('1.1', '1.1', '1.0', '2.0', 'x'))}"]
    headers = [("Host", "here"), ("Authorization", "Bearer admin"), ("Connection", "close")]
    headers += rng.sample(HEADERS, rng.randint(0, 3))
    body = rng.choice(BODIES)
    if body and rng.random() < 0.7:
        headers.append(("Content-Length", str(len(body))))
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join(lines).encode("utf-8", "replace")
    whole = head + b"\r\n\r\n" + body
    return whole[: rng.randrange(len(whole))] if rng.random() < 0.1 else whole


async def said_to(port: int, request: bytes, tls: ssl.SSLContext) -> bytes:
    """Everything that is answered until the connection ends; we end our half at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(1 << 22), 1.0)
    except (ConnectionError, TimeoutError):  # it waits for the rest, or will hear no more
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_that_is_asked_breaks_anything(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng, tls = random.Random(seed), client_tls()
    caplog.set_level(logging.WARNING)
    async with a_port() as port, asyncio.timeout(HANG_S):
        for name in ("NAMESPACE/NAME", "NAME"):
            port.inspector.told[name] = {}
        paths = [*port.routes.paths(), "", "*", "/nowhere", "http://other/metrics", "/ui"]
        answered = 0
        requests = [a_request(rng, paths) for _ in range(REQUESTS)]
        answers = await asyncio.gather(*(said_to(port.server.port, r, tls) for r in requests))
        for request, said in zip(requests, answers, strict=True):
            status = said.partition(b" ")[2][:3]
            assert not status.startswith(b"5"), (request[:300], said[:300])
            assert b"Traceback" not in said, request[:300]
            answered += bool(status)
        assert answered > REQUESTS / 3
        answer, _ = await port.ask("/livez")
        assert answer.status == 200
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
