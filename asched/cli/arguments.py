"""Values of command lines that several commands take, checked where they are read."""

import argparse
from collections.abc import Callable

PORT_MAX = (1 << 16) - 1
#: Ten times what Kubernetes is made for, and as many pods as such a cluster has.
NODES_MAX, PODS_MAX = 50_000, 1_500_000
_SEED_MAX = (1 << 63) - 1
#: More of a wrong value is not shown.
_SHOWN = 40


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number between these."""

    def number(text: str) -> int:
        found = _number(text)
        if found is None or not least <= found <= most:
            message = f"{_shown(text)} is no whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(message)
        return found

    return number


node_count, pod_count = whole(1, NODES_MAX), whole(1, PODS_MAX)
seed_number = whole(0, _SEED_MAX)


def port(text: str) -> int:
    """A port to listen on; 0 lets the system choose."""
    found = _number(text)
    if found is None or found > PORT_MAX:
        message = f"{_shown(text)} is no port: 0 to {PORT_MAX}, 0 for a free one"
        raise argparse.ArgumentTypeError(message)
    return found


def _number(text: str) -> int | None:
    """None for what is none, and for one with so many digits that nothing takes it."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_SEED_MAX))
    return int(text) if is_number else None


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def add_plugin_flags(parser: argparse.ArgumentParser) -> None:
    """The two flags by which a plugin outside this tree is found, as `asched run` has them."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="WHICH",
        help="module:Class or file.py of a plugin, repeatable",
    )
    parser.add_argument("--plugin-dir", default="", metavar="DIR", help="folder of plugin files")
