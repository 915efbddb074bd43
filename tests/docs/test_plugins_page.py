"""The examples of docs/plugins.md work as they are written, from the top to the bottom."""

import sys
from types import ModuleType
from typing import Any

import pytest

from asched.core.cycle.observer import Observer
from asched.host.configuration.file import load_config
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.testing import World
from tests.docs.pages import PAGE, blocks


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the Python blocks define, all of them run."""
    module = ModuleType("plugins_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, text in blocks("python"):
        exec(compile("\n" * line + text, str(PAGE), "exec"), vars(module))
    return vars(module)


def test_every_python_block_runs_and_its_assertions_hold(namespace: dict[str, Any]) -> None:
    assert {"SpareCores", "OpenNodes", "Careless", "SpareCoresFast"} <= namespace.keys()
    source = "".join(text for _, text in blocks("python"))
    assert source.count("assert ") >= 7


def test_the_configuration_can_be_used(namespace: dict[str, Any]) -> None:
    ((_, text),) = blocks("yaml")
    catalogue = Catalogue([of_class(namespace["SpareCores"], "the page")])
    loaded = load_config(text=text, known=catalogue.known)
    scorers = {entry.name: entry.weight for entry in loaded.profiles[0].at("score")}
    assert scorers["SpareCores"] == 3
    args = loaded.configuration.profiles[0].plugin_config["SpareCores"]
    from asched.core.cluster.cluster import Cluster

    made: Any = catalogue.factories["SpareCores"](args, Cluster())
    assert made.user.args.free_cores == 1.5


def test_the_table_names_every_method() -> None:
    from asched.core.framework.per_node.adapter import METHODS

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}(" not in text] == []


def test_the_page_names_every_method_of_a_test_world() -> None:
    methods = [name for name, value in vars(World).items() if callable(value) and name[0] != "_"]
    reports = vars(Observer).keys() | {"plugin_raised", "start"}
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in methods if name not in reports and f"`{name}(" not in text] == []
