"""Read fields of JSON values as Go's decoder does: keys in any case, and the same error messages.

Extenders are written against kube-scheduler. Their authors know these messages, which appear in the
pod's condition.

Rules   a key is matched exactly or else regardless of its case, unknown keys are ignored, null
        leaves the zero value; `FieldPlace` is the location of a value in the answer.
Source  encoding/json of Go 1.25 (UnmarshalTypeError)
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class WireError(ValueError):
    """A value of the wrong type or range for its field."""


class FieldPlace(NamedTuple):
    """The struct of a value and the path from the outermost struct; both empty outside."""

    struct: str = ""
    path: tuple[str, ...] = ()

    def field(self, struct: str, name: str) -> "FieldPlace":
        return FieldPlace(struct, (*self.path, name))


OUTSIDE: Final = FieldPlace()


def mismatch(value: Any, go_type: str, place: FieldPlace) -> WireError:
    """The error for a value of the wrong type."""
    where = f"struct field {place.struct}.{'.'.join(place.path)}" if place.struct else "value"
    return WireError(f"json: cannot unmarshal {_named(value)} into Go {where} of type {go_type}")


def _named(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def fields(value: Any, go_type: str, place: FieldPlace, known: Sequence[str]) -> dict[str, Any]:
    """The known fields of an object, by their Go names; {} for null."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise mismatch(value, go_type, place)
    by_folded = {name.lower(): name for name in known}
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = by_folded.get(key.lower())
        if name is not None and (item is not None or name not in found):
            found[name] = item
    return found


def text(value: Any, place: FieldPlace) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise mismatch(value, "string", place)
    return value


def integer(value: Any, place: FieldPlace, go_type: str = "int64") -> int:
    """A whole number of 64 bits; 0 for null."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mismatch(value, go_type, place)
    if isinstance(value, float) or not INT64_MIN <= value <= INT64_MAX:
        where = f"struct field {place.struct}.{'.'.join(place.path)}" if place.struct else "value"
        raise WireError(f"json: cannot unmarshal number {value} into Go {where} of type {go_type}")
    return value


def items(value: Any, go_type: str, place: FieldPlace) -> list[Any] | None:
    """A list; None for null."""
    if value is not None and not isinstance(value, list):
        raise mismatch(value, go_type, place)
    return value


def entries(value: Any, go_type: str, place: FieldPlace) -> dict[str, Any]:
    """A map; {} for null."""
    if value is not None and not isinstance(value, dict):
        raise mismatch(value, go_type, place)
    return value or {}
