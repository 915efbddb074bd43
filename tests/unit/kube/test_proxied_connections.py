"""`asched` behind an HTTP proxy: a process, an API server over TLS, and the proxy between them.

The server's name resolves nowhere, so whatever reaches it went through the proxy.
"""

import asyncio
import os
import re
import signal
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from asched.kube.certificates import load_pem, self_signed
from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S
from tests.unit.cli.programs import asched

NAME = "api.invalid"
LOGIN = "jane:p%40ss"
WHOLE_ADDRESS = re.compile(rb"^(GET )http://[^/]+")
AUTHORIZATION = f"Basic {b64encode(b'jane:p@ss').decode()}"


class Proxy:
    """Forwards what is asked for NAME to a port of this machine."""

    def __init__(self, port: int, *, answer: bytes | None = None) -> None:
        self._port = port
        self._answer = answer
        #: The heads of requests to the proxy itself.
        self.heads: list[str] = []

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self._answer is not None:
                writer.write(self._answer)
                writer.close()
                return
            there, to = await asyncio.open_connection("127.0.0.1", self._port)
            is_tunnel = head.startswith("CONNECT ")
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
            else:
                to.write(WHOLE_ADDRESS.sub(rb"\1", head.encode()))
            await asyncio.gather(copy(reader, to, is_tunnel=is_tunnel), copy(there, writer))


async def copy(
    source: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_tunnel: bool = True
) -> None:
    with suppress(OSError):
        while data := await source.read(1 << 16):
            to.write(data if is_tunnel else WHOLE_ADDRESS.sub(rb"\1", data))
    to.close()


class World:
    """An API server with a node, and a kubeconfig that names it by a name without an address."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder = folder
        self.server = server
        self.port = int(server.url.rpartition(":")[2])

    def kubeconfig(self, proxy: str = "", authority: bytes = b"") -> str:
        document = yaml.safe_load(self.server.kubeconfig())
        cluster = document["clusters"][0]["cluster"]
        cluster["server"] = cluster["server"].replace(f"127.0.0.1:{self.port}", f"{NAME}:6443")
        cluster["tls-server-name"] = "localhost"
        if proxy:
            cluster["proxy-url"] = proxy
        if authority:
            both = self.server.authority + authority
            cluster["certificate-authority-data"] = b64encode(both).decode()
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        return str(file)

    async def snapshot(self, kubeconfig: str, **environment: str) -> tuple[int, str, str]:
        """Exit status and output of `asched snapshot`."""
        clean = {k: v for k, v in os.environ.items() if "PROXY" not in k.upper()}
        with patch.dict(os.environ, {**clean, **environment}, clear=True):
            return await asched("snapshot", "--kubeconfig", kubeconfig, "-")


@pytest.fixture(params=[True])
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    server = ApiServer()
    await server.start(token="secret", tls=request.param)
    server.create("nodes", a_node("behind"))
    try:
        yield World(tmp_path, server)
    finally:
        await server.stop()


async def test_the_proxy_of_the_environment_is_asked_for_a_tunnel(world: World) -> None:
    proxy = Proxy(world.port)
    async with proxy.serving() as port:
        told = await world.snapshot(
            world.kubeconfig(), HTTPS_PROXY=f"http://{LOGIN}@127.0.0.1:{port}"
        )

    assert told[0] == 0, told[2]
    assert '"behind"' in told[1]
    assert proxy.heads
    for head in proxy.heads:
        lines = head.split("\r\n")
        assert lines[0] == f"CONNECT {NAME}:6443 HTTP/1.1"
        assert f"Host: {NAME}:6443" in lines
        assert f"Proxy-Authorization: {AUTHORIZATION}" in lines
        assert "secret" not in head, "the token is for the server alone"


async def test_no_proxy_names_servers_that_are_reached_without_it(world: World) -> None:
    proxy = Proxy(world.port)
    async with proxy.serving() as port:
        status, _, said = await world.snapshot(
            world.kubeconfig(), HTTPS_PROXY=f"http://127.0.0.1:{port}", NO_PROXY="x,.invalid"
        )

    assert (status, proxy.heads) == (1, [])
    assert f"cannot reach https://{NAME}:6443: unknown host" in said


async def test_a_proxy_may_speak_tls_itself(world: World) -> None:
    """It is verified with the authority of the cluster, as Go does it."""
    proxy, certificate, context = Proxy(world.port), *of_a_proxy()
    async with proxy.serving(context) as port:
        url = f"https://localhost:{port}"
        status, _, said = await world.snapshot(world.kubeconfig(url))
        assert status == 1
        assert f"through the proxy localhost:{port}: its certificate is not trusted" in said
        status, out, said = await world.snapshot(world.kubeconfig(url, certificate))

    assert (status, said) == (0, "")
    assert '"behind"' in out


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            b"HTTP/1.1 407 No\r\n\r\n",
            "the proxy answered 407 Proxy Authentication Required; name a user and a password",
        ),
        (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "the proxy answered 403 Forbidden"),
        (b"SSH-2.0-x\r\n\r\n", "the proxy gave no HTTP answer to CONNECT"),
        (b"", "the proxy gave no HTTP answer to CONNECT"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "the proxy wrote into the tunnel"),
        (b"x" * 100_000, "the proxy gave no HTTP answer to CONNECT"),
    ],
    ids=["login", "forbidden", "no HTTP", "nothing", "more", "endless"],
)
async def test_a_proxy_that_opens_no_tunnel_is_named_in_one_line(
    world: World, answer: bytes, why: str
) -> None:
    async with Proxy(world.port, answer=answer).serving() as port:
        status, out, said = await world.snapshot(
            world.kubeconfig(f"http://jane:hidden@127.0.0.1:{port}")
        )

    (line,) = said.splitlines()
    assert (status, out) == (1, "")
    assert f"cannot reach https://{NAME}:6443 through the proxy 127.0.0.1:{port}: {why}" in line
    assert "hidden" not in line


async def test_a_proxy_that_is_not_there_is_named(world: World, unused_tcp_port: int) -> None:
    status, _, said = await world.snapshot(world.kubeconfig(f"http://127.0.0.1:{unused_tcp_port}"))

    assert status == 1
    assert f"through the proxy 127.0.0.1:{unused_tcp_port}: connection refused" in said


@pytest.mark.parametrize("world", [False], indirect=True)
async def test_a_server_without_tls_is_asked_for_through_the_proxy_by_its_whole_address(
    world: World,
) -> None:
    proxy = Proxy(world.port)
    async with proxy.serving() as port:
        status, out, said = await world.snapshot(
            world.kubeconfig(), HTTP_PROXY=f"http://{LOGIN}@127.0.0.1:{port}"
        )

    assert status == 0, said
    assert '"behind"' in out
    for head in proxy.heads:
        assert re.match(rf"GET http://{re.escape(NAME)}:6443/\S+ HTTP/1.1\r\n", head)
        assert f"Proxy-Authorization: {AUTHORIZATION}\r\n" in head


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_scheduler_binds_pods_through_a_proxy(world: World, scheme: str) -> None:
    """Watches, bindings and events: nothing goes another way."""
    world.server.create("pods", a_pod("p"))
    proxy, certificate, context = Proxy(world.port), *of_a_proxy()
    async with proxy.serving(context if scheme == "https" else None) as port:
        file = world.kubeconfig(f"{scheme}://localhost:{port}", certificate)
        flags = (f"--scheduler-name={SCHEDULER}", "--leader-elect=true", "--secure-port=0")
        async with a_process(world.folder, *flags, environment={"KUBECONFIG": file}) as asched:
            async with asyncio.timeout(HANG_S):
                while True:
                    pod = world.server.get("pods", "default", "p")
                    if pod is not None and pod["spec"].get("nodeName"):
                        break
                    await asyncio.sleep(0.02)
            asched.signal(signal.SIGTERM)
            assert await asched.ended() == 0

    assert {head.partition("\r\n")[0] for head in proxy.heads} == {f"CONNECT {NAME}:6443 HTTP/1.1"}


def of_a_proxy() -> tuple[bytes, ssl.SSLContext]:
    """The certificate of a proxy, and what it serves with."""
    certificate, key = self_signed(["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pem(context, certificate, key)
    return certificate, context
