"""One response out of pieces of bytes, however they are cut."""

import random

import pytest

from asched.edge.client.errors import ProtocolBroken
from asched.edge.client.http1 import HEAD_BYTES_MAX, ResponseReader

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


def test_a_reader_reads_one_response_after_another():
    reader = ResponseReader()
    for wire in (FIXED, CHUNKED, FIXED):
        reader.begin(no_body=False)
        assert reader.is_untouched
        assert reader.feed(wire) is not None


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


def test_a_head_request_has_no_body_whatever_its_length_says():
    reader = ResponseReader()
    reader.begin(no_body=True)
    reply = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    assert reply is not None
    assert reply.body == b""


def test_without_length_the_body_ends_with_the_connection():
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") is None
    assert reader.feed(b"cd") is None
    reply = reader.end_of_stream()
    assert reply is not None
    assert (reply.body, reader.reusable) == (b"abcd", False)


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
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_nonsense_is_refused(wire):
    with pytest.raises(ProtocolBroken):
        ResponseReader().feed(wire)


def test_a_header_without_end_is_refused():
    reader = ResponseReader()
    with pytest.raises(ProtocolBroken, match="no end"):
        reader.feed(b"HTTP/1.1 200 OK\r\nA: " + b"b" * HEAD_BYTES_MAX)
