"""The README of the Helm chart: its values, from values.yaml and values.schema.json.

values.yaml has the defaults, and in the comment above a value its meaning; the schema has the
types.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from asched_lab.pages.metrics import code, page, table

CHART: Final = "deploy/chart"
_INTRODUCTION: Final = (
    "Installs asched, a second scheduler for Kubernetes."
    " [Install](../../docs/install.md#install-with-helm) has the commands,"
    " [Upgrade](../../docs/upgrade.md) and [Uninstall](../../docs/uninstall.md) what they do to"
    " running pods. The schema refuses values that are not in this table."
)
#: Longest default that is shown; the others are in values.yaml.
_DEFAULT_CHARS: Final = 50


def chart_page(root: Path) -> str:
    """The page; the argument is the root of the clone."""
    text = (root / CHART / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((root / CHART / "values.schema.json").read_text(encoding="utf-8"))
    document = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(document, yaml.MappingNode)
    rows = _rows(document, schema, text.splitlines(), "")
    return page("asched", (_INTRODUCTION, table(("Value", "Type", "Default", "Meaning"), rows)))


def _rows(
    node: yaml.MappingNode, schema: dict[str, Any], lines: list[str], prefix: str
) -> Iterator[tuple[str, ...]]:
    """One row for each value, and one for each group that has a comment."""
    for key, value in node.value:
        own = schema["properties"][key.value]
        meaning = _comment(lines, key.start_mark.line, key.start_mark.column)
        name = f"{prefix}{key.value}"
        if "properties" in own:
            if meaning:
                yield code(name), "", "", meaning
            yield from _rows(value, own, lines, f"{name}.")
        else:
            yield code(name), _type(own), code(_default(value)), meaning


def _comment(lines: list[str], line: int, column: int) -> str:
    """The comment right above a line, indented as its key is."""
    words: list[str] = []
    while line and re.match(rf" {{{column}}}# ", lines[line - 1]):
        line -= 1
        words.insert(0, lines[line].strip().removeprefix("# "))
    return " ".join(words)


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    kinds = schema["type"]
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return f"{kind}, at least {schema['minimum']}" if "minimum" in schema else kind


def _default(node: yaml.Node) -> str:
    shown = json.dumps(yaml.SafeLoader("").construct_document(node), ensure_ascii=False)
    return shown if len(shown) <= _DEFAULT_CHARS else "see values.yaml"
