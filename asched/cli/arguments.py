"""Values of command lines that several commands take, checked where they are read."""

import argparse

PORT_MAX = (1 << 16) - 1


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def port(text: str) -> int:
    """A port to listen on; 0 lets the system choose."""
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to {PORT_MAX}, 0 for a free one")
    return int(text)


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
