"""The file of packed code: everything a start imports is in it, and nothing that changed since."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT

#: Imported before the file can be looked into.
DOOR = {"asched", "asched.cli", "asched.cli.main", "asched.cli.packed_code", "__main__"}


def python(code: str, *paths: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; from asched.cli import packed_code\n{code}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *paths)))},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A module in a package, packed."""
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing/__init__.py").write_text("")
    (tmp_path / "thing/part.py").write_text("value = 1\n")
    python(f"import thing.part; packed_code.write({str(tmp_path / 'file')!r})", tmp_path)
    return tmp_path


def loaded(package: Path, before: str = "") -> str:
    """What is imported, and by whom."""
    return python(
        f"""{before}
print(packed_code.use({str(package / "file")!r}))
import thing.part
print(thing.part.value, type(thing.part.__spec__.loader).__name__, thing.__path__[0])""",
        package,
    )


def test_what_a_start_imports_comes_from_the_file(tmp_path: Path) -> None:
    starts = "; ".join(f"import {name}" for name in ("asched.cli.commands", "asched.cli.run"))
    file = str(tmp_path / "file")
    python(f"{starts}\npacked_code.write({file!r})")
    told = python(
        f"""assert packed_code.use({file!r})
before = set(sys.modules)
{starts}
from importlib.machinery import SourceFileLoader
for name in set(sys.modules) - before:
    spec = getattr(sys.modules[name], "__spec__", None)
    if type(getattr(spec, "loader", None)) is SourceFileLoader:
        print(name)"""
    )

    assert set(told.split()) <= DOOR


def test_expressions_that_a_start_compiles_are_known(package: Path) -> None:
    """Two packages of others' compile seventy at each start, some of which take milliseconds."""
    (package / "thing/wild.py").write_text(
        "import re\nfound = re.compile('(?P<a>[b-d\\xe9])+x', re.I)\nraw = re.compile(b'[0-9]')\n"
    )
    file = str(package / "file")
    python(f"import thing.wild; packed_code.write({file!r})", package)
    told = python(
        f"""assert packed_code.use({file!r})
import re
def never(*_): raise AssertionError
re._compiler.compile = never
import thing.wild as wild
print(wild.found.match("BéX").groupdict(), wild.raw.findall(b"a1"), wild.found.flags)""",
        package,
    )

    assert told == f"{{'a': 'é'}} [b'1'] {re.compile('', re.IGNORECASE).flags}"


def test_what_is_needed_together_is_read_at_once_and_only_then(package: Path) -> None:
    file = str(package / "file")
    (package / "thing/other.py").write_text("value = 7\n")
    (package / "thing/early.py").write_text("value = 5\n")
    names = {"thing.part", "thing.other", "thing.early"}
    python(
        f"""import {", ".join(names)}
packed_code.write({file!r}, together={names!r})""",
        package,
    )
    told = python(
        f"""packed_code.TOGETHER = "thing.part"
packed_code.use({file!r})
import thing.early, thing.part, thing.other
for one in (thing.early, thing.part, thing.other):
    print(one.value, type(one.__spec__.loader._code).__name__)""",
        package,
    )

    assert told.splitlines() == ["5 memoryview", "1 code", "7 code"]


def test_it_is_a_module_as_others_are(package: Path) -> None:
    assert loaded(package).splitlines() == ["True", f"1 Packed {package / 'thing'}"]


def test_a_source_that_changed_is_read(package: Path) -> None:
    (package / "thing/part.py").write_text("value = 2\n")
    os.utime(package / "thing/part.py", (1, 1))

    assert loaded(package).splitlines()[1].startswith("2 SourceFileLoader")


def test_a_source_that_went_is_looked_for_elsewhere(package: Path) -> None:
    (package / "thing/part.py").unlink()
    (package / "thing/part").mkdir()
    (package / "thing/part/__init__.py").write_text("value = 3\n")

    assert loaded(package).splitlines()[1].startswith("3 SourceFileLoader")


@pytest.mark.parametrize(
    "before", ["sys.path.append('/elsewhere')", "sys.version = '4.0'"], ids=["path", "interpreter"]
)
def test_it_serves_only_what_it_was_written_for(package: Path, before: str) -> None:
    assert loaded(package, before).splitlines()[0] == "False"


@pytest.mark.parametrize("length", [0, 5, 12, 200])
def test_what_is_left_of_a_file_is_none(package: Path, length: int) -> None:
    file = package / "file"
    file.write_bytes(file.read_bytes()[:length])

    assert loaded(package).splitlines() == ["False", f"1 SourceFileLoader {package / 'thing'}"]


def test_a_file_of_something_else_is_none(package: Path) -> None:
    (package / "file").write_bytes(b"\x05" + bytes(7) + b"hello world")

    assert loaded(package).splitlines()[0] == "False"


def test_the_image_has_one() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    run_stage = text.partition("AS run")[2]

    assert "python -m asched.cli.packed_code" in run_stage.partition("USER")[0]
