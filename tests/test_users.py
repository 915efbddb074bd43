"""Tests pass for whoever runs them: beside plugins of their own, and on a busy machine."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from tests import conftest

ROOT = Path(__file__).parents[1]
SENSITIVE = "tests/host/user_plugins/test_catalogue.py"
#: Deadlines in figures are a guess about a machine; `tests.patience.HANG_S` is none.
DEADLINE = re.compile(r"asyncio\.timeout\(\d|^PATIENCE_S = ", re.MULTILINE)


def test_a_plugin_that_somebody_installed_disturbs_no_test(tmp_path: Path) -> None:
    (tmp_path / "somebodys.py").write_text("class Somebodys:\n    def filter(self, p, n): ...\n")
    info = tmp_path / "somebodys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[asched.plugins]\nSomebodys = somebodys:Somebodys\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", SENSITIVE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_no_test_guesses_how_fast_a_machine_is() -> None:
    guessing = {
        str(path.relative_to(ROOT)): found.group()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (found := DEADLINE.search(path.read_text(encoding="utf-8"))) and path != Path(__file__)
    }
    assert guessing == {}


def test_the_end_of_a_run_says_what_was_skipped_and_why() -> None:
    why = ("Skipped: no recordings: set ASCHED_SHARED", "Skipped: set KUBEBUILDER_ASSETS", "no zsh")
    skipped = [SimpleNamespace(longrepr=("file", 1, text)) for text in (why[0], *why)]
    lines: list[str] = []
    report = SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append)

    conftest.pytest_terminal_summary(report)

    (line,) = lines
    assert line.startswith("skipped: 1 for want of a real control plane (KUBEBUILDER_ASSETS names")
    assert "; 1 for want of no zsh; 2 for want of recordings of kube-scheduler (ASCHED" in line


def test_a_run_that_looked_at_everything_says_nothing() -> None:
    lines: list[str] = []
    conftest.pytest_terminal_summary(SimpleNamespace(stats={}, write_line=lines.append))
    assert lines == []
