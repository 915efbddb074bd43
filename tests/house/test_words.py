"""Docstrings, comments, messages and pages use the words of Kubernetes (`words.py`).

Of Python it reads comments and strings of several words, which are docstrings and messages. Single
words as values are free: `nobody` is a user, and a test may have a door. So is what stands in
backticks on a page. Of names a short list is not used (`BANNED_NAMES`).
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.house.words import BANNED, BANNED_NAMES

ROOT = Path(__file__).resolve().parents[2]
PATTERN = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(BANNED)})(?![A-Za-z])", re.IGNORECASE)
FOLDERS = (
    *((folder, "*.py") for folder in ("asched", "lab", "examples")),
    *((folder, "*.md") for folder in ("asched", "docs")),
    *((folder, "*.yaml") for folder in ("config", "deploy", "examples")),
)
READ = [
    *(path for folder, names in FOLDERS for path in sorted((ROOT / folder).rglob(names))),
    *sorted(ROOT.glob("*.md")),
]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of lines, without what is code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r"`[^`]+`", lambda code: "\n" * code[0].count("\n"), text)
        yield from enumerate(text.splitlines(), 1)
    elif PATTERN.search(text):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "COMMENT" or (kind in ("STRING", "FSTRING_MIDDLE") and " " in token.string):
                yield from enumerate(token.string.splitlines(), token.start[0])


def test_objects_are_not_people() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {word}; write {_instead(word)}"
        for file in READ
        for number, line in prose(file)
        for word in PATTERN.findall(line)
    ]
    assert not found, "\n".join(found)


def _instead(word: str) -> str:
    return next(text for words, text in BANNED.items() if re.fullmatch(words, word, re.IGNORECASE))


def test_names_are_understood() -> None:
    names = re.compile(rf"_*(?:{'|'.join(BANNED_NAMES)})")
    found = [
        f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string}; write {_better(token.string)}"
        for folder in ("asched", "lab")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if names.search(text := path.read_text(encoding="utf-8"))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and names.fullmatch(token.string)
    ]
    assert not found, "\n".join(found)


def _better(name: str) -> str:
    stripped = name.lstrip("_")
    return next(text for names, text in BANNED_NAMES.items() if re.fullmatch(names, stripped))
