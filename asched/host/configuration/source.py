"""Parse a configuration file's text to plain values with their positions.

Rules   text that begins with a brace is JSON, all else is YAML 1.1 as Go reads it: `yes` is a
        boolean, 0x10 and 1e2 are numbers, whole floats become integers, keys are sorted; only the
        first YAML document counts; anchors and merge keys work, but a key that occurs twice is an
        error, and a merged key that is also written counts as occurring twice.
Bounds  VALUES_MAX values after aliases are expanded, NESTED_MAX levels of them.
Source  sigs.k8s.io/yaml (v1.6), recordings of kube-scheduler 1.36.2
"""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from asched.core.config.decode import Repeating
from asched.core.config.problem import Path, Problem, Severity, StartStage, quoted
from asched.core.config.scalars import UnsupportedKeyError, go_syntax, key_of, value_of
from asched.kube.errors import ApiError, ConnectError, TransportError
from asched.kube.parsing import whole_letters
from asched.kube.session import HANDSHAKE_TIMEOUT_S, ConnectionOptions, connect
from asched.kube.typed import client_over

#: Values in one document; stops files whose aliases multiply (a guess far above any real one).
VALUES_MAX: Final = 200_000
#: Nesting of lists and mappings. libyaml builds them by recursion and would crash the process; a
#: configuration has some ten levels.
NESTED_MAX: Final = 100
#: Limit of duplicate keys: merge keys can multiply them.
TWICE_MAX: Final = 1000
NESTED: Final = "nested too deeply"
#: libyaml's message for the same; it reads ahead, and has a limit since PyYAML 6.0.4.
_LIBYAML_NESTED: Final = "exceeded maximum nesting depth"
#: Replaces Python's message about numbers of thousands of digits.
DIGITS: Final = "a number has too many digits"
#: libyaml accepts tabs between words as Go does; the pure Python parser is a stricter fallback.
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_BINARY_TAG: Final = "tag:yaml.org,2002:binary"
_RESOLVED_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "int", "float", "null", "timestamp")
)
#: libyaml accepts this mark at the very beginning only; Go takes it for a letter elsewhere.
_BYTE_ORDER_MARK: Final = "\ufeff"
#: Replaces the mark while parsing; not a character of any language.
_STAND_IN: Final = "\U0010fffe"
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class ConfigSource(msgspec.Struct):
    """The values of a text. `places` has line and column, from 1, of every key and list item."""

    text: str
    document: Any = None
    places: dict[Path, tuple[int, int]] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)

    def place(self, path: Path) -> tuple[int, int]:
        """The position of a path, or of the nearest part of it that is in the file."""
        path = self._numbered(path)
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return (1, 1)

    def _numbered(self, path: Path) -> Path:
        """The path with indices instead of names, up to the first part that does not exist."""
        found, value = list[str | int](), self.document
        for step in path:
            if isinstance(value, list) and isinstance(step, str):
                places = [at for at, entry in enumerate(value) if name_of(entry) == step]
                if not places:
                    break
                step = places[-1]  # noqa: PLW2901 - the same step, as a number
            found.append(step)
            value = item(value, step)
        return tuple(found)


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
        source.problems.append(Problem(StartStage.LOAD, str(error), ("",), severity=Severity.ABORT))
    return source


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    return values if len(values) == len(pairs) else Repeating(pairs)


class _NoNumberError(Exception):
    """NaN or Infinity, which Python's JSON parser accepts."""


def _no_number(word: str) -> Any:
    raise _NoNumberError(word)


def _read_json(source: ConfigSource) -> None:
    whole = whole_letters(source.text.encode("utf-8", "surrogatepass"))
    try:
        source.document = json.loads(
            whole.decode("utf-8", "surrogatepass"),
            object_pairs_hook=_object,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        text = f"couldn't get version/kind; json parse error: {error.msg}"
        raise _UnreadableError(text, (error.lineno, error.colno)) from error
    except _NoNumberError as error:
        text = f"couldn't get version/kind; json parse error: {error} is no JSON number"
        raise _UnreadableError(text, (1, 1)) from error
    except RecursionError as error:
        raise _UnreadableError(f"json: {NESTED}", (1, 1)) from error
    except ValueError as error:
        raise _UnreadableError(f"json: {DIGITS}", (1, 1)) from error
    try:
        # JSON is read as YAML to get positions; a tab there is only a blank.
        _YamlReader(ConfigSource(source.text.replace("\t", " "), places=source.places)).read()
    except _UnreadableError:
        return


def _look_how_deep(text: str) -> None:
    """Raises _UnreadableError if the nesting is too deep, and what parsing raises."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > NESTED_MAX:
                mark = event.start_mark
                place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
                raise _UnreadableError(f"yaml: {NESTED}", place)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return  # only the first one counts


class _YamlReader:
    """Builds values from YAML nodes and stores the position of each."""

    def __init__(self, source: ConfigSource) -> None:
        self.source = source
        self.lines = source.text.splitlines()
        self.count = 0
        self.open: set[int] = set()

    def read(self) -> None:
        text = self.source.text
        text = text[:1] + text[1:].replace(_BYTE_ORDER_MARK, _STAND_IN)
        try:
            _look_how_deep(text)
            loader = _LOADER(text)
            node = loader.get_node() if loader.check_node() else None
            if node is not None:
                self.source.document = self._value(node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            problem = error.problem or error.context
            is_nested = problem == _LIBYAML_NESTED
            text = f"yaml: {NESTED}" if is_nested else f"yaml: line {line}: {problem}"
            raise _UnreadableError(text, (line, column)) from error
        except yaml.YAMLError as error:
            raise _UnreadableError(f"yaml: {str(error).splitlines()[0]}", (1, 1)) from error
        except RecursionError as error:
            raise _UnreadableError(f"yaml: {NESTED}", (1, 1)) from error
        except ValueError as error:
            raise _UnreadableError(f"yaml: {DIGITS}", (1, 1)) from error

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self.count += 1
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        if self.count > VALUES_MAX:
            raise _UnreadableError("yaml: document contains excessive aliasing", place)
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node)
            if isinstance(value, float) and not math.isfinite(value):
                raise _UnreadableError(f"json: unsupported value: {_go_special(value)}", place)
            return value
        if id(node) in self.open:
            raise _UnreadableError("yaml: anchor value contains itself", place)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._item(item, (*path, i)) for i, item in enumerate(node.value)]
            values: dict[str, Any] = {}
            self._fill(node, path, values)
            return {key: values[key] for key in sorted(values)}
        finally:
            self.open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        """The value by Go's rules for YAML 1.1; quoted scalars and unknown tags are strings."""
        text = self._text(node)
        return value_of(node.value) if text is None else text

    def _text(self, node: yaml.ScalarNode) -> str | None:
        node.value = node.value.replace(_STAND_IN, _BYTE_ORDER_MARK)
        mark = node.start_mark
        line = self.lines[mark.line] if mark.line < len(self.lines) else ""
        return _text_of(node, _written_tag(line, mark.column))

    def _item(self, node: yaml.Node, path: Path) -> Any:
        self.source.places[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        return self._value(node, path)

    def _fill(self, node: yaml.Node, path: Path, values: dict[str, Any]) -> None:
        for key_node, value_node in node.value:
            place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if key_node.tag == _MERGE_TAG or (
                isinstance(key_node, yaml.ScalarNode)
                and key_node.value == "<<"
                and not key_node.style
            ):
                self._merge(value_node, path, values, place)
                continue
            key = self._key(key_node, value_node, place)
            here = (*path, key)
            if key in values:
                line = value_node.start_mark.line + 1
                if len(self.source.problems) >= TWICE_MAX:
                    raise _UnreadableError("yaml: too many keys occur twice", place)
                text = f"yaml: line {line}: key {quoted(key)} already set in map"
                at = (*here, f"again at line {place[0]}")
                self.source.places[at] = place
                self.source.problems.append(Problem(StartStage.LOAD, text, at))
            else:
                self.source.places[here] = place
            values[key] = self._value(value_node, here)

    def _merge(
        self, node: yaml.Node, path: Path, values: dict[str, Any], place: tuple[int, int]
    ) -> None:
        maps = node.value[::-1] if isinstance(node, yaml.SequenceNode) else [node]
        for part in maps:
            if not isinstance(part, yaml.MappingNode):
                text = "yaml: map merge requires map or sequence of maps as the value"
                raise _UnreadableError(text, place)
            if id(part) in self.open:
                raise _UnreadableError("yaml: anchor value contains itself", place)
            self._fill(part, path, values)

    def _key(self, node: yaml.Node, value: yaml.Node, place: tuple[int, int]) -> str:
        """The field that a key names; a key must be a plain word."""
        if not isinstance(node, yaml.ScalarNode):
            raise _UnreadableError("yaml: invalid map key: a key must be a plain word", place)
        text = self._text(node)
        if text is not None:
            return text
        try:
            return key_of(node.value)
        except UnsupportedKeyError as error:
            shown = go_syntax(self._value(value, ()))
            text = f"unsupported map key of type: {error.kind}, key: {error.shown}, value: {shown}"
            raise _UnreadableError(text, place) from error


def _go_special(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"


def _text_of(node: yaml.ScalarNode, written_tag: str) -> str | None:
    """The text of a scalar that is a string by its form; None for a plain word."""
    text: str = node.value
    if written_tag == "!!binary" or node.tag == _BINARY_TAG:
        try:
            return base64.b64decode(text, validate=True).decode()
        except ValueError as error:
            raise yaml.YAMLError("!!binary value contains invalid base64 data") from error
    is_foreign = written_tag and node.tag not in _RESOLVED_TAGS
    is_text = node.tag == _STRING_TAG and (node.style or written_tag)
    return text if is_foreign or is_text else None


def _written_tag(line: str, column: int) -> str:
    """The tag in front of a scalar, if one is written; an anchor may precede it."""
    head = line[column:]
    if head.startswith("&"):
        head = head.partition(" ")[2].lstrip()
    return head.split(" ", 1)[0] if head.startswith("!") else ""


#: The key that kube-scheduler up to 1.22 read.
KEY: Final = "policy.cfg"


async def fetch_policy(connection: ConnectionOptions, namespace: str, name: str) -> str:
    """The text of the Policy. Raises ConnectError with one line and the fix."""
    from kubernetes_asyncio.client import CoreV1Api  # half a second, rarely needed

    where = f"configmap {namespace}/{name}"
    session = await connect(connection)
    try:
        core = CoreV1Api(await client_over(session.general, HANDSHAKE_TIMEOUT_S))
        found = await core.read_namespaced_config_map(name, namespace)
    except (ApiError, TransportError) as error:
        raise ConnectError(
            f"couldn't get policy config map {namespace}/{name}: {error};"
            " check --policy-configmap and --policy-configmap-namespace, and the right to get it"
        ) from error
    finally:
        await session.close()
    text = (found.data or {}).get(KEY)
    if text is None:
        raise ConnectError(f'{where} has no key "{KEY}"; put the Policy there')
    return text
