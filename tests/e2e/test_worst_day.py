"""A short worst day, and the wire that goes wrong in it: beside kube-scheduler on a real control
plane, and by itself on the embedded server.

The long one is `python -m tests.e2e.worst_day`; its results are in
docs/results/control-plane-failures.md.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.control_plane import SERVERS
from tests.e2e.worst_day.__main__ import trial
from tests.e2e.worst_day.day import Order
from tests.e2e.worst_day.wire import Fault, Wire
from tests.support import HANG_S

A_SHORT_DAY = Order(
    pods=300,
    beside="kube-scheduler",
    beside_pods=60,
    nodes=60,
    kills=1,
    api_restarts=1,
    etcd_kills=1,
    wire_s=30.0,
    fault_s=4.0,
    calm_s=2.0,
    lease_s=6,
)


#: The embedded server has no store beside it.
DAYS = {"embedded": replace(A_SHORT_DAY, beside="", etcd_kills=0), "real": A_SHORT_DAY}


@pytest.mark.parametrize("kind", SERVERS)
async def test_every_pod_is_bound_once_and_no_rule_is_broken(kind: str, tmp_path: Path) -> None:
    day, wrong = await trial(DAYS[kind], tmp_path, kind)
    assert wrong == []
    assert [side.bound for side in day.sides] == [side.pods for side in day.sides]
    causes = {one.cause for one in day.recoveries if one.who == "asched"}
    assert {fault.value for fault in list(Fault)[:3]} <= causes
    assert len(causes) >= 6


@pytest.fixture
async def echo() -> AsyncIterator[tuple[int, list[bytes]]]:
    """The port of a server that answers each line with itself, and the lines it got."""
    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                got.append(line)
                writer.write(line)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    yield server.sockets[0].getsockname()[1], got
    server.close()


async def test_a_wire_without_a_fault_passes_everything(echo: tuple[int, list[bytes]]) -> None:
    async with Wire(echo[0]) as wire:
        reader, writer = await asyncio.open_connection("127.0.0.1", wire.port, limit=1 << 20)
        line = b"x" * 300_000 + b"\n"
        writer.write(line)
        assert await reader.readline() == line
        writer.close()


async def test_a_black_hole_swallows_and_its_end_resets(echo: tuple[int, list[bytes]]) -> None:
    async with Wire(echo[0]) as wire:
        reader, writer = await asyncio.open_connection("127.0.0.1", wire.port)
        writer.write(b"before\n")
        assert await reader.readline() == b"before\n"
        wire.fault = Fault.BLACK_HOLE
        writer.write(b"lost\n")
        async with asyncio.timeout(HANG_S):
            await wire.swallowed.wait()
        wire.fault = None
        with pytest.raises(ConnectionError):
            await reader.readexactly(1)
    assert echo[1] == [b"before\n"]


async def test_answers_are_lost_after_the_act(echo: tuple[int, list[bytes]]) -> None:
    async with Wire(echo[0]) as wire:
        wire.fault = Fault.LOST_ANSWERS
        reader, writer = await asyncio.open_connection("127.0.0.1", wire.port)
        writer.write(b"done\n")
        async with asyncio.timeout(HANG_S):
            await wire.swallowed.wait()
        wire.fault = None
        with pytest.raises(ConnectionError):
            await reader.readexactly(1)
        assert echo[1] == [b"done\n"]
