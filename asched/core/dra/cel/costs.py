"""What a call costs: a tenth of what its operands hold, all the way down, and more where its work
or its answer is larger than they are.

Lists may hold one another many times over, so that a short expression compares more than there is
time for: everything is counted before it is looked at.

Source  kubernetes/kubernetes v1.36 apiserver/pkg/cel/library (cost.go); cel-go checker/cost.go
"""

from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.regex import steps_of
from asched.core.dra.cel.values import Optional

#: Units a call costs for each of so many characters or elements.
SHARE: Final = 10
#: ... and for each of so many characters of a pattern.
PATTERN_SHARE: Final = 4
#: ... and for each of so many steps that it is compiled to: half a microsecond for one (measured).
STEPS_SHARE: Final = 2

_SIZED: Final = (str, bytes, list, dict, Optional)


def weight(value: Any, limit: int) -> int:
    """Characters and elements in a value, counted until there are more than `limit`."""
    total, todo = 0, [value]
    while todo and total <= limit:
        one = todo.pop()
        if isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, list):
            total += len(one)
            todo += [item for item in one if isinstance(item, _SIZED)]
        elif isinstance(one, dict):
            total += len(one)
            todo += [item for item in one.values() if isinstance(item, _SIZED)]
        elif isinstance(one, Optional):
            todo.append(one.value)
    return total


def _matches(text: Any, pattern: Any, *_: Any) -> int:
    """And what it takes to compile the pattern, each time, so that a cost never varies."""
    steps = steps_of(pattern) if isinstance(pattern, str) else 0
    work = (_length(text) // SHARE + 1) * (_length(pattern) // PATTERN_SHARE + 1)
    return work + steps // STEPS_SHARE


def _replace(text: Any, old: Any, new: Any, *_: Any) -> int:
    """Of the answer, if every occurrence were replaced."""
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 0
    return text.count(old) * len(new) // SHARE


def _join(values: Any, separator: Any = "", *_: Any) -> int:
    return _length(values) * _length(separator) // SHARE


def _pairs(left: Any, right: Any, *_: Any) -> int:
    """Every element of one is compared to every one of the other."""
    return _length(left) * _length(right) // SHARE


def _intersects(left: Any, right: Any, *_: Any) -> int:
    return _pairs(left, right) + _pairs(right, right)


def _sum(values: Any, *_: Any) -> int:
    """Texts and lists are put together one after the other, each time anew."""
    if not isinstance(values, list):
        return 0
    return len(values) * sum(_length(value) for value in values) // SHARE


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, dict)) else 0


#: What the work of a function costs beyond its operands, by the function's name.
EXTRA: Final[dict[str, Callable[..., int]]] = {
    "matches": _matches,
    "replace": _replace,
    "join": _join,
    "sum": _sum,
    "sets.contains": _pairs,
    "sets.equivalent": lambda left, right, *_: 2 * _pairs(left, right),
    "sets.intersects": _intersects,
}
