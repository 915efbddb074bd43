from typing import Any

import pytest
import yaml

from asched.host.configuration.source import read
from asched.kube.yaml_text import to_yaml


@pytest.mark.parametrize(
    "text",
    [
        *("plain", "15s", "http://a/", "it's", "-x", "a:b", "x_1", "", "\t", " "),
        *("yes", "y", "N", "12", "08", "0o17", "1_000", "1e2", "1.5", "~", "null", ".inf", "<<"),
        *("12:30", "2001-01-01", "2001-01-01T1:00:00Z", "=", "0x1f", "+1", "-.5"),
        *("*", "a: b", "x #y", "'x", '"x', "-", "- x", "?", "a:", "---", "...", " x", "x ", "@x"),
        *("a\tb", "a\nb", "a\n", "a\n\n", "\n\n", "\na", "a\n\nb\n", " a\nb", "a \nb", "a\nb\x00"),
        *("é\t", "\u200b", "\u2028", "a\n# b\n", "a\n  b", "a\r\nb", "x" * 300, "a " * 100),
    ],
)
def test_every_reader_gets_the_text_back(text: str) -> None:
    for document in ({"a": text}, {"a": [{"b": {"c": text}}]}, {text: 1}):
        written = to_yaml(document)
        assert yaml.safe_load(written) == document
        found = read(written)
        assert found.problems == []
        assert found.document == document


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        ({"b": 1, "a": True}, ["a: true", "b: 1"]),
        ({"a": {}, "b": [], "c": None, "d": ""}, ["a: {}", "b: []", "c: null", 'd: ""']),
        ({"a": {"b": {"c": 1}}}, ["a:", "  b:", "    c: 1"]),
        ({"a": ["x", 1]}, ["a:", "- x", "- 1"]),
        ({"a": {"b": ["x"]}}, ["a:", "  b:", "  - x"]),
        ({"a": ({"b": 1, "c": [2]},)}, ["a:", "- b: 1", "  c:", "  - 2"]),
        ({"a": [["u", ["v", "w"]], []]}, ["a:", "- - u", "  - - v", "    - w", "- []"]),
        ({"a": [{"b": {"c": "x\ny"}}]}, ["a:", "- b:", "    c: |-", "      x", "      y"]),
        ({"a": ["x\ny\n"]}, ["a:", "- |", "  x", "  y"]),
        ({"a": "x\ny"}, ["a: |-", "  x", "  y"]),
        ({"yes": 1}, ['"yes": 1']),
        ({"a": 2**64 - 1}, ["a: 18446744073709551615"]),
    ],
)
def test_layout(document: dict[str, Any], lines: list[str]) -> None:
    """Keys in order, lists not indented below their key, two columns a level."""
    text = to_yaml(document)
    assert text == "\n".join(lines) + "\n"
    assert yaml.safe_load(text) == {
        key: list(value) if isinstance(value, tuple) else value for key, value in document.items()
    }
