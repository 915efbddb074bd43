"""Every line of docs/security.md that claims something names a test, and there is such a test."""

import ast
import re

from tests.support import ROOT

TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
CLAIMS = [
    line
    for line in TEXT.splitlines()
    if line.startswith("| ") and line.count("|") == 4 and not line.startswith("| tries |")
]


def test_every_line_names_its_test_or_says_what_is_not_prevented() -> None:
    assert len(CLAIMS) > 30
    bare = [line for line in CLAIMS if "::test_" not in line and "not prevented" not in line]
    assert bare == []


def test_the_tests_it_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)
    assert len(named) > 40
    missing = [f"{path}::{name}" for path, name in named if name not in _tests_of(path)]
    assert missing == []


def _tests_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
