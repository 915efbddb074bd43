"""Imports, those for type checking included, form no circle in core, and only pairs elsewhere."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES_MAX = 2


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports() -> dict[str, set[str]]:
    paths = {module_of(path): path for path in (ROOT / "asched").rglob("*.py")}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        targets = found[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    targets.add(inner if inner in paths else node.module)
            elif isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
        targets &= paths.keys() - {name}
    return found


def test_no_circle_of_imports_is_in_core_or_large() -> None:
    graph, found = imports(), []
    while True:
        try:
            TopologicalSorter(graph).prepare()
            break
        except CycleError as error:
            circle = error.args[1]
            is_in_core = any(name.startswith("asched.core.") for name in circle)
            if is_in_core or len(set(circle)) > FILES_MAX:
                found.append(" -> ".join(circle))
            graph[circle[1]].discard(circle[0])
    assert found == []
