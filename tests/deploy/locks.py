"""Reading the files that pin dependencies."""

import re
from pathlib import Path


def pins_of(lock: Path) -> set[tuple[str, str]]:
    text = lock.read_text(encoding="utf-8")
    return set(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))
