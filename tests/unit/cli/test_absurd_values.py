"""Values that nobody means: each is refused in one short line, or means something small."""

import argparse
import importlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

from asched.cli import commands, go_values

ABSURD = (
    *("-1", "-0", "+1", "1_000", "1e9", "1.5", "0x10", "٣", "²", "", " ", "\n", "\x00", "NaN"),
    *("nan", "inf", "-inf", "Infinity", "1e999", "1e-999", "1e999999999", "9" * 20, "-" + "9" * 20),
    *("9" * 5_000, "0" * 5_000 + "1", "0x" + "f" * 5_000, "1" * 5_000 + "h", "1h" * 5_000),
    *("." * 1_000, "1Ei" * 100, "9" * 400 + "Ei", "1e" + "9" * 5_000, "\ud800"),
)
#: What a number given on a command line may make a command do at most.
MOST = 1 << 63


def options(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Any]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from options(child, (*path, name))
        elif callable(action.type):
            yield pytest.param(parser, action, id=" ".join((*path, action.dest)))


def everything() -> argparse.ArgumentParser:
    parser = commands.base_parser()
    subparsers = parser.add_subparsers()
    for name in commands.COMMANDS:
        module = importlib.import_module(f"asched.cli.{name}")
        if hasattr(module, "add_parser"):  # else it has flags of its own, as below
            module.add_parser(subparsers)
    return parser


@pytest.mark.parametrize(("parser", "action"), list(options(everything())))
def test_a_value_of_a_command_is_small_or_refused(
    parser: argparse.ArgumentParser, action: argparse.Action
) -> None:
    for text in ABSURD:
        try:
            found = parser._get_value(action, text)
        except argparse.ArgumentError as error:
            said = str(error)
            assert len(said) < 500, f"{text[:20]!r}: {said[:100]}"
            assert said.isprintable(), f"{text[:20]!r}: {said!r}"
            assert "invalid _" not in said, "a name of Python's"
            continue
        if isinstance(found, int | float):
            assert 0 <= found < MOST, f"{text[:20]!r} is {found}"


@pytest.mark.parametrize("kind", go_values.READERS)
def test_a_value_of_a_flag_is_read_or_refused_in_our_words(kind: str) -> None:
    for text in ABSURD:
        try:
            found = go_values.READERS[kind](text)
        except ValueError as error:
            said = str(error)
            assert "digits" not in said, f"{text[:20]!r}: Python's words: {said[:100]}"
            assert said.replace("\n", "").isprintable() or not text.isprintable()
            continue
        if isinstance(found, float):
            assert math.isfinite(found)
        if isinstance(found, int):
            assert -MOST <= found < MOST, f"{text[:20]!r} is {found}"
