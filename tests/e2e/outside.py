"""`asched run` as a process of its own, and what it says.

    async with a_process("--kubeconfig", path) as process:
        await process.says("synced")
        process.signal(signal.SIGTERM)
        assert await process.ended(within_s=10) == 0

Children get an environment in which no kubeconfig of whoever runs the tests is found.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support import HANG_S

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05
PROGRAM = (sys.executable, "-m", "asched")


class Asched:
    """One child; its words go to a file."""

    def __init__(self, child: asyncio.subprocess.Process, log: Path) -> None:
        self._child = child
        self._log = log

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_there(self) -> bool:
        return self._child.returncode is None

    @property
    def words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    async def says(self, text: str) -> None:
        """Wait until it has said something."""
        async with asyncio.timeout(HANG_S):
            while text not in self.words:
                assert self._child.returncode is None, f"it ended, and said: {self.words}"
                await asyncio.sleep(POLL_S)

    async def ended(self, within_s: float = HANG_S) -> int:
        """Its exit status; a test fails if it takes longer."""
        try:
            return await asyncio.wait_for(self._child.wait(), within_s)
        except TimeoutError:
            raise AssertionError(f"still there after {within_s} s: {self.words}") from None


@asynccontextmanager
async def a_process(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    program: tuple[str, ...] = PROGRAM,
) -> AsyncIterator[Asched]:
    """`asched run ARGUMENTS`; killed in the end if it is still there."""
    log = folder / "asched.log"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
    command = (*program, "run", *arguments)
    with log.open("wb") as file:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            cwd=ROOT,
            env={**clean, "HOME": str(folder), "PYTHONUNBUFFERED": "1", **(environment or {})},
        )
    try:
        yield Asched(child, log)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
