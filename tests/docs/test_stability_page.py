"""The page about stability names every name of `asched.plugin` once; examples use promised ones."""

import ast
import re

from asched import plugin
from tests.support import ROOT

PAGE = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
_, NAMES = PAGE.split("\n## Names of asched.plugin\n")
PROMISED, OTHERS = (
    re.findall(r"`(\w+)`", part) for part in NAMES.split("Not promised", maxsplit=1)
)


def test_every_name_is_promised_or_not() -> None:
    assert sorted(PROMISED + OTHERS) == sorted(plugin.__all__)


def test_plugins_of_the_examples_need_promised_names_only() -> None:
    used = {
        alias.name
        for path in (ROOT / "examples").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "asched.plugin"
        for alias in node.names
    }
    assert used
    assert used <= set(PROMISED)
