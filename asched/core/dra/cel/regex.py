r"""Regular expressions in linear time: RE2, whose dialect Go's package follows.

Any client that may create a claim can write a pattern, so that no pattern may cost more than its
length times that of the text; Python's own engine cannot guarantee that. Only whether a pattern
matches is returned.

`\C`, a single byte, is the only construct that RE2 accepts and Go does not. A few characters may
stand for a large automaton (`\pL{300}`), so that the cost of a match is its size; a pattern
beyond PATTERN_BYTES_MAX, where compiling alone would take longer than a selector may, is
rejected. Go's package is not so strict.
"""

import re
from functools import lru_cache
from typing import Any, Final

from asched.core.dra.cel.values import CelRuntimeError

#: Cached patterns. A client that may create claims can write any number of patterns, and each may
#: take twice PATTERN_BYTES_MAX (measured).
PATTERNS_MAX: Final = 128
#: Memory of one compiled pattern and of its automata (bytes): some 30 ms of compiling. RE2's
#: default is eight times as much.
PATTERN_BYTES_MAX: Final = 1 << 20
#: Cost of a rejected pattern, in steps.
REFUSED_STEPS: Final = 20_000
_SINGLE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)


@lru_cache(maxsize=PATTERNS_MAX)
def _compiled(text: str) -> Any:
    """The pattern of re2, or a CelRuntimeError if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    if _SINGLE_BYTE.match(text):
        why = r"invalid escape sequence: \C"
    else:
        try:
            return re2.compile(text, options)
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            why = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    return CelRuntimeError(f"regular expression {text!r}: {why}")


def compile_pattern(text: str) -> Any:
    """The pattern of re2, compiled once. Raises CelRuntimeError."""
    found = _compiled(text)
    if isinstance(found, CelRuntimeError):
        raise found.with_traceback(None)  # or the traceback would grow each time
    return found


def steps_of(text: str) -> int:
    """The size of the compiled pattern, the same whether it is cached or not."""
    found = _compiled(text)
    return REFUSED_STEPS if isinstance(found, CelRuntimeError) else int(found.programsize)
