"""Parse a configuration file's text to plain values with their positions.

Rules   text that begins with a brace is JSON, all else is YAML 1.1 (`kube/yaml_text.py`); keys are
        sorted; only the first YAML document counts; anchors and merge keys work, but a key that
        occurs twice is an error, and a merged key that is also written counts as occurring twice.
Bounds  VALUES_MAX values after aliases are expanded, NESTED_MAX levels of them.
Source  sigs.k8s.io/yaml (v1.6), recordings of kube-scheduler 1.36.2
"""

import base64
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import yaml

from asched.core.config.decode import Repeating
from asched.core.config.problem import Path, Problem, quoted
from asched.core.config.scalars import key_of, value_of
from asched.kube.yaml_text import MERGE_TAG, WORD_TAGS, Loader

#: Values in one document; stops files whose aliases multiply (a guess far above any real one).
VALUES_MAX: Final = 200_000
#: Nesting of lists and mappings. libyaml builds them by recursion and would crash the process; a
#: configuration has some ten levels.
NESTED_MAX: Final = 100
#: Limit of duplicate keys: merge keys can multiply them.
TWICE_MAX: Final = 1000
NESTED: Final = "lists and objects are nested too deeply"
#: libyaml's message for the same; it reads ahead, and has a limit since PyYAML 6.0.4.
_LIBYAML_NESTED: Final = "exceeded maximum nesting depth"
#: Replaces Python's message about numbers of thousands of digits.
DIGITS: Final = "a number has too many digits"
LOOP: Final = "an anchor contains itself"
_WORDS: Final = frozenset(WORD_TAGS.values())
_BINARY_TAG: Final = "tag:yaml.org,2002:binary"
#: libyaml accepts this mark at the very beginning only; Go takes it for a letter elsewhere.
_BYTE_ORDER_MARK: Final = "\ufeff"
#: Replaces the mark while parsing; not a character of any language.
_STAND_IN: Final = "\U0010fffe"


class ConfigSource(msgspec.Struct):
    """The values of a text. `places` has line and column, from 1, of every key and list item; of a
    text that `is_broken` there is no document.
    """

    text: str
    document: Any = None
    places: dict[Path, tuple[int, int]] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    is_broken: bool = False

    def place(self, path: Path) -> tuple[int, int]:
        """The position of a path, or of the nearest part of it that is in the file."""
        path = self._numbered(path)
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return (1, 1)

    def _numbered(self, path: Path) -> Path:
        """The path with indices instead of names, up to the first part that does not exist."""
        numbered, value = list[str | int](), self.document
        for step in path:
            if isinstance(value, list) and isinstance(step, str):
                places = [at for at, entry in enumerate(value) if name_of(entry) == step]
                if not places:
                    break
                step = places[-1]  # noqa: PLW2901 - the same step, as a number
            numbered.append(step)
            value = item(value, step)
        return tuple(numbered)


def item(value: Any, step: str | int) -> Any:
    """The value at a step in a mapping or a list, or None."""
    if isinstance(value, Mapping):
        return value.get(step)
    is_there = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
    return value[step] if is_there else None


def name_of(entry: Any) -> str | None:
    name = item(entry, "name")
    return name if isinstance(name, str) else None


class _UnreadableError(Exception):
    def __init__(self, text: str, place: tuple[int, int]) -> None:
        super().__init__(text)
        self.place = place


def read(text: str) -> ConfigSource:
    """Parse a text; errors are in `problems`, nothing is raised."""
    source = ConfigSource(text)
    try:
        if text.lstrip().startswith("{"):
            _read_json(source)
        else:
            _YamlReader(source).read()
    except _UnreadableError as error:
        source.places[("",)] = error.place
        source.problems.append(Problem(str(error), ("",)))
        source.is_broken = True
    return source


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    return values if len(values) == len(pairs) else Repeating(pairs)


class _NoNumberError(Exception):
    """NaN or Infinity, which Python's JSON parser accepts."""


def _no_number(word: str) -> Any:
    raise _NoNumberError(word)


def _read_json(source: ConfigSource) -> None:
    whole = source.text
    if "\\u" in whole:
        with suppress(ImportError):  # asched-cli has no NumPy
            from asched.kube.mending import whole_letters

            data = whole_letters(whole.encode("utf-8", "surrogatepass"))
            whole = data.decode("utf-8", "surrogatepass")
    try:
        source.document = json.loads(
            whole,
            object_pairs_hook=_object,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        text = f"this is not JSON: {error.msg}"
        raise _UnreadableError(text, (error.lineno, error.colno)) from error
    except _NoNumberError as error:
        raise _UnreadableError(f"this is not JSON: {error} is no number", (1, 1)) from error
    except RecursionError as error:
        raise _UnreadableError(NESTED, (1, 1)) from error
    except ValueError as error:
        raise _UnreadableError(DIGITS, (1, 1)) from error
    try:
        # JSON is read as YAML to get positions; a tab there is only a blank.
        _YamlReader(ConfigSource(source.text.replace("\t", " "), places=source.places)).read()
    except _UnreadableError:
        return


def _check_depth(text: str) -> None:
    """Raises _UnreadableError if the nesting is too deep, and what parsing raises."""
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > NESTED_MAX:
                raise _UnreadableError(NESTED, _place(event.start_mark))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return  # only the first one counts


def _place(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class _YamlReader:
    """Builds values from YAML nodes and stores the position of each."""

    def __init__(self, source: ConfigSource) -> None:
        self.source = source
        self.count = 0
        self.open: set[int] = set()

    def read(self) -> None:
        text = self.source.text
        text = text[:1] + text[1:].replace(_BYTE_ORDER_MARK, _STAND_IN)
        try:
            _check_depth(text)
            loader = Loader(text)
            node = loader.get_node() if loader.check_node() else None
            if node is not None:
                self.source.document = self._value(node, ())
        except yaml.MarkedYAMLError as error:
            problem = error.problem or error.context
            is_nested = problem == _LIBYAML_NESTED
            text = NESTED if is_nested else f"this is not YAML: {problem}"
            raise _UnreadableError(
                text, _place(error.problem_mark or error.context_mark)
            ) from error
        except yaml.YAMLError as error:
            text = f"this is not YAML: {str(error).splitlines()[0]}"
            raise _UnreadableError(text, (1, 1)) from error
        except RecursionError as error:
            raise _UnreadableError(NESTED, (1, 1)) from error

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self.count += 1
        place = _place(node.start_mark)
        if self.count > VALUES_MAX:
            raise _UnreadableError(f"more than {VALUES_MAX} values, aliases expanded", place)
        if isinstance(node, yaml.ScalarNode):
            value = self._text(node) if node.tag not in _WORDS else value_of(node.value)
            if isinstance(value, float) and not math.isfinite(value):
                raise _UnreadableError(f"{node.value} is not a number that can be used", place)
            return value
        if id(node) in self.open:
            raise _UnreadableError(LOOP, place)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._item(item, (*path, i)) for i, item in enumerate(node.value)]
            values: dict[str, Any] = {}
            self._fill(node, path, values)
            return {key: values[key] for key in sorted(values)}
        finally:
            self.open.discard(id(node))

    def _text(self, node: yaml.ScalarNode) -> str:
        """The text of a scalar that is not a plain word; those with unknown tags are strings."""
        text: str = node.value.replace(_STAND_IN, _BYTE_ORDER_MARK)
        if node.tag != _BINARY_TAG:
            return text
        try:
            return base64.b64decode(text, validate=True).decode()
        except ValueError as error:
            raise _UnreadableError("!!binary must be base64", _place(node.start_mark)) from error

    def _item(self, node: yaml.Node, path: Path) -> Any:
        self.source.places[path] = _place(node.start_mark)
        return self._value(node, path)

    def _fill(self, node: yaml.Node, path: Path, values: dict[str, Any]) -> None:
        for key_node, value_node in node.value:
            place = _place(key_node.start_mark)
            if key_node.tag == MERGE_TAG:
                self._merge(value_node, path, values, place)
                continue
            key = self._key(key_node, place)
            here = (*path, key)
            if key in values:
                if len(self.source.problems) >= TWICE_MAX:
                    raise _UnreadableError("too many keys occur twice", place)
                at = (*here, f"again at line {place[0]}")
                self.source.places[at] = place
                self.source.problems.append(Problem(f"key {quoted(key)} occurs twice", at))
            else:
                self.source.places[here] = place
            values[key] = self._value(value_node, here)

    def _merge(
        self, node: yaml.Node, path: Path, values: dict[str, Any], place: tuple[int, int]
    ) -> None:
        maps = node.value[::-1] if isinstance(node, yaml.SequenceNode) else [node]
        for part in maps:
            if not isinstance(part, yaml.MappingNode):
                raise _UnreadableError("<< must be an object or a list of objects", place)
            if id(part) in self.open:
                raise _UnreadableError(LOOP, place)
            self._fill(part, path, values)

    def _key(self, node: yaml.Node, place: tuple[int, int]) -> str:
        """The field that a key names; a key must be a plain word."""
        if not isinstance(node, yaml.ScalarNode):
            raise _UnreadableError("a key must be a plain word", place)
        if node.tag not in _WORDS:
            return self._text(node)
        try:
            return key_of(node.value)
        except ValueError as error:
            raise _UnreadableError(str(error), place) from error
