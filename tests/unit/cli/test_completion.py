"""Completion: for kubectl by itself, for shells by shtab where it is installed."""

import importlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from asched.cli import completion
from asched.cli.commands import COMMANDS, LAB_COMMANDS, main
from asched.cli.completion import FILES, NO_FILES, candidates, full_parser
from tests.deploy.manifests import kubectl
from tests.support import ROOT

PARSER = full_parser()


@pytest.mark.parametrize(
    ("line", "found", "directive"),
    [
        ("conf", ["config"], NO_FILES),
        ("config ch", ["check"], NO_FILES),
        ("config check ", [], FILES),
        ("config check --feature", ["--feature-gates"], NO_FILES),
        ("run --leader-elect-lease", ["--leader-elect-lease-duration"], NO_FILES),
        ("run --config ", [], FILES),
        ("doctor --as-", ["--as-group"], NO_FILES),
        ("doctor --out", ["--output"], NO_FILES),
        ("doctor -o ", ["json", "text", "wide", "yaml"], NO_FILES),
        ("doctor --kubeconfig ", [], FILES),
        ("top --w", ["--web"], NO_FILES),
        ("shadow ", ["report", "run"], NO_FILES),
        ("shadow run --shadow-", ["--shadow-report"], NO_FILES),
        ("shadow run --config ", [], FILES),
        ("version -o ", ["json", "text", "wide", "yaml"], NO_FILES),
        ("completion z", ["zsh"], NO_FILES),
        ("completion zsh ", [], NO_FILES),
        ("nonsense ", sorted({**COMMANDS, **LAB_COMMANDS}), NO_FILES),
        ("no-such-", [], NO_FILES),
    ],
)
def test_what_may_stand_here(line: str, found: list[str], directive: int) -> None:
    assert candidates(PARSER, line.split(" ")) == (found, directive)


def test_kubectl_is_told_candidates_and_a_directive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-asched", "config", ""])
    assert completion.complete_for_kubectl() == 0
    assert capsys.readouterr().out.splitlines() == ["check", "export", "migrate", "view", ":4"]


def test_kubectl_finds_both_programs_once_installed() -> None:
    """An underscore in kubectl's name for them, a dash in ours."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("kubectl-asched", "kubectl_complete-asched"):
        module, _, function = project["scripts"][name].partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_kubectl_finds_the_plugin(tmp_path: Path) -> None:
    plugin = Path(sys.executable).parent / "kubectl-asched"
    environment = {"PATH": f"{plugin.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    made = subprocess.run(
        [kubectl(), "asched", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0
    assert made.stdout.startswith("usage: kubectl asched ")


def test_without_shtab_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err.endswith("pip install 'asched[completion]'\n")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_is_one_the_shell_can_read(shell: str) -> None:
    shtab = pytest.importorskip("shtab", reason="shtab is absent: pip install 'asched[completion]'")
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    text = completion.script(shtab, shell)
    made = subprocess.run([program, "-n"], input=text, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")


def test_fish_completes_a_command(tmp_path: Path) -> None:
    shtab = pytest.importorskip("shtab", reason="shtab is absent: pip install 'asched[completion]'")
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    (tmp_path / "asched.fish").write_text(completion.script(shtab, "fish"), encoding="utf-8")
    made = subprocess.run(
        [fish, "-c", f"source {tmp_path}/asched.fish; complete -C 'asched doc'"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout.split()[0] == "doctor"


def test_bash_completes_a_command() -> None:
    shtab = pytest.importorskip("shtab", reason="shtab is absent: pip install 'asched[completion]'")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    ask = 'COMP_WORDS=(asched doc); COMP_CWORD=1; _shtab_asched; echo "${COMPREPLY[@]}"\n'
    made = subprocess.run(
        [bash, "--norc"],
        input=completion.script(shtab, "bash") + "\n" + ask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout.split() == ["doctor"]
