"""`asched plugins list|new`: list the known plugins, or create a new plugin.

Exit status: 0 success; 1 an installed plugin cannot be loaded; 2 wrong usage, a plugin of a flag
that cannot be loaded, or an invalid configuration.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from asched.cli.arguments import add_output_flag, add_plugin_flags, fail, written
from asched.cli.plugin_files import PLUGIN, TEST
from asched.core.config.v1 import POINTS
from asched.core.plugins import IN_TREE_POINTS
from asched.host.configuration.file import (
    ConfigError,
    LoadedConfig,
    UnreadableFileError,
    load_config,
)
from asched.host.user_plugins.catalogue import Catalogue, PluginLoadError, discover

HEADINGS: Final = ("NAME", "ORIGIN", "POINTS")
NAME_FORM: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("plugins", help="list plugins, or create a new plugin")
    commands = parser.add_subparsers(dest="plugins_command", required=True, metavar="COMMAND")
    text = "list the plugins a configuration may name: their source and extension points"
    listing = commands.add_parser("list", help=text, description=text)
    listing.add_argument(
        "--config",
        metavar="FILE",
        help="show the profiles that enable each plugin, and the in-tree plugins that they enable",
    )
    add_plugin_flags(listing)
    listing.add_argument("--all", action="store_true", help="include all in-tree plugins")
    add_output_flag(listing, "the rights that each plugin needs")
    listing.set_defaults(run=run_list)
    text = "create a small plugin NAME with a test"
    new = commands.add_parser("new", help=text, description=text)
    new.add_argument("name", metavar="NAME", help="for instance quiet-hours or QuietHours")
    new.add_argument(
        "--dir", type=Path, default=Path(), metavar="DIR", help="directory to write to"
    )
    new.set_defaults(run=run_new)


def run_list(args: argparse.Namespace) -> int:
    try:
        catalogue = discover(args.plugin, args.plugin_dir)
        loaded = load_config(args.config, known=catalogue.known) if args.config else None
    except (PluginLoadError, UnreadableFileError) as error:
        return fail("plugins", error, 2)
    except ConfigError as error:
        return fail("plugins", "\n".join(map(str, error.errors)), 2)
    rows, broken = _rows(catalogue, loaded, with_in_tree=args.all)
    if args.output in ("json", "yaml"):
        sys.stdout.write(written([row.as_object() for row in rows], args.output))
    elif not rows:
        print("no plugins besides the in-tree ones (--all shows them)")
    else:
        _print_table(_table(rows, is_configured=loaded is not None, is_wide=args.output == "wide"))
    return fail("plugins", "\n".join(broken), 1) if broken else 0


class Row(NamedTuple):
    """One plugin. `points` is None if it cannot be loaded; `enabled` maps profiles to points."""

    name: str
    origin: str
    points: list[str] | None
    rights: list[str]
    enabled: dict[str, list[str]]

    def as_object(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "origin": self.origin,
            "loaded": self.points is not None,
            "points": self.points or [],
            "rights": self.rights,
            "enabledIn": self.enabled,
        }


def _rows(
    catalogue: Catalogue, loaded: LoadedConfig | None, *, with_in_tree: bool
) -> tuple[list[Row], list[str]]:
    """(one row per plugin, the errors of plugins that cannot be loaded)."""
    rows: list[Row] = []
    broken: list[str] = []
    for name in IN_TREE_POINTS:
        enabled = _enabled_in(name, loaded)
        if enabled or with_in_tree:
            rows.append(Row(name, "in tree", _ordered(IN_TREE_POINTS[name]), [], enabled))
    for name, plugin in catalogue.plugins.items():
        listed, rights = None, []
        try:
            listed = _ordered(plugin.points)
            rights = [str(right) for right in plugin.rights]
        except PluginLoadError as error:
            broken.append(str(error))
        rows.append(Row(name, plugin.origin, listed, rights, _enabled_in(name, loaded)))
    return rows, broken


def _ordered(points: frozenset[str]) -> list[str]:
    return [point for point in POINTS if point in points]


def _enabled_in(name: str, loaded: LoadedConfig | None) -> dict[str, list[str]]:
    found = {}
    for profile in loaded.profiles if loaded is not None else ():
        at = [p for p in POINTS for entry in profile.at(p) if entry.name == name]
        if at:
            found[profile.scheduler_name] = at
    return found


def _table(rows: Sequence[Row], *, is_configured: bool, is_wide: bool) -> Iterator[tuple[str, ...]]:
    more = ("RIGHTS",) if is_wide else ()
    yield (*HEADINGS, *(("ENABLED IN",) if is_configured else ()), *more)
    for row in rows:
        points = "cannot be loaded" if row.points is None else ",".join(row.points)
        enabled = [f"{profile} ({','.join(at)})" for profile, at in row.enabled.items()]
        rights = ("; ".join(row.rights) or "-",) if is_wide else ()
        profiles = ("; ".join(enabled) or "-",) if is_configured else ()
        yield (row.name, row.origin, points, *profiles, *rights)


def _print_table(table: Iterable[Sequence[str]]) -> None:
    rows = list(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def run_new(args: argparse.Namespace) -> int:
    if not NAME_FORM.fullmatch(args.name):
        message = f"{args.name!r} is not a name: use letters, digits and hyphens"
        return fail("plugins", message, 2)
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+", args.name)
    module = "_".join(word.lower() for word in words)
    cls = "".join(word[:1].upper() + word[1:] for word in words)
    if cls in IN_TREE_POINTS:
        return fail("plugins", f"{cls} is an in-tree plugin; choose another name", 2)
    files = {
        args.dir / f"{module}.py": PLUGIN,
        args.dir / f"test_{module}.py": TEST,
    }
    present = [str(path) for path in files if path.exists()]
    if present:
        message = f"{', '.join(present)} exists already; remove it or choose another name"
        return fail("plugins", message, 2)
    values = {"MODULE": module, "CLASS": cls}
    try:
        args.dir.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            text = re.sub(r"@(\w+)@", lambda found: values[found[1]], template)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        return fail("plugins", f"cannot write to {args.dir}: {error.strerror}", 2)
    print(f"wrote {' and '.join(map(str, files))}; try")
    print(f"  pytest {args.dir / f'test_{module}.py'}")
    print(f"  asched demo --plugin {args.dir / f'{module}.py'}")
    return 0
