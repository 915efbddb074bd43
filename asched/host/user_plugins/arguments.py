"""From `pluginConfig[].args` to the parameters of `__init__`.

Rules   a plugin whose `__init__` takes only `self` must not have args; an `args` parameter
        annotated with a dataclass is decoded strictly: unknown names, wrong types and missing
        values are errors with their place; without an annotation it is the mapping as written, or
        an empty one; names may be written `like_this` or `likeThis`, or as the field's metadata
        say (`{"name": "milliCPU"}`); `cluster` is the state to read, `api` makes clients of the
        API server (`kube/typed.py`).
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any, Final

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.config.problem import did_you_mean
from asched.core.framework.points import Plugin
from asched.core.framework.status import MISTAKES
from asched.kube.typed import ApiAccess

#: Parameters that are passed besides the arguments.
OFFERED: Final = ("cluster", "api")
KNOWN: Final = ("args", *OFFERED)


class ArgsError(ValueError):
    """Invalid args; the text names the field."""


def instance_of(cls: type[Any], args: Any, cluster: Cluster) -> Any:
    """Create an instance of a user's class. Raises ArgsError with one line."""
    given = arguments(cls, args, cluster)
    try:
        return cls(*given)
    except ArgsError:
        raise
    except MISTAKES as error:
        raise ArgsError(f"{type(error).__name__}: {error}") from error


def arguments(cls: type[Any], args: Any, cluster: Cluster | None = None) -> list[Any]:
    """The values for `__init__`. Raises ArgsError; no code of the user runs."""
    wanted = _parameters(cls)
    given: list[Any] = []
    takes_args = False
    for name, annotation in wanted:
        if name == "cluster":
            given.append(cluster)
        elif name == "api":
            given.append(None if cluster is None else cluster.singleton(ApiAccess))
        else:
            takes_args = True
            given.append(decoded(args, annotation))
    if args and not takes_args:
        raise ArgsError(f"takes no args, but is given {', '.join(sorted(args))}")
    return given


def takes_cluster(cls: type[Any]) -> bool:
    """Whether `__init__` has a parameter for the state; False if that cannot be determined."""
    try:
        return any(name == "cluster" for name, _ in _parameters(cls))
    except ArgsError:
        return False


def _parameters(cls: type[Any]) -> list[tuple[str, Any]]:
    """(name, annotation) of the parameters of `__init__`."""
    if cls.__init__ in (object.__init__, Plugin.__init__):
        return []
    try:
        hints = typing.get_type_hints(cls.__init__)
    except Exception as error:
        raise ArgsError(f"the annotations of __init__ cannot be read: {error}") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    annotated = [
        (parameter.name, hints.get(parameter.name))
        for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if parameter.kind in positional
        and (parameter.default is inspect.Parameter.empty or parameter.name in KNOWN)
    ]
    if sum(name not in OFFERED for name, _ in annotated) > 1:
        listed = ", ".join(name for name, _ in annotated)
        raise ArgsError(f"__init__ takes ({listed}), only args, cluster and api are allowed")
    return annotated


def decoded(args: Any, annotation: Any) -> Any:
    """The args as the annotated type."""
    if args is None:
        args = {}
    if not isinstance(args, Mapping):
        raise ArgsError(f"args must be a mapping, not {type(args).__name__}")
    if annotation is None or not dataclasses.is_dataclass(annotation):
        return args
    try:
        return msgspec.convert(_renamed(args, annotation, "args"), annotation, strict=True)
    except ArgsError:
        raise
    except msgspec.ValidationError as error:
        raise ArgsError(_placed(str(error))) from error
    except MISTAKES as error:  # of the user's code, or an unsupported type
        what = getattr(annotation, "__name__", annotation)
        raise ArgsError(f"no {what} can be made: {type(error).__name__}: {error}") from error


def _placed(text: str) -> str:
    """Convert msgspec's `… - at `$.price`` to `args.price: …`."""
    what, _, where = text.partition(" - at `$")
    return f"args{where.rstrip('`')}: {what[:1].lower()}{what[1:]}"


def _renamed(given: Mapping[str, Any], cls: Any, where: str) -> dict[str, Any]:
    """The args with field names; unknown names are refused, in nested dataclasses too."""
    hints = typing.get_type_hints(cls)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    names = {_spelled(field): field.name for field in dataclasses.fields(cls)}
    spelled = {name: name for name in fields} | names
    result: dict[str, Any] = {}
    for key, value in given.items():
        name = spelled.get(key)
        if name is None:
            hint = did_you_mean(key, list(spelled))
            text = f"{where}.{key}: unknown field" + (f" ({hint})" if hint else "")
            raise ArgsError(f"{text}; known fields: {', '.join(names) or 'none'}")
        result[name] = _inner(value, fields[name], f"{where}.{key}")
    return result


def _inner(value: Any, annotation: Any, where: str) -> Any:
    """A value with the field names of all dataclasses within its annotation."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        # msgspec allows at most one type made of a mapping and one made of a list
        tried = (_inner(value, part, where) for part in parts)
        return next((candidate for candidate in tried if candidate is not value), value)
    if dataclasses.is_dataclass(annotation) and isinstance(value, Mapping):
        return _renamed(value, annotation, where)
    if not isinstance(origin, type) or not parts:
        return value
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return value
        return {key: _inner(item, parts[-1], f"{where}.{key}") for key, item in value.items()}
    if not isinstance(value, list):
        return value
    is_row = origin is tuple and parts[-1] is not Ellipsis  # each item has a type of its own
    each = chain(parts, repeat(None)) if is_row else repeat(parts[0])
    pairs = enumerate(zip(value, each, strict=False))
    return [_inner(item, of, f"{where}[{i}]") for i, (item, of) in pairs]


def _spelled(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("name", "")) or camel(field.name)


def camel(name: str) -> str:
    """`cpu_price` as in configuration files: `cpuPrice`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
