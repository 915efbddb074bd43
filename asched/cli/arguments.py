"""What several commands share: types of arguments, output forms (`-o text|wide|json|yaml`), and
messages.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, Final

import yaml

PORT_MAX = (1 << 16) - 1
#: Ten times the size that Kubernetes supports, and the pods of such a cluster.
NODES_MAX, PODS_MAX = 50_000, 1_500_000
_SEED_MAX = (1 << 63) - 1
#: Longer wrong values are cut in messages.
_SHOWN = 40


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within these limits."""

    def number(text: str) -> int:
        # A number longer than any limit is not read.
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_SEED_MAX))
        if not is_number or not least <= int(text) <= most:
            shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
            message = f"{shown} is not a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return number


node_count, pod_count = whole(1, NODES_MAX), whole(1, PODS_MAX)
seed_number = whole(0, _SEED_MAX)
#: A port to listen on; 0 lets the system choose.
port = whole(0, PORT_MAX)


def add_plugin_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--plugin` and `--plugin-dir`, as `asched run` has them."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="WHICH",
        help="module:Class or file.py of a plugin, repeatable",
    )
    parser.add_argument("--plugin-dir", default="", metavar="DIR", help="directory of plugin files")


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


def counted(number: int, noun: str) -> str:
    """For instance "1 node", "2 nodes"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def fail(command: str, error: object, status: int) -> int:
    """Report the lines of an error on standard error; returns the exit status."""
    for line in str(error).splitlines():
        sys.stderr.write(f"asched {command}: {line}\n")
    return status
