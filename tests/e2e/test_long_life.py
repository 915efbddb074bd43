"""A process that is reloaded again and again, asked for its pages, and given pods in between, holds
what it held after the first few times: descriptors (sockets among them), threads, tasks.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node
from tests.e2e.extenders import running
from tests.e2e.mounts import Mount, placed
from tests.patience import HANG_S
from tests.serve.world import a_port, client_tls

#: By then everything was opened once that stays open.
WARM: Final = 4
ROUNDS: Final = 12


def held(pid: int) -> tuple[int, int]:
    """Open descriptors and threads of a process."""
    descriptors, threads = (list(Path(f"/proc/{pid}/{what}").iterdir()) for what in ("fd", "task"))
    return len(descriptors), len(threads)


async def comes_down_to(
    most: tuple[int, ...], look: Callable[[], tuple[int, ...]]
) -> tuple[int, ...]:
    """Wait until nothing is more than that: what is under way ends by itself."""
    async with asyncio.timeout(HANG_S):
        while any(now > then for now, then in zip(look(), most, strict=True)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return look()


async def test_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    server = ApiServer(kubelet=False)
    await server.start()
    try:
        for number in range(2):
            server.create("nodes", a_node(f"e{number}").allocatable().json)
        mount = Mount(tmp_path, server)
        mount.write("e0")
        command = [sys.executable, "-m", "asched", "run", "--secure-port=0"]
        command += ["--config", str(mount.config), "--plugin-dir", str(mount.plugins)]
        with running(command, mount.log) as process:
            assert await placed(server, "first") == "e0"
            warm = (0, 0)
            for number in range(ROUNDS):
                mount.write(f"e{number % 2}")
                process.send_signal(signal.SIGHUP)
                async with asyncio.timeout(HANG_S):
                    said = "The new configuration is in use"
                    while mount.log.read_text().count(said) < number:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                await placed(server, f"pod-{number}")
                if number < WARM:
                    now = held(process.pid)
                    warm = max(warm[0], now[0]), max(warm[1], now[1])
            await comes_down_to(warm, lambda: held(process.pid))
    finally:
        await server.stop()


async def test_pages_and_certificates_leave_nothing_behind() -> None:
    """Guests that stay away in the middle of a request are guests, too."""
    async with a_port() as port:

        def look() -> tuple[int, ...]:
            return (*held(os.getpid()), len(asyncio.all_tasks()))

        async def visit() -> None:
            port.server.certificates.refresh()
            for path in ("/metrics", "/livez", "/ui/", "/debug/asched/view"):
                await port.ask(path, "admin")
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port.server.port, ssl=client_tls()
            )
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: h\r\n")
            writer.transport.abort()

        for _ in range(WARM):
            await visit()
        warm = look()
        for _ in range(5 * ROUNDS):
            await visit()
        await comes_down_to(warm, look)
