"""How commands print objects: `-o text|wide|json|yaml`, the same everywhere."""

import argparse
import json
from typing import Any, Final

import yaml

#: For people, for people with room, and twice for programs.
OUTPUTS: Final = ("text", "wide", "json", "yaml")


def add_output_flag(parser: argparse.ArgumentParser, wide: str = "") -> None:
    """`wide` says what that form has more."""
    more = f"; wide: {wide}" if wide else ""
    parser.add_argument(
        "-o", "--output", choices=OUTPUTS, default="text", help=f"default %(default)s{more}"
    )


def plain(text: str) -> str:
    """Words of others (names, messages, device attributes) without what a terminal would obey."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)


def written(told: Any, output: str) -> str:
    """What is told, as JSON or YAML, with the line's end."""
    if output == "json":
        return json.dumps(told, indent=2) + "\n"
    return str(yaml.safe_dump(told, sort_keys=False))
