"""The kubelet's probes of a running process, while many addresses without credentials keep its port
busy: with TLS handshakes that they begin and leave, or with probes of their own.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from asched_lab.apiserver.server import ApiServer
from tests.e2e.outside import a_process
from tests.support import HANG_S

NODE = "127.9.9.1"
#: An address of the node that is not named.
OTHER_OF_NODE = "127.9.9.2"
#: As the readiness probe of the manifests.
PROBE_S = 5.0
PROBES = 4
PAUSE_S = 1.5
#: For a test with two phases.
LONG_S = 2 * HANG_S

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE


@pytest_asyncio.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """The port of a scheduler of one test: it remembers addresses."""
    server = ApiServer()
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number: int = taken.getsockname()[1]
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--secure-port={number}")
    named = {"ASCHED_NODE_ADDRESSES": f"192.0.2.1, {NODE}"}
    try:
        async with a_process(
            tmp_path, *flags, "--bind-address=127.0.0.1", environment=named
        ) as child:
            await child.says("Serving securely")
            yield number
    finally:
        await server.stop()


async def probe(port: int, of: str) -> None:
    """As a kubelet: a connection of its own, which has to be answered in time."""
    async with asyncio.timeout(PROBE_S):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=TLS, local_addr=(of, 0)
        )
        try:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        finally:
            writer.transport.abort()


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        TLS.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


async def begin_handshakes(port: int, of: str) -> None:
    """Begin one after the other; the server ends each."""
    hello = client_hello()
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(of, 0))
            try:
                writer.write(hello)
                while await reader.read(1 << 16):
                    pass
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.01)


async def probe_always(port: int, of: str) -> None:
    while True:
        with suppress(OSError, EOFError):
            await probe(port, of)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def busy_with(
    attack: Callable[[int, str], Coroutine[Any, Any, None]],
    port: int,
    addresses: int,
    connections: int,
    block: int,
) -> AsyncIterator[None]:
    names = [f"127.{block}.{number // 200}.{1 + number % 200}" for number in range(addresses)]
    tasks = [asyncio.create_task(attack(port, name)) for name in names * connections]
    try:
        await asyncio.sleep(2)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def failed_probes(port: int, of: str) -> int:
    failed = 0
    for _ in range(PROBES):
        try:
            await probe(port, of)
        except (OSError, EOFError):
            failed += 1
        await asyncio.sleep(PAUSE_S)
    return failed


@pytest.mark.parametrize(("addresses", "connections"), [(200, 1), (100, 2)])
async def test_begun_handshakes_of_many_addresses_fail_no_probe(
    port: int, addresses: int, connections: int
) -> None:
    """The kubelet's address is not known before, as in the first moments of a process."""
    block = 10 + connections
    async with (
        asyncio.timeout(HANG_S),
        busy_with(begin_handshakes, port, addresses, connections, block),
    ):
        assert await failed_probes(port, f"127.9.8.{connections}") == 0


async def test_an_address_that_probes_is_not_displaced_by_others_that_do(port: int) -> None:
    await probe(port, OTHER_OF_NODE)
    async with asyncio.timeout(LONG_S), busy_with(probe_always, port, 100, 1, 13):
        assert await failed_probes(port, OTHER_OF_NODE) == 0


async def test_a_named_address_of_the_node_comes_before_any_number_of_others(port: int) -> None:
    """All places of addresses that are known for their probes are taken before its first one."""
    async with asyncio.timeout(LONG_S), busy_with(probe_always, port, 100, 1, 14):
        assert await failed_probes(port, NODE) == 0
