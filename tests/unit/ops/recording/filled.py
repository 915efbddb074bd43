"""Records with something in every field, made from their types."""

import types
import typing
from typing import Any, Union

import msgspec


def filled(kind: type[Any], *, text: str = "7") -> Any:
    """A value of this type in which nothing is left at its default; strings are `text`, which has
    to be a quantity.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return filled(next(one for one in arguments if one is not type(None)), text=text)
    if origin is dict:
        return {filled(arguments[0], text=text): filled(arguments[1], text=text)}
    if origin in (tuple, list):
        return origin([filled(arguments[0], text=text)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        names = [field.name for field in msgspec.structs.fields(kind)]
        return kind(**{name: filled(hints[name], text=text) for name in names})
    made = {str: text, int: 3, bool: True, float: 1.5}
    if kind in made:
        return made[kind]
    if kind is Any:
        return {"any": [text]}
    raise AssertionError(f"no value of {kind}")
