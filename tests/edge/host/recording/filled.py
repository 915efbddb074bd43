"""Records with something in every field, made from their types."""

import types
import typing
from typing import Any, Union

import msgspec


def filled(kind: type[Any], depth: int = 0) -> Any:
    """A value of this type in which nothing is left at its default; deep recursions end."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return filled(next(one for one in arguments if one is not type(None)), depth)
    if origin is dict:
        return {filled(arguments[0], depth): filled(arguments[1], depth)}
    if origin in (tuple, list):
        return origin([filled(arguments[0], depth)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        names = [field.name for field in msgspec.structs.fields(kind)]
        return kind(**{name: filled(hints[name], depth + 1) for name in names})
    made = {str: "7", int: 3, bool: True, float: 1.5}
    if kind in made:
        return made[kind]
    if kind is Any:
        return {"any": ["thing"]}
    raise AssertionError(f"no value of {kind}")
