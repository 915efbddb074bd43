"""Names, docstrings, comments, messages and pages use the words of Kubernetes (`words.py`)."""

import re
from pathlib import Path

from tests.house.words import BANNED, PENDING, QUOTED

ROOT = Path(__file__).resolve().parents[2]
PATTERN = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(BANNED)})(?![A-Za-z])", re.IGNORECASE)
READ = (
    *sorted((ROOT / "asched").rglob("*.py")),
    *sorted((ROOT / "lab").rglob("*.py")),
    *sorted((ROOT / "asched").glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.yaml")),
    *sorted(ROOT.glob("*.md")),
)


def test_objects_are_not_people() -> None:
    found = [
        f"{path}:{number}: {', '.join(sorted(words))}"
        for file in READ
        if not (path := file.relative_to(ROOT).as_posix()).startswith(PENDING)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if (words := set(PATTERN.findall(line))) and (path, line.strip()) not in QUOTED
    ]
    assert not found, "\n".join(found)


def test_no_package_is_pending_that_is_clean() -> None:
    """What is rewritten once stays so."""
    dirty = {
        prefix
        for prefix in PENDING
        for file in READ
        if file.relative_to(ROOT).as_posix().startswith(prefix)
        and PATTERN.search(file.read_text(encoding="utf-8"))
    }
    assert set(PENDING) == dirty
