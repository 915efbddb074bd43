"""The plugin of docs/in-tree-plugins.md works as it is written, and the page names real files."""

import re
import sys
from types import ModuleType
from typing import Any

import pytest

from asched.core import plugins
from asched.core.cluster.cluster import Cluster
from asched.core.framework.profile import points_of
from asched.testing import given, node, pod
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.support import ROOT

TEXT = (ROOT / "docs" / "in-tree-plugins.md").read_text(encoding="utf-8")

SOURCES = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def the_plugin() -> type[Any]:
    namespace: dict[str, Any] = {"__name__": "in_tree_page"}
    exec(SOURCES[0], namespace)
    plugin: type[Any] = namespace["TeamNodes"]
    return plugin


def test_the_plugin_of_the_page_keeps_pods_on_nodes_of_their_team() -> None:
    nodes = [node("ours", labels={"team": "red"}), node("theirs", labels={"team": "blue"})]
    world = given([*nodes, node("free")], plugins=[the_plugin()])
    assert world.schedule(pod("web", labels={"team": "blue"})).node == "theirs"
    lost = world.schedule(pod("lost", labels={"team": "green"}))
    assert lost.message.startswith("0/3 nodes are available: 3 node(s) belong to another team.")
    world.add(node("late", labels={"team": "green"}))
    world.wait(15)
    assert world.outcome("lost").node == "late"


def test_the_files_it_names_exist() -> None:
    made = "team_nodes"
    named = set(re.findall(r"`((?:asched|tests)/[\w/]+(?:\.py)?)`", TEXT))
    assert len(named) > 5
    assert [name for name in named if made not in name and not (ROOT / name).exists()] == []


def test_one_line_in_the_table_makes_it_one_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = the_plugin()
    monkeypatch.setitem(plugins.PLUGINS, plugin.name, "team_nodes")
    # Other tests have user plugins of this name: it is not to be remembered as one of the tree.
    monkeypatch.setattr(plugins, "class_of", plugins.class_of.__wrapped__)
    module = ModuleType("asched.core.plugins.team_nodes")
    vars(module)[plugin.name] = plugin
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = plugins.in_tree({})[plugin.name](None, Cluster())
    assert isinstance(made, plugin)
    assert points_of(plugin) == {"filter"}


def test_the_extension_of_the_page_adds_to_the_condition() -> None:
    namespace: dict[str, Any] = {"__name__": "in_tree_page"}
    exec(SOURCES[1], namespace)
    play = Play(a_node("n").allocatable(cpu="1"), extensions=(namespace["LongWaits"],))

    play.see(a_pod("large").requests(cpu="2"))

    assert play.condition()["message"].endswith("; it waits for 0 s")
