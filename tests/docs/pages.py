"""Code blocks of the documentation."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"


def blocks(language: str) -> list[tuple[int, str]]:
    """(line, text) of every fenced block in a language."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text[: m.start()].count("\n") + 1, m[1]) for m in found]
