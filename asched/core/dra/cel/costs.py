"""Cost of a call: a tenth of the size of its operands, nested values included, and more where its
work or its result is larger than they are.

Lists may contain one another many times, so that a short expression may compare huge values: sizes
are counted before the call.

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
        if isinstance(part, (str, bytes)):
            total += len(part)
        elif isinstance(part, list):
            total += len(part)
            todo += [item for item in part if isinstance(item, _SIZED)]
        elif isinstance(part, dict):
            total += len(part)
            todo += [item for item in part.values() if isinstance(item, _SIZED)]
        elif isinstance(part, Optional):
            todo.append(part.value)
    return total


def _matches(text: Any, pattern: Any, *_: Any) -> int:
    """Includes compiling the pattern each time, so that the cost is deterministic."""
    steps = steps_of(pattern) if isinstance(pattern, str) else 0
    work = (_length(text) // SHARE + 1) * (_length(pattern) // PATTERN_SHARE + 1)
    return work + steps // STEPS_SHARE


def _replace(text: Any, old: Any, new: Any, *_: Any) -> int:
    """Size of the result if every occurrence were replaced."""
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 0
    return text.count(old) * len(new) // SHARE


def _join(values: Any, separator: Any = "", *_: Any) -> int:
    return _length(values) * _length(separator) // SHARE


def _pairs(left: Any, right: Any, *_: Any) -> int:
    """Every element of one operand is compared with every element of the other."""
    return _length(left) * _length(right) // SHARE


def _intersects(left: Any, right: Any, *_: Any) -> int:
    return _pairs(left, right) + _pairs(right, right)


def _sum(values: Any, *_: Any) -> int:
    """Texts and lists are concatenated one by one, copied each time."""
    if not isinstance(values, list):
        return 0
    return len(values) * sum(_length(value) for value in values) // SHARE


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, dict)) else 0


#: Cost of functions beyond their operands, by name.
EXTRA: Final[dict[str, Callable[..., int]]] = {
    "matches": _matches,
    "replace": _replace,
    "join": _join,
    "sum": _sum,
    "sets.contains": _pairs,
    "sets.equivalent": lambda left, right, *_: 2 * _pairs(left, right),
    "sets.intersects": _intersects,
}
