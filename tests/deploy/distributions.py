"""The distributions as they are built and installed: a wheel, and an environment with one of them.

    wheel = built("asched", folder, "wheel")
    asched = installed(wheel, folder / "environment")      # .../bin/asched
    added(built("asched-lab", folder, "wheel"), folder / "environment")

Such an environment has the packages that the image installs, by links to those of the tests' own,
and nothing else.
"""

import importlib.util
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support import ROOT

#: Distribution -> its folder.
PROJECTS = {
    "asched": ROOT,
    "asched-lab": ROOT / "lab",
    "asched-cli": ROOT / "deploy/client",
}
IMAGE_LOCK = ROOT / "deploy/requirements.lock"


def built(name: str, folder: Path, target: str, tree: Path = ROOT) -> Path:
    """The "wheel" or "sdist" of a distribution; skips where the build backend is missing. `tree`
    is a copy of the sources.
    """
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    before = set(folder.iterdir())
    project = tree / PROJECTS[name].relative_to(ROOT)
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, cwd=project)
    (made,) = set(folder.iterdir()) - before
    return made


def installed(wheel: Path, environment: Path, lock: Path = IMAGE_LOCK) -> Path:
    """The program `asched` of a new environment with this wheel and the packages of `lock`."""
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    added(wheel, environment)
    purelib = sysconfig.get_path("purelib", "venv", {"base": str(environment)})
    link_packages(Path(purelib), lock)
    return environment / "bin/asched"


def added(wheel: Path, environment: Path) -> None:
    """Install one more distribution, without what it depends on."""
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin/python")
    options = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "install", *options, wheel)


def link_packages(site_packages: Path, lock: Path) -> None:
    names = set(re.findall(r"^([\w.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    if sys.version_info < (3, 13):
        names.add("typing-extensions")  # the lock is for a Python that needs none
    for name in names:
        package = distribution(name)
        entries = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        for entry in entries:
            (site_packages / entry).symlink_to(Path(str(package.locate_file(entry))))


def run(*command: object, cwd: Path = ROOT) -> None:
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
