"""Programs of the cluster: started in a network namespace, found again by their numbers."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from realcluster.settings import Settings

END_S = 15.0


def command(*words: object) -> str:
    """Run a command to its end; its output. Its complaint becomes the exception's text."""
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if ran.returncode:
        text = " ".join(str(word) for word in words)
        raise RuntimeError(f"{text}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def in_network(name: str, *words: object) -> list[str]:
    """The command in a network namespace; mounts stay those of the machine."""
    return ["nsenter", f"--net=/run/netns/{name}", *(str(word) for word in words)]


def enter_network(name: str) -> None:
    """Move this thread, and those that it starts, to a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open(encoding="utf-8") as file:
        if libc.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


class Processes:
    """Programs that run on after this one; each has a log file and a file with its number."""

    def __init__(self, settings: Settings) -> None:
        self._state = settings.state
        self._logs = settings.logs

    def start(
        self,
        name: str,
        words: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        cgroups: Sequence[Path] = (),
    ) -> None:
        def join() -> None:
            for folder in cgroups:
                (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")

        with (self._logs / f"{name}.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(variables or {})},
                start_new_session=True,
                preexec_fn=join,  # noqa: PLW1509 - this program has no thread when it starts others
            )
        (self._state / f"{name}.pid").write_text(str(process.pid), encoding="utf-8")

    def number(self, name: str) -> int | None:
        """The number of a process that runs."""
        try:
            number = int((self._state / f"{name}.pid").read_text(encoding="utf-8"))
            state = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        except FileNotFoundError:
            return None
        return None if state.split()[0] == "Z" else number

    def child(self, name: str) -> int:
        """The only child of a process that runs."""
        number = self.number(name)
        children = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8")
        return int(children.split()[0])

    def names(self) -> list[str]:
        return [path.stem for path in self._state.glob("*.pid")]

    def signal(self, name: str, number: signal.Signals) -> None:
        if (process := self.number(name)) is not None:
            os.kill(process, number)

    def end(self, name: str) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        until = time.monotonic() + END_S
        self.signal(name, signal.SIGTERM)
        while self.number(name) is not None and time.monotonic() < until:
            time.sleep(0.1)
        self.signal(name, signal.SIGKILL)
        (self._state / f"{name}.pid").unlink(missing_ok=True)
