"""What installed packages offer under an entry point, read without importing anybody's code.

importlib.metadata parses what every distribution says of itself, a tenth of the CPU of a start. The
files it would read are looked at here, one per distribution; where somebody keeps distributions in
another way (zip files, eggs, finders of their own) it is asked after all.

Source  packaging.python.org, "Entry points specification"
"""

import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

_INFO: Final = re.compile(r"(?P<name>[^-]+)(?:-.*)?\.(?:dist|egg)-info")
_POINTS: Final = "entry_points.txt"
#: Where a distribution says what it is called, by kind.
_HEADS: Final = ("METADATA", "PKG-INFO")


class Offer(NamedTuple):
    """One entry point; `value` is `module:attribute`, `origin` who offers it, with the version."""

    group: str
    name: str
    value: str
    origin: str

    def load(self) -> Any:
        """Import it."""
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.value, self.group).load()


def offered(group: str) -> list[Offer]:
    """Everything offered in a group; of distributions of one name the first on the path counts."""
    found: dict[str, list[Offer]] = {}
    for folder in sys.path:
        if str(folder).lower().endswith(".egg"):
            return _all_there_are(group)
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - there are many, names are enough
        except (FileNotFoundError, PermissionError):
            continue
        except OSError:  # a zip file, as a rule
            return _all_there_are(group)
        for info in names:
            known = _INFO.fullmatch(info)
            if known is not None:
                name = re.sub(r"[-_.]+", "-", known["name"]).lower()
                if name not in found:
                    found[name] = list(_offers(Path(folder, info), group))
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in finders):
        return _all_there_are(group)
    return [offer for offers in found.values() for offer in offers]


def _offers(info: Path, group: str) -> Iterator[Offer]:
    text = _text(info / _POINTS)
    if f"[{group}]" not in text:
        return
    origin = _origin(info)
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Offer(group, name.strip(), value.strip(), origin)


def _origin(info: Path) -> str:
    """Name and version, as the distribution spells them."""
    heads = (_text(info / file) for file in _HEADS)
    head = next(filter(None, heads), "").split("\n\n", 1)[0]
    fields = dict(re.findall(r"^(Name|Version): *(.*?)\s*$", head, re.MULTILINE))
    return f"{fields.get('Name', info.stem)} {fields.get('Version', '')}".strip()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _all_there_are(group: str) -> list[Offer]:
    from importlib.metadata import entry_points

    return [
        Offer(
            group,
            point.name,
            point.value,
            f"{point.dist.name} {point.dist.version}" if point.dist is not None else "somebody",
        )
        for point in entry_points(group=group)
    ]
