"""An extender in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLUGIN = '''
class NoFirstNode:
    """Refuses node e0 with a reason of its own, and likes e2 best."""

    def filter(self, pod, node):
        if node.name == "e0":
            return "the first node is for others"

    def score(self, pod, node):
        return 100 if node.name == "e2" else 0
'''


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
