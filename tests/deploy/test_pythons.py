"""`.ci/python` finds an interpreter that answers, wherever pythons are kept."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def found(version: str, home: Path, **more: str) -> str:
    variables = {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin", **more}
    asked = [str(ROOT / ".ci/python"), version]
    done = subprocess.run(asked, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if done.stdout else 1)
    return done.stdout.strip()


def an_interpreter(path: Path, *, answers: bool = True) -> Path:
    """This one, or a shim that lets nobody through."""
    path.parent.mkdir(parents=True, exist_ok=True)
    act = f'exec {sys.executable} "$@"' if answers else "exit 127"
    path.write_text(f"#!/bin/sh\n{act}\n")
    path.chmod(0o755)
    return path


def test_one_on_the_path_comes_first(tmp_path: Path) -> None:
    mine = an_interpreter(tmp_path / "bin" / f"python{HERE}")
    an_interpreter(tmp_path / f".pyenv/versions/{HERE}.9/bin/python{HERE}")
    assert found(HERE, tmp_path) == str(mine)


@pytest.mark.parametrize("root", [".pyenv", "elsewhere"])
def test_behind_a_shim_that_does_not_answer_the_newest_of_pyenvs_versions_is_taken(
    tmp_path: Path, root: str
) -> None:
    an_interpreter(tmp_path / "bin" / f"python{HERE}", answers=False)
    for patch in (9, 10):
        newest = an_interpreter(tmp_path / f"{root}/versions/{HERE}.{patch}/bin/python{HERE}")
    more = {} if root == ".pyenv" else {"PYENV_ROOT": str(tmp_path / root)}
    assert found(HERE, tmp_path, **more) == str(newest)


def test_another_version_under_the_name_is_not_taken(tmp_path: Path) -> None:
    an_interpreter(tmp_path / "bin" / "python3.99")
    assert found("3.99", tmp_path) == ""


def test_continuous_integration_has_each_python_that_is_promised() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["run"]["steps"]
    (versions,) = (
        step["with"]["python-version"] for step in steps if "python" in step.get("uses", "")
    )
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    promised = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', declared)
    assert sorted(versions.split()) == promised
    assert steps[-1] == {"run": ".ci/run"}
