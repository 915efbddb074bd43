"""YAML as kubectl and the API server read it.

Plain words have the values of `asched.kube.yaml_text`. A
key that is written twice counts once, with its last value, and its path is reported. Aliases are
copied.

Bounds  VALUES_MAX values in a document, or one per byte of the text: aliases multiply values
"""

from typing import Any, Final, NamedTuple

import yaml

from asched.core.config.scalars import key_of, value_of
from asched.core.model.decode import MalformedError, parse
from asched.kube.yaml_text import MERGE_TAG, WORD_TAGS, Loader

VALUES_MAX: Final = 200_000
_WORDS: Final = frozenset(WORD_TAGS.values())


class Document(NamedTuple):
    """`repeated`: paths of keys that are written more than once."""

    value: Any
    repeated: list[str]


def read(data: bytes) -> list[Document]:
    """All documents of a text. Raises MalformedError."""
    return parse(_documents, data)


def _documents(data: bytes) -> list[Document]:
    loader = Loader(data)
    found = []
    while (node := loader.get_node() if loader.check_node() else None) is not None:
        reader = _Reader(len(data))
        found.append(Document(reader.value(node, ""), reader.repeated))
    return found


class _Reader:
    """Builds the values of one document."""

    def __init__(self, size: int) -> None:
        self.repeated: list[str] = []
        self._remaining = max(VALUES_MAX, size)
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: str) -> Any:
        self._remaining -= 1
        if self._remaining < 0:
            raise MalformedError("aliases multiply the values of this document beyond any use")
        if isinstance(node, yaml.ScalarNode):
            return value_of(node.value) if node.tag in _WORDS else node.value
        if id(node) in self._open:
            raise MalformedError(f"line {node.start_mark.line + 1}: an anchor contains itself")
        self._open.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            made: Any = [self.value(item, f"{path}[{at}]") for at, item in enumerate(node.value)]
        else:
            made = self._mapping(node.value, path)
        self._open.discard(id(node))
        return made

    def _mapping(self, pairs: list[tuple[yaml.Node, yaml.Node]], path: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in pairs:
            if not isinstance(key_node, yaml.ScalarNode):
                raise MalformedError(
                    f"line {key_node.start_mark.line + 1}: a key is not a plain word"
                )
            if key_node.tag == MERGE_TAG:
                merged = {**self._merged(value_node, path), **merged}
                continue
            key = key_of(key_node.value) if key_node.tag in _WORDS else key_node.value
            key_path = f"{path}.{key}" if path else key
            if key in made:
                self.repeated.append(key_path)
            made[key] = self.value(value_node, key_path)
        return {**merged, **made} if merged else made

    def _merged(self, node: yaml.Node, path: str) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, yaml.MappingNode):
                raise MalformedError(f"line {node.start_mark.line + 1}: << takes mappings alone")
            merged |= self.value(part, path)
        return merged
