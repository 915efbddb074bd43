"""`asched demo`: what it refuses, what it prints, and what can be looked at afterwards."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.support import HANG_S

OTHER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: other}]
"""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--config", "{}/other.yaml"], "other.yaml serves other, but the demo's pods name asched"),
        (["--config", "{}/absent.yaml"], "absent.yaml: no such file or directory"),
        (["--plugin", "{}/absent.py"], "absent.py: there is no such file"),
        (["--log", "{}/absent/log"], "cannot write --log"),
    ],
)
def test_what_the_scheduler_would_refuse_is_told_before_anything_starts(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text(OTHER, encoding="utf-8")

    assert main(["demo", *(flag.format(tmp_path) for flag in flags)]) == 2

    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert line.startswith("asched demo: ")
    assert said in line


async def test_what_is_kept_can_be_asked_why_a_pod_waits() -> None:
    command = (sys.executable, "-m", "asched", "demo", "--nodes", "3", "--pods", "40", "--keep")
    demo = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert demo.stdout is not None
    said = []
    try:
        async with asyncio.timeout(HANG_S):
            async for line in demo.stdout:
                said.append(line.decode().rstrip())
                if found := re.search(r"export KUBECONFIG=(\S+)", line.decode()):
                    kubeconfig = found[1]
                if found := re.search(r"asched explain (\S+/\S+)", line.decode()):
                    break
            else:
                pytest.fail("it ended without saying how to look around")
            explain = (sys.executable, "-m", "asched", "explain", found[1])
            env = {**os.environ, "KUBECONFIG": kubeconfig}
            asked = await asyncio.create_subprocess_exec(
                *explain, stdout=asyncio.subprocess.PIPE, env=env
            )
            told, _ = await asked.communicate()
    finally:
        demo.send_signal(signal.SIGTERM)
        status = await demo.wait()

    assert status == 0
    assert said[:4] == [
        "starting the API server ...",
        "creating 3 nodes ...",
        "creating 40 pods ...",
        "starting the scheduler ...",
    ]
    assert asked.returncode == 0
    assert told.decode().startswith(f"pod {found[1]}: unschedulable")
