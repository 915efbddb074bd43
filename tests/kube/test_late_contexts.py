"""Whoever starts reads no authorities; whoever connects has them."""

import asyncio
import os
import ssl
import subprocess
import sys
from pathlib import Path

from asched.kube.certificates import LOOPBACK, load_pem, self_signed

#: Prints how often authorities of the system were read while a scheduler's modules are imported.
IMPORTS = """
import ssl
reads = []
usual = ssl.SSLContext.set_default_verify_paths
ssl.SSLContext.set_default_verify_paths = lambda self: (reads.append(1), usual(self))
import asched.cli.run, asched.host.serving
before = len(reads)
ssl.create_default_context()
print(before, len(reads) - before)
"""
#: Fetches a page with aiohttp's own context, which trusts whom SSL_CERT_FILE names.
FETCH = """
import asyncio, sys
from asched.kube import aio
import aiohttp
async def main():
    async with aiohttp.ClientSession() as session, session.get(sys.argv[1]) as answer:
        print(answer.status)
asyncio.run(main())
"""


def test_a_start_reads_no_authorities_and_leaves_the_ssl_module_as_it_was() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    )

    assert ran.stdout.split() == ["0", "1"]


async def test_a_default_context_of_aiohttp_trusts_the_systems_authorities_and_nobody_else(
    tmp_path: Path,
) -> None:
    certificate, key = self_signed(LOOPBACK)
    (tmp_path / "ca.pem").write_bytes(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pem(context, certificate, key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"

    async def fetched(file: str) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FETCH, url),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "SSL_CERT_FILE": file, "SSL_CERT_DIR": str(tmp_path / "none")},
        )
        out, error = await process.communicate()
        return out.decode().strip(), error.decode()

    try:
        assert (await fetched(str(tmp_path / "ca.pem")))[0] == "200"
        out, error = await fetched(os.devnull)
        assert out == ""
        assert "CERTIFICATE_VERIFY_FAILED" in error
    finally:
        server.close()
