r"""Regular expressions in linear time: RE2, whose dialect Go's package follows.

Anybody who may create a claim may write a pattern, so no pattern may cost more than its length
times that of the text; Python's own engine cannot promise that. Only whether it matches is told.

`\C`, a single byte, is the one thing that RE2 knows and Go does not.
"""

import re
from functools import lru_cache
from typing import Any, Final

from asched.core.dra.cel.errors import CelRuntimeError

PATTERNS_MAX: Final = 1024
#: RE2's own default: the memory of one compiled pattern and of its automata (bytes).
PATTERN_BYTES_MAX: Final = 8 << 20
_SINGLE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)


class Pattern:
    """A compiled pattern. Raises CelRuntimeError if it is none."""

    __slots__ = ("_search",)

    def __init__(self, text: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = PATTERN_BYTES_MAX
        if _SINGLE_BYTE.match(text):
            raise _refused(text, r"invalid escape sequence: \C")
        try:
            self._search: Any = re2.compile(text, options).search
        except re2.error as error:
            said = error.args[0] if error.args else ""
            why = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            raise _refused(text, why) from None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return self._search(text) is not None


def _refused(text: str, why: str) -> CelRuntimeError:
    return CelRuntimeError(f"regular expression {text!r}: {why}")


@lru_cache(maxsize=PATTERNS_MAX)
def compile_pattern(text: str) -> Pattern:
    """The pattern, compiled once. Raises CelRuntimeError."""
    return Pattern(text)
