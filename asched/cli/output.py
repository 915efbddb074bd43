"""Output forms of all commands: `-o text|wide|json|yaml`."""

import argparse
import json
from typing import Any, Final

import yaml

#: For people, for people with wide terminals, and for programs.
OUTPUTS: Final = ("text", "wide", "json", "yaml")


def add_output_flag(parser: argparse.ArgumentParser, wide: str = "") -> None:
    """`wide` says what that form adds."""
    more = f"; wide: {wide}" if wide else ""
    parser.add_argument(
        "-o", "--output", choices=OUTPUTS, default="text", help=f"default %(default)s{more}"
    )


def plain(text: str) -> str:
    """Text with control characters replaced: names and messages come from the cluster, and a
    terminal would execute them.
    """
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def written(value: Any, output: str) -> str:
    """A value as JSON or YAML, with a final newline."""
    if output == "json":
        return json.dumps(value, indent=2) + "\n"
    return str(yaml.safe_dump(value, sort_keys=False))
