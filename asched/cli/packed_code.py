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

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__pycache__")  # noqa: PTH118, PTH120
PATH = os.path.join(FOLDER, f"start.{sys.implementation.cache_tag}.packed")  # noqa: PTH118
#: What a start of the scheduler imports, from its first module to the pages it serves.
STARTS = ("asched.cli.commands", "asched.cli.run", "uvloop", "asched.edge.host.serving")
#: Bytes of the number before the index: how long that is.
HEAD = 8

#: Source, whether a package, (s, bytes) of the source, where the code is, and how long.
Entry = tuple[str, bool, tuple[int, int], int, int]
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

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> object:  # type: ignore[override]  # noqa: ARG002
        return marshal.loads(self._code)  # noqa: S302 - as trusted as a .pyc, and beside these


class Finder:
    """Knows the modules of one file."""

    def __init__(self, index: dict[str, Entry], data: memoryview) -> None:
        self._index = index
        self._data = data

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """None if the file has no code of it, or its source is another by now."""
        entry = self._index.get(name)
        if entry is None:
            return None
        source, is_package, seen, start, size = entry
        if stamp(source) != seen:
            return None
        loader = Packed(name, source, self._data[start : start + size])
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
        made_for, index, patterns = marshal.loads(data[HEAD:begin])  # noqa: S302
    except (OSError, ValueError, EOFError, TypeError):
        return False  # there is none, or what is left of one
    if made_for != key():
        return False
    sys.meta_path.insert(0, Finder(index, data[begin:]))
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
    asked = [(text, flags) for _, text, flags in re._cache]  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        for text, flags in asked:
            compiler.compile(text, flags)
    finally:
        compiler._sre = _sre  # noqa: SLF001
    return dict(zip(asked, made, strict=True))


def write(path: str = PATH) -> int:
    """Pack what this process has imported; how many modules that are. Raises OSError."""
    index, parts, end = {}, [], 0
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.name != name:
            continue
        assert spec.origin is not None
        seen, code = stamp(spec.origin), marshal.dumps(spec.loader.get_code(name))
        index[name] = (
            spec.origin,
            spec.submodule_search_locations is not None,
            seen,
            end,
            len(code),
        )
        parts.append(code)
        end += len(code)
    head = marshal.dumps((key(), index, _patterns()))
    made = f"{path}.{os.getpid()}"
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(made, "wb") as file:  # noqa: PTH123
        file.writelines((len(head).to_bytes(HEAD, "little"), head, *parts))
    os.replace(made, path)  # noqa: PTH105
    return len(index)


def main() -> int:
    """Import what a start imports, and pack it."""
    import importlib

    from asched.cli.late import LATE
    from asched.core.plugins import PLUGINS, class_of

    for name in (*STARTS, *LATE):
        importlib.import_module(name)
    for name in PLUGINS:
        class_of(name)
    count = write()
    sys.stdout.write(f"{count} modules in {PATH}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
