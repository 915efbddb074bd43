"""What the wheels and source distributions contain, and what a wheel of asched does alone."""

import asyncio
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from asched.cli.commands import COMMANDS, LAB_COMMANDS
from asched_lab.apiserver.server import ApiServer
from tests.deploy.distributions import PROJECTS, built, installed
from tests.deploy.manifests import DEPLOY, documents, kubectl
from tests.lab.apiserver.client import a_pod
from tests.support import ROOT
from tests.unit.cli.programs import PAGE, World, a_kubeconfig
from tests.unit.kube.scripted import scripted
from tests.unit.serve.views import a_view

PACKAGES = {"asched": "asched", "asched-lab": "asched_lab"}
CLIENT_COMMANDS = {"doctor", "drain", "explain", "top", "version", "completion"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return {name: built(name, folder, "wheel") for name in PROJECTS}


@pytest.fixture(scope="module")
def asched(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program where only asched is installed."""
    return installed(wheels["asched"], tmp_path_factory.mktemp("alone") / "environment")


@pytest.fixture(scope="module")
def client(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin where only asched-cli is installed."""
    lock = ROOT / "deploy/client/requirements.lock"
    environment = tmp_path_factory.mktemp("client") / "environment"
    return installed(wheels["asched-cli"], environment, lock).with_name("kubectl-asched")


def files_of(package: Path) -> set[str]:
    """The files of a package in this tree, by their paths from the folder it is in."""
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_has_the_files_of_its_own_package_and_no_others(
    name: str, wheels: dict[str, Path]
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        files = set(archive.namelist())
    metadata = {file for file in files if file.split("/")[0].endswith(".dist-info")}

    assert files - metadata == files_of(PROJECTS[name] / PACKAGES[name])
    assert {file.split("/", 1)[1] for file in metadata} >= {"METADATA", "entry_points.txt"}


@pytest.mark.parametrize("name", PACKAGES)
def test_no_package_contains_tests(name: str) -> None:
    package = PROJECTS[name] / PACKAGES[name]
    names = {part for file in files_of(package) for part in file.split("/")}

    assert not {name for name in names if name.startswith(("test_", "tests", "conftest"))}


def test_a_source_distribution_has_what_builds_the_wheel_and_no_tests(tmp_path: Path) -> None:
    for name, package_name in PACKAGES.items():
        project = PROJECTS[name]
        with tarfile.open(built(name, tmp_path, "sdist")) as archive:
            files = {member.name.split("/", 1)[1] for member in archive if member.isfile()}

        package = files_of(project / package_name)
        assert files >= package | {"pyproject.toml", "README.md", "PKG-INFO"}
        others = {file.split("/")[0] for file in files - package}
        assert others <= {
            *("pyproject.toml", "README.md", "PKG-INFO", ".gitignore"),
            *("LICENSE", "CHANGELOG.md", "config", "docs"),
        }


def test_demo_says_in_one_line_what_to_install(asched: Path) -> None:
    status, output, errors = ran(asched, "demo")

    assert (status, output, errors.count("\n")) == (2, "", 1), errors
    assert "pip install asched-lab" in errors


def test_help_lists_the_commands_that_are_installed(asched: Path) -> None:
    status, output, errors = ran(asched, "--help")
    listed = {line.split()[0] for line in output.splitlines() if line.startswith("    ")}

    assert (status, errors) == (0, "")
    assert listed >= set(COMMANDS)
    assert not listed & set(LAB_COMMANDS)


def test_each_command_of_asched_is_there_without_the_lab(asched: Path) -> None:
    imports = ";".join(f"import asched.cli.{command}" for command in COMMANDS)

    assert ran(asched.with_name("python"), "-c", imports) == (0, "", "")


def test_the_client_names_its_commands_and_where_others_are(client: Path) -> None:
    status, output, errors = ran(client, "--help")
    assert (status, errors) == (0, "")
    assert set(re.findall(r"^    (\w+)", output, re.MULTILINE)) == CLIENT_COMMANDS

    message = "asched: 'config' is a command of asched: pip install asched\n"
    assert ran(client, "config") == (2, "", message)
    assert "the whole of asched" in ran(client, "top", "--web")[2]


@pytest.mark.parametrize("command", ["doctor", "drain", "explain", "top", "version"])
def test_a_command_of_the_client_finds_all_its_modules(client: Path, command: str) -> None:
    imports = f"import asched.cli.{command} as c, asched.core.config.problem; print(c.__file__)"
    status, output, errors = ran(client.with_name("python"), "-c", imports)
    assert (status, errors) == (0, "")
    assert Path(output.strip()).is_relative_to(client.parent.parent)
    assert ran(client, command, "--help")[0] == 0


async def test_the_client_asks_the_scheduler_and_the_api_server(
    client: Path, tmp_path: Path
) -> None:
    """Its environment has none of the large packages."""
    for package in ("numpy", "uvloop", "kubernetes_asyncio"):
        assert ran(client.with_name("python"), "-c", f"import {package}")[0] == 1
    world = World()
    world.answers[PAGE.replace("pods/team/web", "view")] = (200, a_view(3))
    world.answers["/version"] = (200, {"gitVersion": "v1.36.3"})
    async with scripted(world.answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        for words, line in (
            (("explain", "web"), "pod default/web: unschedulable"),
            (("top",), "active 12   backoff 3   unschedulable 3400"),
            (("version",), "apiServer  v1.36.3"),
        ):
            status, output, errors = await asyncio.to_thread(ran, client, *words, kubeconfig)
            assert (status, errors) == (0, "")
            assert line in output


async def test_kubectl_completes_commands_flags_and_pods_of_the_client(
    client: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without shtab, which writes scripts for shells."""
    assert ran(client.with_name("python"), "-c", "import shtab")[0] == 1
    status, output, errors = ran(client, "completion", "bash")
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert "load `kubectl completion bash`" in errors
    server = ApiServer()
    await server.start()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{client.parent}:/usr/bin:/bin")
    (tmp_path / "config").write_text(server.kubeconfig(), encoding="utf-8")
    program = Path(kubectl())
    try:
        for name in ("web-1", "web-2", "db"):
            server.create("pods", a_pod(name))
        for words, found in (
            (("expl",), ["explain"]),
            (("explain", "--ag"), ["--against"]),
            (("explain", "w"), ["web-1", "web-2"]),
            (("explain", "default/d"), ["default/db"]),
        ):
            asked = ("__complete", "asched", *words)
            status, output, _ = await asyncio.to_thread(ran, program, *asked)
            assert (status, output.split()[:-1]) == (0, found)
    finally:
        await server.stop()


async def test_the_client_checks_an_installation(client: Path, tmp_path: Path) -> None:
    server = ApiServer()
    await server.start()
    try:
        for name in ("namespace", "rbac", "deployment"):
            for manifest in documents(DEPLOY / "base" / f"{name}.yaml"):
                server.create("", manifest)
        metadata = {"name": "asched-config", "namespace": "asched-system"}
        text = (DEPLOY / "base/scheduler.yaml").read_text(encoding="utf-8")
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        server.create("configmaps", {**config_map, "data": {"config.yaml": text}})
        words = ("doctor", a_kubeconfig(tmp_path, server.url), "-o", "wide")
        status, output, errors = await asyncio.to_thread(ran, client, *words)
    finally:
        await server.stop()
    assert (status, errors) == (1, "")  # no replica is ready
    checked = "asched-system/asched is checked, with its flags, its file and its account"
    assert re.search(rf"^ok +installation +{checked}$", output, re.MULTILINE)
    assert re.search(r"^problem +replicas ", output, re.MULTILINE)


def test_the_client_reads_each_configuration_that_asched_ships(client: Path) -> None:
    code = """
import sys
from asched.cli.flags import parse
from asched.cli.run_config import load
for name in sys.argv[1:]:
    load(parse([f"--config={name}"]))
"""
    files = sorted(str(path) for path in (ROOT / "config").glob("*.yaml"))
    assert len(files) > 10
    assert ran(client.with_name("python"), "-c", code, *files) == (0, "", "")


def test_the_client_refuses_plugins_that_need_all_of_asched(client: Path) -> None:
    status, _, errors = ran(client, "doctor", "--plugin=mine.py", "--master=http://127.0.0.1:1")
    assert (status, "--plugin and --plugin-dir need the whole of asched" in errors) == (2, True)


def test_the_client_has_no_module_that_it_does_not_import(client: Path) -> None:
    code = """
import importlib, pathlib, sys
import asched
for name in ("main", "doctor", "drain", "explain", "top", "version", "completion",
             "installed_lease"):
    importlib.import_module("asched.cli." + name)
import asched.core.config.problem
root = pathlib.Path(asched.__file__).parent
there = {path.relative_to(root.parent).as_posix() for path in root.rglob("*.py")}
here = {pathlib.Path(module.__file__).relative_to(root.parent).as_posix()
        for name, module in sys.modules.items() if name.split(".")[0] == "asched"}
print(*sorted(there - here), end="")
"""
    assert ran(client.with_name("python"), "-c", code) == (0, "", "")


def ran(program: Path, *words: str) -> tuple[int, str, str]:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [program, *words],
        cwd=ROOT.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
