"""The house checks itself: lengths, names, unfinished ends, banned calls, plugin headers.

What import-linter, ruff and mypy can say is theirs; this is the rest.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

from asched import names
from asched.core.plugins import IN_TREE

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "asched").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
ALL = [*SOURCES, *TESTS]
LAB = sorted((ROOT / "lab").rglob("*.py"))
TEST_FILES = {path.stem for path in TESTS if path.stem.startswith("test_")}

FILE_LINES_MAX = 800

NO_NOUNS = {"utils", "helpers", "common", "misc", "util", "helper"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_file_is_one_topic() -> None:
    sizes = {path: len(text_of(path).splitlines()) for path in ALL}
    found = [f"{relative(p)}: {n} lines" for p, n in sizes.items() if n > FILE_LINES_MAX]
    assert not found


#: What plugin authors derive from has the name of the extension point's class.
NAMED_TWICE = {"FilterPlugin", "ScorePlugin"}


def test_a_class_name_means_one_class() -> None:
    files = defaultdict(list)
    for path in SOURCES:
        for name in re.findall(r"^ *class (\w+)[(:\[]", text_of(path), re.MULTILINE):
            files[name].append(relative(path))
    doubled = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert doubled.keys() == NAMED_TWICE, doubled


def test_a_file_says_what_it_is_for() -> None:
    found = [
        relative(path)
        for path in SOURCES
        if (text := text_of(path).strip()) and not text.startswith(('"""', 'r"""'))
    ]
    assert not found


def test_a_file_is_named_after_a_noun() -> None:
    assert not [relative(path) for path in ALL if path.stem in NO_NOUNS]


def test_no_module_imports_a_test_file() -> None:
    """What several tests share is in builder modules, so that a test file may be deleted."""
    imports = re.compile(r"^ *(?:from|import) [^(\n]*(?:\([^)]*\))?", re.MULTILINE)
    found = [
        f"{relative(path)}: {name}"
        for path in [*ALL, *LAB]
        for statement in imports.findall(text_of(path))
        for name in re.findall(r"\btest_\w+", statement)
        if name in TEST_FILES
    ]
    assert not found


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in ALL
        if path != Path(__file__).resolve()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not found


def test_only_the_spawner_spawns() -> None:
    """A task nobody keeps is a task nobody misses; task groups keep theirs."""
    spawner = ROOT / "asched/kube/tasks.py"
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in SOURCES
        if path != spawner
        and relative(path).startswith(
            ("asched/kube/", "asched/host/", "asched/serve/", "asched/ops/")
        )
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "create_task"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("asyncio", "loop")
    ]
    assert not found


def test_a_broad_except_gives_its_reason() -> None:
    """The linter finds broad excepts; whoever silences it says why on the same line."""
    bare = re.compile(r"noqa: [A-Z0-9, ]*BLE001(?! - )")
    found = [
        f"{relative(path)}:{number}"
        for path in SOURCES
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if bare.search(line)
    ]
    assert not found


def test_what_runs_plugins_names_none_of_them() -> None:
    """Whatever is particular to one stands in its own file, as an attribute that others may set."""
    in_tree = {
        name for name, value in vars(names).items() if isinstance(value, str) and value in IN_TREE
    }
    found = [
        f"{relative(path)}: names.{node.attr}"
        for room in ("cycle", "framework", "queue", "preemption")
        for path in sorted((ROOT / "asched/core" / room).rglob("*.py"))
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "names"
        and node.attr in in_tree
    ]
    assert not found
