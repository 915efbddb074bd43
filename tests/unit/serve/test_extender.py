"""What the extender's port takes in: questions have a length, together too, and a time to come."""

import asyncio
from contextlib import asynccontextmanager

from asched.serve.connections import ConnectionServer, listen
from asched.serve.extender import ExtenderService, Opinion
from tests.support import HANG_S

LIMIT = 100


async def no_binding(_):
    return "not here"


def nobody(_):
    raise AssertionError("nothing gets so far")


@asynccontextmanager
async def a_desk():
    """The port's number."""
    opinion = Opinion(nobody, no_binding, lambda: "", may_bind=True, bytes_max=LIMIT)
    door = ConnectionServer(ExtenderService(opinion).handle, None)
    port = door.open(await listen("127.0.0.1", 0, cure="x"))
    try:
        async with asyncio.timeout(HANG_S):
            yield port
    finally:
        await door.close()


async def begin(port, body, length):
    """Send the head and a part of a question."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ("POST /filter HTTP/1.1", "Content-Type: application/json", f"Content-Length: {length}")
    head = "\r\n".join((*lines, "", ""))
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


async def test_a_question_has_a_length():
    async with a_desk() as port:
        reader, writer = await begin(port, b"1" * (LIMIT + 1), LIMIT * 1000)
        answer = await reader.readuntil(b"nodeCacheCapable: true\n")
        assert answer.startswith(b"HTTP/1.1 413")
        writer.close()


async def test_all_questions_at_once_have_the_same_length_together():
    async with a_desk() as port:
        _, first = await begin(port, b" " * (LIMIT - 10), LIMIT)
        while True:
            reader, writer = await begin(port, b"1" * 20, 20)
            status = await reader.readline()
            writer.close()
            if status.startswith(b"HTTP/1.1 503"):  # once the first is being read
                break
        first.transport.abort()
        while True:
            reader, writer = await begin(port, b"1" * 20, 20)
            status = await reader.readline()
            writer.close()
            if status.startswith(b"HTTP/1.1 400"):  # once the first is forgotten
                break
