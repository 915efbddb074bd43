"""The plugin of docs/in-tree-plugins.md passes what every plugin of the tree has to pass, and the
page names real files.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asched.testing import given, node, pod
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.support import ROOT

TEXT = (ROOT / "docs" / "in-tree-plugins.md").read_text(encoding="utf-8")
PLUGIN, TWIN, EXTENSION = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
#: Steps 1, 2 and 4 of the page, in a folder beside the tree: what pytest loads first.
STEPS = """
from pathlib import Path

from asched.core import plugins
from tests.conformance import twins

plugins.__path__.append(str(Path(__file__).parent / "plugins"))
twins.__path__.append(str(Path(__file__).parent / "twins"))
plugins.PLUGINS["TeamNodes"] = "team_nodes"
plugins.IN_TREE.update(plugins.in_tree({}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("plugins", PLUGIN), ("twins", TWIN)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "team_nodes.py").write_text(text, encoding="utf-8")
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    return tmp_path


def passes(*command: str, folder: Path) -> str:
    """The output of `python -m ...` in the tree; the output is the message if it fails."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "lab"), str(folder)))
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (PLUGIN, "asched/core/plugins/team_nodes.py"),
        (TWIN, "tests/conformance/twins/team_nodes.py"),
    ],
)
@pytest.mark.parametrize("check", [("check",), ("format", "--check")])
def test_the_linter_accepts_it(text: str, path: str, check: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "ruff", *check, "--stdin-filename", path, "-"]
    done = subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_types_are_right(folder: Path) -> None:
    passes("mypy", str(folder / "plugins" / "team_nodes.py"), folder=folder)


def test_the_contract_accepts_it(folder: Path) -> None:
    said = contract(folder)
    assert int(re.findall(r"(\d+) passed", said)[0]) > 60


def test_a_plugin_without_a_twin_is_an_error(folder: Path) -> None:
    (folder / "twins" / "team_nodes.py").unlink()
    with pytest.raises(AssertionError, match=r"TeamNodes.* tests/conformance/twins/team_nodes\.py"):
        contract(folder, "test_twins.py")


def contract(folder: Path, file: str = "") -> str:
    chosen = ("-q", "-p", "steps", "-k", "TeamNodes", f"tests/conformance/contract/{file}")
    return passes("pytest", *chosen, folder=folder)


def test_it_keeps_pods_off_nodes_of_other_teams() -> None:
    namespace: dict[str, Any] = {"__name__": "in_tree_page"}
    exec(PLUGIN, namespace)
    theirs = node("theirs", labels={"team": "blue"})
    world = given([node("free"), theirs], plugins=[namespace["TeamNodes"]])
    assert world.schedule(pod("web", labels={"team": "blue"})).node == "theirs"
    assert world.schedule(pod("green", labels={"team": "green"})).node == "free"
    world.remove(node("free"))
    lost = world.schedule(pod("lost", labels={"team": "green"}))
    assert lost.message.startswith("0/1 nodes are available: 1 node(s) belong to another team.")
    world.add(node("late", labels={"team": "green"}))
    world.wait(15)
    assert world.outcome("lost").node == "late"


def test_the_files_it_names_exist() -> None:
    made = "team_nodes"
    named = set(re.findall(r"`((?:asched|tests)/[\w/]+(?:\.py)?)`", TEXT))
    assert len(named) > 5
    assert [name for name in named if made not in name and not (ROOT / name).exists()] == []


def test_the_extension_of_the_page_adds_to_the_condition() -> None:
    namespace: dict[str, Any] = {"__name__": "in_tree_page"}
    exec(EXTENSION, namespace)
    play = Play(a_node("n").allocatable(cpu="1"), extensions=(namespace["LongWaits"],))

    play.see(a_pod("large").requests(cpu="2"))

    assert play.condition()["message"].endswith("; it waits for 0 s")
