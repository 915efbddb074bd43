"""The processes of a measurement: the embedded API server and the scheduler.

Each writes its log to a file; if it dies, the last lines of the log become the error.

Bounds  READY_S to report that it serves or is synced; STOP_S to end after a SIGTERM.
"""

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from asched_lab.bench.world import WorkloadFailedError

READY_S: Final = 60.0
STOP_S: Final = 15.0
POLL_S: Final = 0.05
KUBE_SCHEDULER: Final = "kube-scheduler"


class Process:
    """One child process. `start`, then `ready`, then `stop`."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self.started_s = 0.0
        self._child: asyncio.subprocess.Process | None = None

    @classmethod
    def of_asched(cls, name: str, arguments: Sequence[str], log: Path) -> "Process":
        """`asched ...` with the running interpreter."""
        return cls(name, (sys.executable, "-m", "asched", *arguments), log)

    @classmethod
    def of_kube_scheduler(
        cls, binaries: Path, kubeconfig: str, arguments: Sequence[str], folder: Path
    ) -> "Process":
        """The one among `binaries`; its pages take the users of the same API server."""
        users = (
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        )
        command = (str(binaries / KUBE_SCHEDULER), *users, *arguments)
        return cls(KUBE_SCHEDULER, command, folder / f"{KUBE_SCHEDULER}.log")

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    async def start(self) -> None:
        """Start it in a session of its own, so that a Ctrl-C reaches only this process."""
        with self.log.open("wb") as log:
            self.started_s = time.monotonic()
            self._child = await asyncio.create_subprocess_exec(
                *self.command, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip

    async def ready(self, words: str) -> None:
        """Wait until `words` are in its log. Raises WorkloadFailedError."""
        until_s = time.monotonic() + READY_S
        while words not in self.log.read_text(encoding="utf-8", errors="replace"):
            self.check()
            if time.monotonic() > until_s:
                raise WorkloadFailedError(f"{self.name} was not ready within {READY_S:.0f} s")
            await asyncio.sleep(POLL_S)

    def check(self, *, may_end: bool = False) -> None:
        """Raises WorkloadFailedError with its last log lines if it has ended; `may_end`: with an
        error.
        """
        status = self._child.returncode if self._child is not None else None
        if status is not None and not (may_end and status == 0):
            text = self.log.read_text(encoding="utf-8", errors="replace").strip()
            words = " | ".join(text.splitlines()[-3:])
            raise WorkloadFailedError(f"{self.name} ended: {words}")

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self._child is not None and self._child.returncode is None:
            self._child.kill()

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL."""
        child = self._child
        if child is None or child.returncode is not None:
            return
        child.terminate()
        try:
            await asyncio.wait_for(child.wait(), STOP_S)
        except TimeoutError:
            child.kill()
            await child.wait()

    def traffic(self) -> tuple[int, int]:
        """Bytes it has read and written so far, files included; (0, 0) if the system has no
        counters.
        """
        try:
            counters = Path(f"/proc/{self.pid}/io").read_text(encoding="utf-8")
        except OSError:
            return 0, 0
        fields = dict(line.split(": ") for line in counters.splitlines())
        return int(fields["rchar"]), int(fields["wchar"])

    def usage(self) -> Mapping[str, float]:
        """CPU seconds and peak memory so far; empty if the system does not report them."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return {}
        fields = stat.rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return {
            "cpu_s": ticks / os.sysconf("SC_CLK_TCK"),
            "peak_rss_mb": int(peak.split()[1]) / 1024,
        }
