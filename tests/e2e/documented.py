"""The commands of README.md and docs/, as a reader copies them.

command("docs/install.md", "helm install y")  # all its lines, with its comment
"""

import re
from textwrap import dedent

from tests.support import ROOT

#: Between fences, or indented by four spaces.
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$|((?:^ {4}.*\n)+)", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [dedent(found[1] or found[2]) for found in BLOCK.finditer(text)]


def block(page: str, beginning: str) -> str:
    """The only block of a page that begins like this."""
    (text,) = (text for text in blocks(page) if text.startswith(beginning))
    return text


def command(page: str, beginning: str) -> str:
    """The command that begins like this; where a page has it several times, it is the same."""
    (text,) = {text for block in blocks(page) for text in commands(block, beginning)}
    return text


def commands(text: str, beginning: str) -> list[str]:
    """Those of a text that begin like this: with the lines after a backslash or an open quote."""
    found, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith(beginning):
            end = number + 1
            while lines[end - 1].endswith("\\") or "\n".join(lines[number:end]).count("'") % 2:
                end += 1
            found.append(dedent("\n".join(lines[number:end])))
    return found
