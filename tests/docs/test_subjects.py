"""`.ci/subjects` accepts `area: what changes` and refuses others; without history it passes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "a"), ("EMAIL", "a@b"))
}


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, **IDENTITY, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/subjects", tmp_path / ".ci")
    return tmp_path


def commit(clone: Path, subject: str) -> str:
    made = run(clone, "git", "commit", "-q", "--allow-empty", "--no-verify", "-m", subject)
    assert made.returncode == 0, made.stderr
    return run(clone, "git", "rev-parse", "HEAD").stdout.strip()


@pytest.mark.parametrize(
    ("subject", "is_right"),
    [
        ("docs: describe the queue", True),
        ("cycle: retry a lost binding once", True),
        ("cycle, queue: retry a lost binding once", False),
        ("docs: " + "x" * 66, True),
        ("docs: " + "x" * 67, False),
        ("Describe the queue", False),
        ("Docs: describe the queue", False),
        ("docs: describe the queue.", False),
    ],
)
def test_a_subject(clone: Path, subject: str, is_right: bool) -> None:
    run(clone, "git", "init", "-q")
    first = commit(clone, "Anything goes before")
    commit(clone, subject)
    checked = run(clone, ".ci/subjects", FIRST=first)
    assert (checked.returncode == 0) is is_right, checked.stdout + checked.stderr
    assert is_right or subject in checked.stdout


def test_without_git_or_without_history_it_passes(clone: Path) -> None:
    archive = run(clone, ".ci/subjects", GIT_CEILING_DIRECTORIES=str(clone.parent))
    assert (archive.returncode, "no git clone" in archive.stdout) == (0, True)
    run(clone, "git", "init", "-q")
    commit(clone, "Wrong")
    shallow = run(clone, ".ci/subjects")
    assert (shallow.returncode, "does not reach back" in shallow.stdout) == (0, True)
