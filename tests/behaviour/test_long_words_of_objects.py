"""Texts that objects contain, and that metrics and log lines show: whoever writes an object decides
how long they are, and pays for it alone.
"""

import asyncio
import socket
from pathlib import Path

import aiohttp

from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import a_process

PODS = 20
LONG = "x" * 400_000
#: The longest reason that counts as a refusal.
REASON = "OutOf{number:02}" + "x" * 310
WAIT_S = 60.0


async def text_of(client: aiohttp.ClientSession, address: str) -> str:
    async with client.get(address, ssl=False) as got:
        assert got.status == 200
        return await got.text()


async def refuse(client: aiohttp.ClientSession, server: str, number: int) -> None:
    """Write a status as a kubelet does."""
    status = {"phase": "Failed", "reason": REASON.format(number=number), "message": LONG}
    async with client.patch(
        f"{server}/api/v1/namespaces/default/pods/pod-{number}/status",
        json={"status": status},
        headers={"Content-Type": "application/merge-patch+json"},
    ) as got:
        assert got.status == 200, await got.text()


async def test_reasons_of_a_kubelet_fill_neither_the_page_nor_the_log(tmp_path: Path) -> None:
    """A kubelet reports refused pods, each with a reason and a message of 400 kB."""
    server = ApiServer()
    await server.start()
    server.create("nodes", a_node("node"))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    flags = (
        *(f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--secure-port={port}"),
        *("--bind-address=127.0.0.1", "--authorization-always-allow-paths=/metrics", "-v=4"),
        f"--scheduler-name={SCHEDULER}",
    )
    try:
        async with a_process(tmp_path, *flags) as process:
            await process.says("Serving securely")
            for number in range(PODS):
                server.create("pods", a_pod(f"pod-{number}"))
            async with asyncio.timeout(WAIT_S), aiohttp.ClientSession() as client:
                address = f"https://127.0.0.1:{port}/metrics"
                while any("nodeName" not in pod["spec"] for pod in server.list("pods")):  # noqa: ASYNC110 - another process binds them
                    await asyncio.sleep(0.2)
                for number in range(PODS):
                    await refuse(client, server.url, number)
                while process.words.count("A kubelet refused a pod") < PODS:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.2)
                await asyncio.sleep(1.0)  # a page is as old at most
                page = await text_of(client, address)
            words = process.words
    finally:
        await server.stop()

    shown = [line for line in page.splitlines() if 'reason="OutOf' in line]
    assert len(shown) == PODS
    assert max(map(len, shown)) < 200
    assert len(page) < 1_000_000
    assert max(map(len, words.splitlines())) < 4_000
