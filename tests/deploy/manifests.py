"""The manifests as kubectl renders them, and the folders they come from."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ROOT

#: libyaml's, where it is: the other one takes a tenth of a second for an overlay.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEPLOY = ROOT / "deploy"
OVERLAYS = ("single", "ha", "pools", "kind", "monitoring", "shadow")

JsonObject = dict[str, Any]


def program(name: str, origin: str) -> str:
    """A program beside this Python, in KUBEBUILDER_ASSETS or on the PATH, or a visible skip."""
    folders = [str(Path(sys.executable).parent), os.environ.get("KUBEBUILDER_ASSETS", "")]
    found = shutil.which(name, path=os.pathsep.join(filter(None, folders))) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed ({origin})")
    return found


def kubectl() -> str:
    return program("kubectl", "it renders the manifests")


def helm() -> str:
    return os.environ.get("HELM") or program("helm", "it renders the chart; HELM names its path")


@cache
def _rendered(kubectl_path: str, folder: Path) -> str:
    made = subprocess.run(
        [kubectl_path, "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def rendered(folder: Path) -> list[JsonObject]:
    """The objects of a kustomization; fresh ones each time."""
    return list(yaml.load_all(_rendered(kubectl(), folder), LOADER))


def overlay(name: str) -> list[JsonObject]:
    return rendered(DEPLOY / "overlays" / name)


def chart(release: str, namespace: str, *words: str) -> list[JsonObject]:
    """The objects of the chart deploy/chart as `helm template RELEASE` renders them."""
    made = helm_ran("template", release, str(DEPLOY / "chart"), f"--namespace={namespace}", *words)
    assert made.returncode == 0, made.stderr
    return [one for one in yaml.load_all(made.stdout, LOADER) if one]


def helm_ran(command: str, *words: str) -> subprocess.CompletedProcess[str]:
    version = [] if command == "lint" else ["--kube-version=1.36.0"]
    command_line = [helm(), command, *words, *version]
    return subprocess.run(command_line, capture_output=True, text=True, check=False)


def documents(path: Path) -> list[JsonObject]:
    """The objects of one file, without kubectl."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def one(objects: list[JsonObject], kind: str, name: str = "") -> JsonObject:
    """The only object of a kind, or the one of this name."""
    found = [o for o in objects if o["kind"] == kind and name in ("", o["metadata"]["name"])]
    assert len(found) == 1, [o["metadata"]["name"] for o in found]
    return found[0]


def container(deployment: JsonObject) -> JsonObject:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)
