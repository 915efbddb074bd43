"""`make release`: what it writes, that it writes the same again, and one version everywhere.

The wheels that the kubectl plugin depends on are made up here: empty packages.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.deploy.distributions import link_packages
from tests.deploy.locks import pins_of
from tests.deploy.manifests import DEPLOY, helm_ran
from tests.support import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
URL = "https://example.com/release"
PLATFORMS = ("linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    tag = f"cp{PYTHON.replace('.', '')}"
    for platform in PLATFORMS:
        (folder / platform).mkdir()
        for name, version in pins_of(DEPLOY / "client/requirements.lock"):
            wheel = folder / platform / f"{name}-{version}-{tag}-{tag}-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr(f"{name}/__init__.py", "")
                archive.writestr(f"{name}/source.pyx", "")
    return folder


@pytest.fixture(scope="module")
def release(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("release"), WHEELS=str(wheels))


def released(folder: Path, **variables: str) -> Path:
    """A release by the programs in this folder alone: no image, and no program that downloads."""
    ran = release_ran(folder, **variables)
    assert ran.returncode == 0, ran.stderr
    return folder / "dist"


def release_ran(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    for module in ("hatchling", "cyclonedx_py"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    command = [sys.executable, DEPLOY / "release.py", folder / "dist", "--url", URL]
    environment = {**os.environ, "PATH": str(folder), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_version_is_that_of_pyproject() -> None:
    found = {}
    for name, pattern in (
        ("lab/pyproject.toml", r'^version = "(.+)"|"asched==(.+?)"'),
        ("deploy/client/pyproject.toml", r'^version = "(.+)"'),
        ("deploy/chart/Chart.yaml", r"^(?:version|appVersion): (.+)"),
        ("deploy/base/kustomization.yaml", r"app.kubernetes.io/version: (.+)|newTag: (.+)"),
        ("deploy/examples/my-scheduler/deployment.yaml", r"image: asched:(.+)"),
        ("deploy/krew.yaml", r"version: v(.+)|kubectl-asched-([\d.]+)-"),
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
        f"asched_cli-{VERSION}-py3-none-any.whl",
        f"asched-{VERSION}.tar.gz",
        f"asched_lab-{VERSION}.tar.gz",
        f"asched-chart-{VERSION}.tgz",
        f"asched-{VERSION}.cdx.json",
        f"asched-{VERSION}.provenance.json",
        *(f"kubectl-asched-{VERSION}-{platform}.tar.gz" for platform in PLATFORMS),
        "krew.yaml",
    }
    assert sums == {name: digest(release / name) for name in sums}


def test_the_same_tree_gives_the_same_bytes(release: Path, wheels: Path, tmp_path: Path) -> None:
    again = released(tmp_path, WHEELS=str(wheels))
    assert (again / "SHA256SUMS").read_bytes() == (release / "SHA256SUMS").read_bytes()


def test_the_chart_package_is_the_chart(release: Path) -> None:
    chart = release / f"asched-chart-{VERSION}.tgz"
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
    assert bom["metadata"]["component"]["version"] == VERSION
    hashes = [one["externalReferences"][0]["hashes"] for one in bom["components"]]
    assert all(hashes)


def test_the_provenance_names_the_files_and_what_they_were_built_from(release: Path) -> None:
    path = release / f"asched-{VERSION}.provenance.json"
    statement = json.loads(path.read_text(encoding="utf-8"))
    files = {path.name for path in release.iterdir()} - {path.name, "SHA256SUMS"}
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == {
        name: digest(release / name) for name in files
    }
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["version"] == VERSION
    tree, *locks = definition["resolvedDependencies"]
    assert tree["uri"].startswith("git+https://")
    assert {one["uri"]: one["digest"]["sha256"] for one in locks} == {
        path.relative_to(ROOT).as_posix(): digest(path) for path in DEPLOY.rglob("*.lock")
    }


def test_a_package_index_shows_no_link_that_leads_nowhere(release: Path) -> None:
    for name in ("asched", "asched_lab", "asched_cli"):
        with zipfile.ZipFile(release / f"{name}-{VERSION}-py3-none-any.whl") as wheel:
            text = wheel.read(f"{name}-{VERSION}.dist-info/METADATA").decode()
        links = re.findall(r"\]\(([^)\s]+)\)", text)
        assert len(links) > 1
        assert [link for link in links if not re.match("https://|#", link)] == []
        for link in links:
            path = link.partition("#")[0].partition(f"/blob/v{VERSION}/")[2]
            assert (ROOT / path).exists(), link


def test_an_image_is_built_from_the_bases_that_are_named(tmp_path: Path) -> None:
    engine = tmp_path / "buildah"
    engine.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path}/calls\necho id\n", encoding="utf-8")
    engine.chmod(0o755)
    out = released(tmp_path, BASE="base:1", RUN_BASE="run:1")
    calls = (tmp_path / "calls").read_text(encoding="utf-8")
    assert "--build-arg=BASE=base:1 --build-arg=RUN_BASE=run:1" in calls
    assert f"push localhost/asched:{VERSION} docker-archive:" in calls
    text = (out / f"asched-{VERSION}.provenance.json").read_text(encoding="utf-8")
    parameters = json.loads(text)["predicate"]["buildDefinition"]["externalParameters"]
    assert (parameters["BASE"], parameters["RUN_BASE"]) == ("base:1", "run:1")


def test_a_release_that_fails_leaves_nothing(tmp_path: Path) -> None:
    ran = release_ran(tmp_path, BASE="absent:1")
    assert ran.returncode == 1
    assert "neither buildah nor docker has the base image absent:1" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def plugin(release: Path, tmp_path: Path) -> Path:
    """The program that krew links, from the archive for Linux."""
    manifest = yaml.safe_load((release / "krew.yaml").read_text(encoding="utf-8"))
    assert len(manifest["spec"]["platforms"]) == len(PLATFORMS)
    for platform in manifest["spec"]["platforms"]:
        system = "{os}-{arch}".format(**platform["selector"]["matchLabels"])
        archive = release / platform["uri"].removeprefix(f"{URL}/")
        assert archive.name == f"kubectl-asched-{VERSION}-{system}.tar.gz"
        assert platform["sha256"] == digest(archive)
    with tarfile.open(release / f"kubectl-asched-{VERSION}-linux-amd64.tar.gz") as packed:
        packed.extractall(tmp_path / "store", filter="data")
    return tmp_path / "store/kubectl-asched"


def ran(link: Path, program: Path, *words: str) -> str:
    link.symlink_to(program)
    environment = {"XDG_CACHE_HOME": str(link.parent), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, link, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_plugin_has_what_it_needs_for_this_python(plugin: Path) -> None:
    store = plugin.parent
    names = {name for name, _ in pins_of(DEPLOY / "client/requirements.lock")}
    assert {path.name for path in (store / f"python{PYTHON}").iterdir()} == names
    assert not [*store.rglob("*.pyx")]
    assert (store / "client/asched/cli/explain.py").exists()
    assert (store / "LICENSE").exists()


def test_the_plugin_shows_pages_with_packages_of_its_own_alone(
    plugin: Path, tmp_path: Path
) -> None:
    folder = plugin.parent / f"python{PYTHON}"
    shutil.rmtree(folder)
    folder.mkdir()
    link_packages(folder, DEPLOY / "client/requirements.lock")
    (tmp_path / "bin").mkdir()
    shown = ran(tmp_path / "bin/kubectl-asched", plugin, "version", "--server=https://127.0.0.1:1")
    assert shown.splitlines()[0] == f"client     {VERSION}"
    words = ran(tmp_path / "bin/kubectl_complete-asched", plugin, "explain", "--ag")
    assert words == "--against\n:4\n"


def test_the_plugin_installs_asched_for_other_commands(plugin: Path, tmp_path: Path) -> None:
    # The first call would install from PyPI; here it is done.
    program = tmp_path / f"kubectl-asched/{VERSION}-python{PYTHON}/bin/kubectl-asched"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    assert ran(tmp_path / "link", plugin, "config", "-o", "wide") == "config -o wide\n"


def test_without_wheels_there_is_no_plugin(tmp_path: Path) -> None:
    out = released(tmp_path)
    assert not [*out.glob("kubectl-asched*"), *out.glob("krew.yaml")]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
