r"""Regular expressions in linear time: RE2, whose dialect Go's package follows.

Any client that may create a claim can write a pattern, so that no pattern may cost more than its
length times that of the text; Python's own engine cannot guarantee that. Only whether a pattern
matches is returned.

`\C`, a single byte, is the only construct that RE2 accepts and Go does not. A few characters may
stand for a large automaton (`\pL{300}`), so that the cost of a match is its size; a pattern beyond
PATTERN_BYTES_MAX, where compiling alone would take longer than a selector may, is rejected. Go's
package is not so strict.
"""

import re
from functools import lru_cache
from typing import Any, Final

from asched.core.dra.cel.errors import CelRuntimeError

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
