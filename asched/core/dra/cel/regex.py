"""Regular expressions in linear time, as RE2 has them.

Anybody who may create a claim may write a pattern, so no pattern may cost more than its length
times that of the text; Python's own engine cannot promise that. A pattern becomes a graph of
states, and a text is walked once with the set of states it could be in. Only whether it matches is
told.

Left out, as RE2 leaves it out: look-around and back references. Left out besides: Unicode classes.
Bounds  WORK_MAX states times characters, and those of the parser.
"""

from functools import lru_cache
from typing import Final

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.regex_parser import WORD, PatternParser
from asched.core.dra.cel.regex_states import State

#: A second or so at 1 us for a state and a character. Attributes have at most 64 characters.
WORK_MAX: Final = 1_000_000
PATTERNS_MAX: Final = 1024


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        self.states: list[State] = [State(None, "end", ())]
        self._start = PatternParser(text, self.states).parse()(0)

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the text. Raises CelRuntimeError if that is too much."""
        if len(self.states) * (len(text) + 1) > WORK_MAX:
            raise CelRuntimeError("regular expression and string are too long together")
        current: set[int] = set()
        for at in range(len(text) + 1):
            current = self._closure({*current, self._start}, text, at)
            if 0 in current:
                return True
            if at < len(text):
                current = self._eat(current, text[at])
        return False

    def _eat(self, current: set[int], char: str) -> set[int]:
        states = self.states
        return {
            following
            for index in current
            if (chars := states[index].chars) is not None and chars.has(char)
            for following in states[index].next
        }

    def _closure(self, begin: set[int], text: str, at: int) -> set[int]:
        """Everything that can be reached without eating."""
        seen, todo = set(begin), list(begin)
        while todo:
            state = self.states[todo.pop()]
            if state.chars is not None or (state.asserts and not _holds(state.asserts, text, at)):
                continue
            for following in state.next:
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen


def _holds(kind: str, text: str, at: int) -> bool:
    if kind in ("b", "B"):
        sides = [0 <= i < len(text) and _is_word(text[i]) for i in (at - 1, at)]
        return (sides[0] is not sides[1]) is (kind == "b")
    if kind == "begin":
        return at == 0
    if kind == "finish":
        return at == len(text)
    if kind == "line begin":
        return at == 0 or text[at - 1] == "\n"
    return at == len(text) or text[at] == "\n"


def _is_word(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in WORD)


@lru_cache(maxsize=PATTERNS_MAX)
def compile_pattern(text: str) -> Pattern:
    """The pattern, compiled once. Raises CelRuntimeError."""
    return Pattern(text)
