"""`make release`: what it writes, that it writes the same again, and one version everywhere."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.deploy.locks import pins_of
from tests.deploy.manifests import DEPLOY, helm_ran
from tests.support import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
URL = "https://example.com/release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("release"))


def released(folder: Path) -> Path:
    """A release without the programs that build images on the PATH."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    command = [sys.executable, DEPLOY / "release.py", folder / "dist", "--url", URL]
    environment = {**os.environ, "PATH": str(folder)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "image: skipped, neither buildah nor docker is installed\n" in ran.stdout
    return folder / "dist"


def test_every_version_is_that_of_pyproject() -> None:
    found = {}
    for name, pattern in (
        ("lab/pyproject.toml", r'^version = "(.+)"|"asched==(.+?)"'),
        ("deploy/chart/Chart.yaml", r"^(?:version|appVersion): (.+)"),
        ("deploy/base/kustomization.yaml", r"app.kubernetes.io/version: (.+)|newTag: (.+)"),
        ("deploy/examples/my-scheduler/deployment.yaml", r"image: asched:(.+)"),
        ("deploy/krew.yaml", r"version: v(.+)|kubectl-asched-([\d.]+)\.tar"),
        ("Dockerfile", r"^ARG VERSION=(.+)"),
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        groups = re.findall(pattern, text, re.MULTILINE)
        found[name] = {"".join(one) for one in groups}
    assert found == {name: {VERSION} for name in found}


def test_a_release_has_its_files_and_their_checksums(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    assert sums.keys() == {
        f"asched-{VERSION}-py3-none-any.whl",
        f"asched_lab-{VERSION}-py3-none-any.whl",
        f"asched-{VERSION}.tgz",
        f"asched-{VERSION}.cdx.json",
        f"kubectl-asched-{VERSION}.tar.gz",
        "krew.yaml",
    }
    assert sums == {name: digest(release / name) for name in sums}


def test_the_same_tree_gives_the_same_bytes(release: Path, tmp_path: Path) -> None:
    again = released(tmp_path)
    assert (again / "SHA256SUMS").read_bytes() == (release / "SHA256SUMS").read_bytes()


def test_the_chart_package_is_the_chart(release: Path) -> None:
    chart = release / f"asched-{VERSION}.tgz"
    with tarfile.open(chart) as archive:
        assert all(entry.isfile() for entry in archive)
    flags = ("--set=monitoring.enabled=true,admissionPolicy.enabled=true", "--namespace=x")
    packed = helm_ran("template", "y", str(chart), *flags)
    assert packed.returncode == 0, packed.stderr
    assert packed.stdout == helm_ran("template", "y", str(DEPLOY / "chart"), *flags).stdout


def test_the_bill_of_materials_lists_every_pin(release: Path) -> None:
    bom = json.loads((release / f"asched-{VERSION}.cdx.json").read_text(encoding="utf-8"))
    listed = {(one["name"], one["version"]) for one in bom["components"]}
    assert listed == pins_of(DEPLOY / "requirements.lock")
    (edges,) = bom["dependencies"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {edge.partition("@")[0] for edge in edges["dependsOn"]} == {
        f"pkg:pypi/{re.split(r'[<>=; ]', text)[0]}" for text in project["dependencies"]
    }


def test_krew_installs_a_program_that_starts_asched(release: Path, tmp_path: Path) -> None:
    manifest = yaml.safe_load((release / "krew.yaml").read_text(encoding="utf-8"))
    (platform,) = manifest["spec"]["platforms"]
    archive = release / platform["uri"].removeprefix(f"{URL}/")
    assert platform["sha256"] == digest(archive)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "store", filter="data")
    names = {path.name for path in (tmp_path / "store").iterdir()}
    assert {platform["bin"], "requirements.lock", f"asched-{VERSION}-py3-none-any.whl"} <= names
    # The first call would install from PyPI; here it is done.
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program = tmp_path / f"kubectl-asched/{VERSION}-{python}/bin/kubectl-asched"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "store" / platform["bin"])
    ran = subprocess.run(
        [sys.executable, tmp_path / "link", "explain", "pod"],
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "explain pod\n"), ran.stderr


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
