"""Find the scheduler configurations in a file: the file itself, or parts of its manifests.

Rules   a file with one document that is not a ConfigMap is one configuration; otherwise every
        KubeSchedulerConfiguration and Policy is found, among the documents, in the data of
        ConfigMaps and in Lists of them. Each keeps its position in the file, so that errors have
        the line and column that an editor shows.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import yaml

from asched.core.config.v1 import API_GROUP, KIND
from asched.core.model.decode import MalformedError, parse

CONFIG_MAP: Final = "ConfigMap"
LIST: Final = "List"
POLICY: Final = "Policy"


class ConfigPart(msgspec.Struct, frozen=True):
    """One configuration; `where` names its place in the file, empty for the whole file."""

    text: str
    where: str = ""


class NoConfigurationError(Exception):
    """The manifests contain no configuration: one line."""


def parts(text: str) -> list[ConfigPart]:
    """The configurations in a text, at least one. Raises NoConfigurationError.

    A text that is not YAML is returned whole; its reader reports the error.
    """
    if text.lstrip().startswith("{"):
        return [ConfigPart(text)]
    try:
        nodes = [node for node in parse(_composed, text) if node]
    except MalformedError:
        return [ConfigPart(text)]
    kinds = [_field(node, "kind") for node in nodes]
    if len(nodes) < 2 and not {CONFIG_MAP, LIST} & set(kinds):
        return [ConfigPart(text)]
    found = [part for node in nodes for part in _of_document(node, text)]
    if not found:
        listed = ", ".join(dict.fromkeys(kind or "no kind" for kind in kinds))
        raise NoConfigurationError(f"contains no {KIND} and no {POLICY}, only: {listed}")
    return found


def _composed(text: str) -> list[yaml.Node]:
    return list(yaml.compose_all(text, Loader=yaml.SafeLoader))


def _of_document(node: yaml.Node, text: str) -> Iterator[ConfigPart]:
    kind = _field(node, "kind")
    if kind == LIST:
        items = _value(node, "items")
        for item in items.value if isinstance(items, yaml.SequenceNode) else ():
            yield from _of_document(item, text)
    elif kind == CONFIG_MAP:
        yield from _of_config_map(node, text)
    elif _is_configuration(node):
        yield ConfigPart(
            _in_place(text, node.start_mark.line, node.end_mark), f"{kind} of line {_line(node)}"
        )


def _of_config_map(node: yaml.Node, text: str) -> Iterator[ConfigPart]:
    metadata, data = _value(node, "metadata"), _value(node, "data")
    name = _field(metadata, "name")
    for key, value in data.value if isinstance(data, yaml.MappingNode) else ():
        if not isinstance(value, yaml.ScalarNode):
            continue
        try:
            is_ours = _is_configuration(next(iter(parse(_composed, value.value)), None))
        except MalformedError:
            # Text of our API group that is not YAML is reported; other data is ignored.
            is_ours = API_GROUP in value.value
        if not is_ours:
            continue
        is_block = value.style == "|"
        where = f"{CONFIG_MAP} {name}, {key.value}"
        yield ConfigPart(_block(text, value) if is_block else value.value, where)


def _block(text: str, value: yaml.ScalarNode) -> str:
    """A block keeps its indentation: a document may be indented as a whole."""
    return _in_place(text, value.start_mark.line + 1, value.end_mark)


def _in_place(text: str, first: int, end: yaml.Mark) -> str:
    lines = text.splitlines()[first : end.line + (1 if end.column else 0)]
    if lines and lines[0].startswith("---"):
        lines[0] = ""
    return "\n" * first + "\n".join(line for line in lines if line != "---") + "\n"


def _is_configuration(node: yaml.Node | None) -> bool:
    version, kind = _field(node, "apiVersion"), _field(node, "kind")
    return version.startswith(f"{API_GROUP}/") or kind in (KIND, POLICY)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _field(node: yaml.Node | None, name: str) -> str:
    value = _value(node, name)
    return value.value if isinstance(value, yaml.ScalarNode) else ""
