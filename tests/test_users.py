"""Tests pass on a busy machine."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Deadlines in figures are a guess about a machine; `tests.support.HANG_S` is none.
DEADLINE = re.compile(r"asyncio\.timeout\(\d|^PATIENCE_S = ", re.MULTILINE)


def test_no_test_guesses_how_fast_a_machine_is() -> None:
    guessing = {
        str(path.relative_to(ROOT)): found.group()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (found := DEADLINE.search(path.read_text(encoding="utf-8"))) and path != Path(__file__)
    }
    assert guessing == {}
