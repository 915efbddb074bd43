"""A process whose streams are opened again and again, whose pages are asked and which audits itself
keeps no descriptor, no task and no thread of it.
"""

import asyncio
import gc
import threading
from collections import Counter
from pathlib import Path

import pytest

from asched.edge.client import pace
from tests.edge.host.test_process import a_pod, a_process

PAGES = ("/metrics", "/readyz", "/configz", "/debug/asched/view", "/debug/asched/audit", "/flagz")
ROUNDS = 12
#: Of this process: a stream that is just being opened, a thread of the default executor.
WOBBLE = 6


def open_things() -> Counter[str]:
    """Both sides of every connection are in this process."""
    gc.collect()
    found = Counter(task.get_name().partition("-")[0] for task in asyncio.all_tasks())
    return Counter(
        {
            "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
            "threads": threading.active_count(),
            "tasks": found.total(),
        }
    )


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here")
async def test_nothing_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "STREAM_S", 0.5)
    async with a_process(tmp_path) as process:

        async def live(rounds: int) -> int:
            for number in range(rounds):
                process.server.create("pods", a_pod(f"p{rounds}-{number}"))
                for path in PAGES:
                    status, _ = await process.ask(path)
                    assert status == 200, path
                status, _ = await process.ask("/debug/asched/audit", method="POST")
                assert status == 200
                await asyncio.sleep(0.5)
            _, page = await process.ask("/metrics")
            told = [line for line in page.splitlines() if line.startswith("asched_audit_compared")]
            return sum(float(line.rpartition(" ")[2]) > 0 for line in told)

        assert await live(6) > 3
        before = open_things()
        await live(ROUNDS)
        after = open_things()

    assert {name: n for name, n in (after - before).items() if n > WOBBLE} == {}
