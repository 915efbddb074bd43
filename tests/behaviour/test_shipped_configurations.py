"""Every configuration of `config/` starts with what the image installs, and nothing else."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path.name for path in (ROOT / "config").iterdir())
LOCK = (ROOT / "deploy/requirements.lock").read_text(encoding="utf-8")
#: Nothing of this tree is in a lock, and the lock is for a Python that needs no typing-extensions.
ALWAYS_THERE = {"asched", "asched-lab", "typing-extensions"}
LOCKED = set(re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)) | ALWAYS_THERE

RUN = """
import contextlib, importlib.abc, io, json, re, sys
from importlib.metadata import packages_distributions

locked, commands = map(json.loads, sys.argv[1:])

def is_locked(package):
    return re.sub(r"[-_.]+", "-", package).lower() in locked

modules = packages_distributions()
absent = {module for module, owners in modules.items() if not any(map(is_locked, owners))}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from asched.cli.main import main

results = []
for words in commands:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main(words)
    results.append((status, said.getvalue()))
print(json.dumps(results))
"""


def ran_in_the_image(*commands: list[str]) -> list[list[object]]:
    """Exit status and errors of each command, without packages that the image lacks."""
    words = (json.dumps(sorted(LOCKED)), json.dumps(commands))
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    results: list[list[object]] = json.loads(ran.stdout)
    return results


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """A dump of one node."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "uid": "n"},
        "status": {"allocatable": room, "capacity": room},
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    return str(file)


def test_each_file_starts_with_the_packages_of_the_image(cluster: str) -> None:
    commands = []
    for name in FILES:
        file = str(ROOT / "config" / name)
        is_policy = name.startswith("policy.")  # what `run --policy-config-file` reads
        simulated = ["simulate", "--dump", cluster, "--config", file, "--without-extenders"]
        commands.append(["config", "check", file] if is_policy else simulated)
    results = ran_in_the_image(*commands)

    said = {name: said for name, (status, said) in zip(FILES, results, strict=True) if status != 0}
    assert said == {}


def test_other_packages_are_absent() -> None:
    """Else the test above would prove nothing."""
    ((status, said),) = ran_in_the_image(["completion", "bash"])

    assert status != 0
    assert "shtab" in str(said)
