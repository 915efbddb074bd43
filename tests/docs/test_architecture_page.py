"""What the table "The path of one pod" of docs/architecture.md names is where it says."""

import ast
import re
from pathlib import Path

import pytest

from tests.support import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| (\d+\. .+) \| (.+) \|$", TEXT, re.MULTILINE)


def defined_in(path: Path) -> set[str]:
    """Classes, functions, and methods as `Class.method`, of a file or of all files of a folder."""
    names: set[str] = set()
    for file in [path] if path.suffix else path.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            if isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                names |= {f"{node.name}.{method.name}" for method in methods}
    return names


@pytest.mark.parametrize(("step", "files"), STEPS, ids=[step.split(".")[0] for step, _ in STEPS])
def test_a_function_is_in_a_file_of_its_row(step: str, files: str) -> None:
    there = set().union(*(defined_in(ROOT / path) for path in re.findall(r"`(.+?)`", files)))
    named = {name for name in re.findall(r"`(.+?)`", step) if "." in name or name.islower()}
    assert named <= there


def test_the_classes_exist() -> None:
    named = {name for step, _ in STEPS for name in re.findall(r"`([A-Z][A-Za-z]+)`", step)}
    assert len(STEPS) == 12
    assert named <= defined_in(ROOT / "asched")
