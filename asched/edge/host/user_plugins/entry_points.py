"""Whether an installed package offers plugins, found out without reading them all.

importlib.metadata parses what every distribution says of itself, a fiftieth of a second of each
start. Most installations offer nothing, which a look into their files tells.
"""

import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INFO: Final = (".dist-info", ".egg-info")
_FILE: Final = "entry_points.txt"


def offered(group: str) -> "Iterable[EntryPoint]":
    """The entry points of a group in all installed distributions."""
    if not (_has_other_finders() or any(_may_offer(folder, group) for folder in sys.path)):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _has_other_finders() -> bool:
    """Somebody else knows of distributions, wherever they are."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in finders)


def _may_offer(folder: str, group: str) -> bool:
    """Whether a place of `sys.path` holds a distribution with that group, or cannot be listed."""
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208 - names are enough, and there are many
    except (FileNotFoundError, PermissionError):
        return False
    except OSError:  # a zip file, as a rule
        return True
    for name in names:
        if name.endswith(".egg"):
            return True
        if name.endswith(_INFO) and _mentions(Path(folder, name, _FILE), group):
            return True
    return False


def _mentions(file: Path, group: str) -> bool:
    try:
        return group in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
