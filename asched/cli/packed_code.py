"""The code of all modules that a start imports, in one file: `python -m asched.cli.packed_code`.

A module costs a search, five looks at the file system and a file read, before anything of it runs:
for seven hundred of them, a third of what they cost in all; several times as much where the code of
Python's own modules is not kept, as in the official images. `write` puts their code into one file
beside the package, which is mapped into memory; `use` has imports look there first.

Regular expressions that are compiled on the way are kept in it, too.

A module is taken from it as long as its source is what it was (modification time and size), and
everything as long as interpreter and search path are. What changed is imported as always.

Written in modules that the interpreter has at hand frozen: each other one would be searched for.
"""

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # as type checkers read it; typing is none of those modules
if TYPE_CHECKING:
    from collections.abc import Container
    from types import CodeType

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__pycache__")  # noqa: PTH118, PTH120
PATH = os.path.join(FOLDER, f"start.{sys.implementation.cache_tag}.packed")  # noqa: PTH118
#: What a start of the scheduler imports, from its first module to the pages it serves.
STARTS = ("asched.cli.commands", "asched.cli.run", "uvloop", "asched.edge.host.serving")
#: Who asks for this module is told the code of all that it needs at once, which takes a fifth less
#: than piece by piece: names that hundreds of modules share are made once.
TOGETHER = "asched.cli.run"
#: Prints what that is, for a configuration that says nothing.
LISTING = f"""
import sys
from asched.cli import late
late.use()
import asched.cli.commands
before = set(sys.modules)
import {TOGETHER}, uvloop
from asched.edge.host.configuration.file import load_config
load_config(text="apiVersion: kubescheduler.config.k8s.io/v1\\nkind: KubeSchedulerConfiguration")
for name, module in sys.modules.items():
    if name not in before and type(module) is not late.LateModule:
        print(name)
"""
#: Bytes of the number before the index: how long that is.
HEAD = 8

#: Source, whether a package, (s, bytes) of the source, where the code is, and how long.
Entry = tuple[str, bool, tuple[int, int], int, int]
#: (start, bytes)
Part = tuple[int, int]
#: What `_sre.compile` wants: text, flags, code, groups, their names, and these by number.
Pattern = tuple[object, ...]


def key() -> list[object]:
    """What the code in the file depends on, beside its sources."""
    return [sys.version, sys.flags.optimize, sys.path[1:]]


def stamp(source: str) -> tuple[int, int] | None:
    """(s, bytes) of a source, None if it is not there. Layers of images know no less than a second,
    and neither do Python's own files of code.
    """
    try:
        told = os.stat(source)  # noqa: PTH116
    except OSError:
        return None
    return int(told.st_mtime), told.st_size


class Packed(SourceFileLoader):
    """A source file of which the code is at hand."""

    def __init__(self, name: str, path: str, code: "memoryview | CodeType") -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> object:  # type: ignore[override]  # noqa: ARG002
        if isinstance(self._code, memoryview):
            return marshal.loads(self._code)  # noqa: S302 - as trusted as a .pyc, and beside these
        return self._code


class Finder:
    """Knows the modules of one file."""

    def __init__(self, index: dict[str, Entry], data: memoryview, together: Part) -> None:
        self._index = index
        self._data = data
        self._together = together
        self._at_hand: dict[str, CodeType] = {}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """None if the file has no code of it, or its source is another by now."""
        entry = self._index.get(name)
        if entry is None:
            return None
        source, is_package, seen, start, size = entry
        if stamp(source) != seen:
            return None
        if name == TOGETHER:
            first, length = self._together
            self._at_hand = marshal.loads(self._data[first : first + length])  # noqa: S302
        code = self._at_hand.pop(name, None) or self._data[start : start + size]
        loader = Packed(name, source, code)
        spec = ModuleSpec(name, loader, origin=source, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(source)]  # noqa: PTH120
        return spec


def use(path: str = PATH) -> bool:
    """Whether imports look there first from now on."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            import mmap

            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        begin = HEAD + int.from_bytes(data[:HEAD], "little")
        made_for, index, together, patterns = marshal.loads(data[HEAD:begin])  # noqa: S302
    except (OSError, ValueError, EOFError, TypeError):
        return False  # there is none, or what is left of one
    if made_for != key():
        return False
    sys.meta_path.insert(0, Finder(index, data[begin:], together))
    _know(patterns)
    return True


def _know(patterns: dict[tuple[str | bytes, int], Pattern]) -> None:
    """Have `re` find these as if it had compiled them: that is a tenth of what imports cost."""
    import _sre  # type: ignore[import-not-found]
    import re

    cache = re._cache  # type: ignore[attr-defined]  # noqa: SLF001
    for (text, flags), made in patterns.items():
        cache[type(text), text, flags] = _sre.compile(*made)


def _patterns() -> dict[tuple[str | bytes, int], Pattern]:
    """What `re` has compiled, as it hands it to the interpreter."""
    import _sre
    import re
    from types import SimpleNamespace

    made: list[Pattern] = []

    def note(text: object, flags: int, code: list[int], *groups: object) -> None:
        made.append((text, int(flags), list(map(int, code)), *groups))

    compiler = re._compiler  # type: ignore[attr-defined]  # noqa: SLF001
    compiler._sre = SimpleNamespace(**{**vars(_sre), "compile": note})  # noqa: SLF001
    asked = [(text, int(flags)) for _, text, flags in re._cache]  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        for text, flags in asked:
            compiler.compile(text, flags)
    finally:
        compiler._sre = _sre  # noqa: SLF001
    return dict(zip(asked, made, strict=True))


def write(path: str = PATH, together: "Container[str]" = ()) -> int:
    """Pack what this process has imported; how many modules that are. `together`: those that are
    needed with TOGETHER. Raises OSError.
    """
    index, parts, end = {}, [], 0
    codes: dict[str, CodeType] = {}
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.name != name:
            continue
        assert spec.origin is not None
        made = spec.loader.get_code(name)
        assert made is not None
        if name in together:
            codes[name] = made
        seen, code = stamp(spec.origin), marshal.dumps(made)
        index[name] = (
            spec.origin,
            spec.submodule_search_locations is not None,
            seen,
            end,
            len(code),
        )
        parts.append(code)
        end += len(code)
    parts.append(marshal.dumps(codes))
    head = marshal.dumps((key(), index, (end, len(parts[-1])), _patterns()))
    passing = f"{path}.{os.getpid()}"
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(passing, "wb") as file:  # noqa: PTH123
        file.writelines((len(head).to_bytes(HEAD, "little"), head, *parts))
    os.replace(passing, path)  # noqa: PTH105
    return len(index)


def main() -> int:
    """Import what a start imports, and pack it."""
    import importlib
    import subprocess
    from importlib.util import find_spec

    from asched.cli.late import LATE
    from asched.core.plugins import PLUGINS, class_of

    for name in (*STARTS, *LATE):
        if name.startswith("asched") or find_spec(name):  # not every Python needs all others
            importlib.import_module(name)
    for name in PLUGINS:
        class_of(name)
    listed = subprocess.run(  # noqa: S603 - of ours
        [sys.executable, "-c", LISTING], stdout=subprocess.PIPE, text=True, check=True
    )
    count = write(together=frozenset(listed.stdout.split()))
    sys.stdout.write(f"{count} modules in {PATH}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
