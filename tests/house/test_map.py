"""Tests as a map: whoever changes a file of the core finds its test beside its name.

asched/core/ROOM/x.py has tests/core/ROOM/test_x.py if it decides anything: if some function in it
looks at a condition or goes round. Records, protocols and tables of names have nothing to test.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE, TESTS = ROOT / "asched/core", ROOT / "tests/core"
DECIDES = (
    *(ast.If, ast.IfExp, ast.Match, ast.For, ast.While, ast.comprehension, ast.Try),
    *(ast.BoolOp, ast.Compare),
)

#: Those that have none yet. This list only ever gets shorter.
LACKING: set[str] = set()


def test_each_file_that_decides_has_its_test_beside_its_name() -> None:
    lacking = {
        path.relative_to(CORE).as_posix()
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "__init__.py" and decides(path.read_text()) and not its_test(path).exists()
    }
    assert lacking - LACKING == set(), "write its test, or move the one that is elsewhere"
    assert LACKING - lacking == set(), "it has its test now, or is no more: off the list"


def its_test(path: Path) -> Path:
    return (TESTS / path.relative_to(CORE)).with_name(f"test_{path.name}")


def decides(source: str) -> bool:
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    return any(isinstance(node, DECIDES) for function in functions for node in ast.walk(function))


def test_what_decides_is_told_by_its_functions() -> None:
    assert decides("def f(x):\n    return 1 if x else 2")
    assert decides("class A:\n    def f(self):\n        return [x for x in self.y]")
    assert not decides("def f(x):\n    return x + 1")
    assert not decides("A = [x for x in (1, 2) if x > 1]\n\nclass B:\n    c: int = 5")
