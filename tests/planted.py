"""Plant small mistakes, and say which of them the tests do not notice.

    python -m tests.planted asched/core/queue/due.py                   its own test, or its room's
    python -m tests.planted asched/core/queue/due.py tests/unit/core/queue  these tests
    python -m tests.planted asched/core/queue --most 40                a room, 40 of each file

Mistakes are turned comparisons, forgotten conditions, guards and statements, other numbers and
signs, arguments taken for one another, min for max, break for continue. Each is planted in a
process of its own, a fork of one that has collected the tests, by handing functions that exist
other code; so a mistake costs the tests that run its line, the quickest first, and nothing else.
What runs at import is not changed. Some mistakes change nothing that anybody could see; that
judgement is yours. Exit status 1 if one went unnoticed.
"""

import argparse
import ast
import copy
import gc
import importlib
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol

OPERATORS: Final[dict[type, type]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult,
}  # fmt: skip
NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
STATEMENTS: Final = (ast.AugAssign, ast.Break, ast.Continue, ast.Delete)
CONDITIONS: Final = (ast.Name, ast.Attribute, ast.Call)
ARGUMENTS: Final = (*CONDITIONS, ast.Subscript)
DEEDS: Final = (ast.Call, ast.YieldFrom, ast.Yield, ast.Await)
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
#: No mistake in what only checkers and people read.
UNREAD: Final = {"annotation", "returns", "decorator_list"}
#: A mistake with which tests take so many times as long, and this much more, hangs: it is noticed.
PATIENCE, MORE_S = 5, 3
#: So many tests that run a line, the quickest, have to do.
TESTS_MAX = 400


class Mistake(NamedTuple):
    lines: range
    said: str
    code: CodeType


def others(node: Any) -> Iterator[Any]:
    """What somebody might have written instead."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield changed(node, ops=[OPERATORS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        yield changed(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            yield rest[0] if len(rest) == 1 else changed(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
        is_flag = isinstance(node.value, bool)
        yield changed(node, value=not node.value if is_flag else node.value + 1)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield changed(node, id=NAMES[node.id])
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and isinstance(node.test, CONDITIONS):
        yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    is_done = isinstance(node, ast.Expr) and isinstance(node.value, DEEDS)
    is_kept = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name)
    is_guard = isinstance(node, ast.If) and not node.orelse
    if is_done or is_kept or is_guard or isinstance(node, STATEMENTS):
        yield ast.Pass()
    if isinstance(node, (ast.Break, ast.Continue)):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    if isinstance(node, ast.Call):
        yield from swapped(node)


def swapped(call: ast.Call) -> Iterator[ast.Call]:
    """With two arguments beside each other that were taken for one another."""
    for at, two in enumerate(pairwise(call.args)):
        if all(isinstance(argument, ARGUMENTS) for argument in two):
            yield changed(call, args=[*call.args[:at], *reversed(two), *call.args[at + 2 :]])


def changed(node: Any, **fields: Any) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def mistakes(path: Path) -> Iterator[Mistake]:
    """One change each, inside a function."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
    inner = {n for f in functions for n in ast.walk(f) if n is not f}
    for parent in [n for f in functions if f not in inner for n in read_of(f)]:
        for field, value in list(ast.iter_fields(parent)):
            listed = value if isinstance(value, list) else [value]
            for at, child in enumerate(listed if field not in UNREAD else ()):
                for other in others(child):
                    ast.copy_location(other, child)
                    now = [*listed[:at], other, *listed[at + 1 :]]
                    setattr(parent, field, now if isinstance(value, list) else other)
                    ast.fix_missing_locations(tree)
                    first = getattr(child, "test", child)
                    lines = range(first.lineno, (first.end_lineno or first.lineno) + 1)
                    said = " -> ".join(ast.unparse(n).split("\n")[0] for n in (child, other))
                    yield Mistake(lines, said, compile(tree, str(path.resolve()), "exec"))
                    setattr(parent, field, value)


def read_of(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those below it that make a difference to what is done."""
    if not isinstance(node, (ast.Assert, ast.Raise)):
        yield node
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and field not in UNREAD:
                    yield from read_of(child)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def plant(mistake: Mistake, functions: list[FunctionType]) -> None:
    made = {(c.co_qualname, c.co_firstlineno): c for c in codes(mistake.code)}
    for function in functions:
        function.__code__ = made[function.__code__.co_qualname, function.__code__.co_firstlineno]


def apart(work: Any, limit_s: float) -> Any:
    """What `work` returns in a process of its own; None if it takes longer."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            with os.fdopen(write, "w") as told:
                json.dump(work(), told)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def passes(item: Any) -> bool:
    item._initrequest()
    return all(r.passed or r.skipped for r in runtestprotocol(item, log=False, nextitem=None))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Planting:
    """Instead of running the tests, once all are collected. `most` of each file's mistakes."""

    def __init__(self, paths: list[Path], most: int) -> None:
        self.paths = {str(path.resolve()): path for path in paths}
        self.most = most
        self.unnoticed = 0

    def pytest_runtestloop(self, session: Any) -> bool:
        functions: dict[str, list[FunctionType]] = {name: [] for name in self.paths}
        for path in self.paths.values():
            if not path.stem.startswith("__"):  # what a test imports late could not be changed
                importlib.import_module(".".join(path.with_suffix("").parts))
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in functions:
                functions[found.__code__.co_filename].append(found)
        told = apart(lambda: self.looked(session.items), 3600.0)
        for name, path in self.paths.items():
            runs = sorted((s, at, set(by[name])) for at, (s, by) in enumerate(told) if name in by)
            tests = [(s, session.items[at], lines) for s, at, lines in runs]
            self.plant_in(path, functions[name], tests)
        return True

    def plant_in(self, path: Path, functions: list[FunctionType], tests: Any) -> None:
        started_s, unnoticed = time.monotonic(), 0
        chosen = list(mistakes(path))
        if len(chosen) > self.most:
            chosen = random.Random(1).sample(chosen, self.most)
        for mistake in sorted(chosen, key=lambda one: one.lines.start):
            by = [(s, test) for s, test, lines in tests if lines.intersection(mistake.lines)]
            by = by[:TESTS_MAX]

            def passing(mistake: Mistake = mistake, by: Any = by) -> bool:
                plant(mistake, functions)
                return all(passes(test) for _, test in by)

            if not by or apart(passing, PATIENCE * sum(s for s, _ in by) + MORE_S):
                unnoticed += 1
                never = "" if by else "(never run) "
                say(f"{path}:{mistake.lines.start}: {never}{mistake.said}")
        took_s = time.monotonic() - started_s
        say(f"{path}: {len(chosen)} mistakes, {unnoticed} unnoticed, {took_s:.0f} s")
        self.unnoticed += unnoticed

    def looked(self, items: list[Any]) -> list[tuple[float, dict[str, list[int]]]]:
        """By test: how long it took, and which lines of each file it ran."""
        told = []
        include = list(self.paths)
        for item in items:
            seen = coverage.Coverage(data_file=None, include=include, config_file=False)
            started_s = time.monotonic()
            seen.start()
            is_fine = passes(item)
            seen.stop()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that nothing was run
                data = seen.get_data()
            took_s = time.monotonic() - started_s
            lines = {name: sorted(data.lines(name) or ()) for name in self.paths if is_fine}
            told.append((took_s, {name: some for name, some in lines.items() if some}))
        return told


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted")
    parser.add_argument("file", type=Path, help="or a room")
    parser.add_argument("tests", nargs="*", help="the file's own, or its room's, if none is named")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="of the mistakes of a file")
    options = parser.parse_args()
    own = Path("tests") / options.file.relative_to("asched")
    own = own.with_name(f"test_{own.name}") if own.suffix else own
    paths = sorted(options.file.rglob("*.py")) if options.file.is_dir() else [options.file]
    planting = Planting(paths, options.most)
    pytest.main(
        ["-p", "no:terminal", *(options.tests or [str(own if own.exists() else own.parent)])],
        plugins=[planting],
    )
    return 1 if planting.unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
