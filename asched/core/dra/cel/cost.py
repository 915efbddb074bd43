"""Cost of a call: a tenth of the size of its operands, nested values included, and more where its
work or its result is larger than they are.

Lists may contain one another many times, so that a short expression may compare huge values:
sizes are counted before the call.

Source  kubernetes/kubernetes v1.36 apiserver/pkg/cel/library (cost.go); cel-go checker/cost.go
"""

from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.regex import steps_of
from asched.core.dra.cel.values import Optional

#: Cost of a call per so many characters or elements.
SHARE: Final = 10
#: ... and for each of so many characters of a pattern.
PATTERN_SHARE: Final = 4
#: ... and per so many instructions of the compiled pattern: half a microsecond each (measured).
STEPS_SHARE: Final = 2

_SIZED: Final = (str, bytes, list, dict, Optional)


def weight(value: Any, limit: int) -> int:
    """Characters and elements in a value, counted until there are more than `limit`."""
    total, todo = 0, [value]
    while todo and total <= limit:
        part = todo.pop()
        if isinstance(part, Optional):
            todo.append(part.value)
        elif isinstance(part, (str, bytes, list, dict)):
            total += len(part)
        if isinstance(part, (list, dict)):
            items = part.values() if isinstance(part, dict) else part
            todo += [item for item in items if isinstance(item, _SIZED)]
    return total


def _matches(text: str, pattern: str, *_: Any) -> int:
    """Includes compiling the pattern each time, so that the cost is deterministic."""
    work = (len(text) // SHARE + 1) * (len(pattern) // PATTERN_SHARE + 1)
    return work + steps_of(pattern) // STEPS_SHARE


def _replace(text: str, old: str, new: str, *_: Any) -> int:
    """Size of the result if every occurrence were replaced."""
    return str.count(text, old) * len(new) // SHARE


def _pairs(left: list[Any], right: list[Any], *_: Any) -> int:
    """Every element of one operand is compared with every element of the other."""
    return len(left) * len(right) // SHARE


def _sum(values: list[Any], *_: Any) -> int:
    """Texts and lists are concatenated one by one, copied each time."""
    sizes = (len(value) for value in values if isinstance(value, (str, bytes, list)))
    return len(values) * sum(sizes) // SHARE


#: Cost of functions beyond their operands, by name. Operands of wrong types may raise TypeError.
EXTRA: Final[dict[str, Callable[..., int]]] = {
    "matches": _matches,
    "replace": _replace,
    "join": lambda values, separator="", *_: _pairs(values, separator),
    "sum": _sum,
    "sets.contains": _pairs,
    "sets.equivalent": lambda left, right, *_: 2 * _pairs(left, right),
    "sets.intersects": lambda left, right, *_: _pairs(left, right) + _pairs(right, right),
}
