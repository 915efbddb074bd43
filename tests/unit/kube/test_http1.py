"""One response out of pieces of bytes, however they are cut."""

import random

import pytest

from asched.kube.connection import BODY_BYTES_MAX, HEAD_BYTES_MAX, ResponseReader
from asched.kube.errors import ProtocolBroken

FIXED = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;ext=1\r\nhello\r\nA\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\n"
)
INFORMAL = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("wire", "code", "body"),
    [
        (FIXED, 201, b"hello"),
        (CHUNKED, 200, b"hello0123456789"),
        (INFORMAL + FIXED, 201, b"hello"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
    ],
)
def test_any_cut_gives_the_same_response(wire, code, body, seed):
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(1, len(wire)), k=min(seed, len(wire) - 1)))
    reader = ResponseReader()
    replies = []
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        replies.append(reader.feed(wire[start:end]))
    assert replies[:-1] == [None] * (len(replies) - 1)
    assert (replies[-1].status, replies[-1].body, reader.reusable) == (code, body, True)


@pytest.mark.parametrize("tail", [b"HTTP/1.1 408 Too Slow\r\n", b"\0"])
@pytest.mark.parametrize("wire", [FIXED, CHUNKED])
def test_bytes_after_the_end_spoil_the_connection(wire, tail):
    reader = ResponseReader()
    reply = reader.feed(wire + tail)
    assert reply is not None
    assert not reader.reusable


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
def test_a_connection_lives_on_as_the_response_says(head, reusable):
    reader = ResponseReader()
    assert reader.feed(head + b"Content-Length: 0\r\n\r\n") is not None
    assert reader.reusable is reusable


@pytest.mark.parametrize("wire", [b"", FIXED[:10], FIXED[:-1], CHUNKED[:-3]])
def test_an_early_end_is_no_response(wire):
    reader = ResponseReader()
    if wire:
        assert reader.feed(wire) is None
    assert reader.end_of_stream() is None


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!!0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    ],
)
def test_nonsense_is_refused(wire):
    with pytest.raises(ProtocolBroken):
        ResponseReader().feed(wire)


MIB = b"x" * (1 << 20)
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "more", "limit"),
    [
        (b"HTTP/1.1 200 OK\r\nA: ", MIB, HEAD_BYTES_MAX),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 10_000, HEAD_BYTES_MAX),
        (b"", INFORMAL * 1000, HEAD_BYTES_MAX),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", MIB, BODY_BYTES_MAX),
        (b"HTTP/1.1 200 OK\r\n\r\n", MIB, BODY_BYTES_MAX),
        (CHUNKS + b"fffffffffffffff\r\n", MIB, BODY_BYTES_MAX),
        (CHUNKS, b"100000\r\n" + MIB + b"\r\n", BODY_BYTES_MAX),
        (CHUNKS + b"5;", MIB, BODY_BYTES_MAX),
        (CHUNKS + b"0\r\nTrailer: ", MIB, BODY_BYTES_MAX),
    ],
)
def test_what_has_no_end_is_given_up_at_the_bound(start, more, limit):
    taken = 0

    def feed_on():
        nonlocal taken
        reader = ResponseReader()
        reader.feed(start)
        while taken <= limit + len(more):
            reader.feed(more)
            taken += len(more)

    with pytest.raises(ProtocolBroken, match="no end"):
        feed_on()
    assert taken >= limit - 2 * len(more)


def test_a_truncated_answer_of_a_closing_server_is_no_answer():
    reader = ResponseReader()
    wire = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhe"
    assert reader.feed(wire) is None
    assert reader.end_of_stream() is None
