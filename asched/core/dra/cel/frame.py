"""State of an evaluation: bound names, and the remaining cost, which calls and patterns reduce."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from asched.core.dra.cel.values import CelRuntimeError, Optional

# Regular expressions in linear time: RE2, whose dialect Go's package follows.
#
# Any client that may create a claim can write a pattern, so that no pattern may cost more than its
# length times that of the text; Python's own engine cannot guarantee that. Only whether a pattern
# matches is returned.
#
# `\C`, a single byte, is the only construct that RE2 accepts and Go does not. A few characters may
# stand for a large automaton (`\pL{300}`), so that the cost of a match is its size; a pattern
# beyond PATTERN_BYTES_MAX, where compiling alone would take longer than a selector may, is
# rejected. Go's package is not so strict.

#: Cached patterns. A client that may create claims can write any number of patterns, and each may
#: take twice PATTERN_BYTES_MAX (measured).
PATTERNS_MAX: Final = 128
#: Memory of one compiled pattern and of its automata (bytes): some 30 ms of compiling. RE2's
#: default is eight times as much.
PATTERN_BYTES_MAX: Final = 1 << 20
#: Cost of a rejected pattern, in steps.
REFUSED_STEPS: Final = 20_000
_SINGLE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)


class Pattern:
    """A compiled pattern with its size. Raises CelRuntimeError if it is invalid."""

    __slots__ = ("_search", "steps")

    def __init__(self, text: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = PATTERN_BYTES_MAX
        if _SINGLE_BYTE.match(text):
            raise _refused(text, r"invalid escape sequence: \C")
        try:
            compiled: Any = re2.compile(text, options)
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            why = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
            raise _refused(text, why) from None
        self._search = compiled.search
        self.steps: int = compiled.programsize

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return self._search(text) is not None


def _refused(text: str, why: str) -> CelRuntimeError:
    return CelRuntimeError(f"regular expression {text!r}: {why}")


@lru_cache(maxsize=PATTERNS_MAX)
def _compiled(text: str) -> Pattern | CelRuntimeError:
    try:
        return Pattern(text)
    except CelRuntimeError as error:
        return error


def compile_pattern(text: str) -> Pattern:
    """The pattern, compiled once. Raises CelRuntimeError."""
    found = _compiled(text)
    if isinstance(found, CelRuntimeError):
        raise found.with_traceback(None)  # or the traceback would grow each time
    return found


def steps_of(text: str) -> int:
    """The size of the compiled pattern, the same whether it is cached or not."""
    found = _compiled(text)
    return REFUSED_STEPS if isinstance(found, CelRuntimeError) else found.steps


# Cost of a call: a tenth of the size of its operands, nested values included, and more where its
# work or its result is larger than they are.
#
# Lists may contain one another many times, so that a short expression may compare huge values:
# sizes are counted before the call.
#
# Source  kubernetes/kubernetes v1.36 apiserver/pkg/cel/library (cost.go); cel-go checker/cost.go

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


#: Cost limit of one evaluation: some 40 ms, since it cannot be interrupted. The API's own limit
#: (CELSelectorExpressionMaxCost) is twenty times as much; selectors cost ten to a hundred.
COST_MAX: Final = 50_000


class Frame:
    __slots__ = ("_left", "_max", "variables")

    def __init__(self, variables: dict[str, Any], cost_max: int = COST_MAX) -> None:
        self.variables = variables
        self._left = self._max = cost_max

    def spend(self, cost: int) -> None:
        """Raises CelRuntimeError once the limit is passed."""
        self._left -= cost
        if self._left < 0:
            raise CelRuntimeError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, values: list[Any], extra: Callable[..., int] | None) -> None:
        """Charge one for the call, plus the size of its operands, plus its extra work
        (`EXTRA`, which raises TypeError for a wrong number of operands).
        """
        limit = SHARE * self._left
        self.spend(1 + sum(weight(value, limit) // SHARE for value in values))
        if extra is not None:
            self.spend(extra(*values))

    @property
    def spent(self) -> int:
        return self._max - self._left

    @property
    def is_exhausted(self) -> bool:
        return self._left < 0


Evaluate = Callable[[Frame], Any]
