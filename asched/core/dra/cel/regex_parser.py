"""Patterns to graphs: recursive descent over RE2's syntax.

Bounds  REPEAT_MAX as in RE2; STATES_MAX states after repetitions are written out; DEPTH_MAX groups.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.regex_states import Chars, Ranges, State

#: RE2's own bound of a counted repetition.
REPEAT_MAX: Final = 1000
STATES_MAX: Final = 5000
DEPTH_MAX: Final = 50

_DIGIT: Final[Ranges] = ((48, 57),)
WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_CLASSES: Final = {"d": _DIGIT, "w": WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "digit": _DIGIT,
    "lower": ((97, 122),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ANY: Final[Ranges] = ((0, 0x10FFFF),)

#: Given the state that follows, builds a piece in front of it and returns where it begins.
Piece = Callable[[int], int]


class _Flags(NamedTuple):
    folded: bool = False
    dot_all: bool = False
    multiline: bool = False


class PatternParser:
    """Recursive descent; pieces are built from the end, so that each knows what follows it."""

    def __init__(self, text: str, states: list[State]) -> None:
        self._text = text
        self._states = states
        self._at = 0
        self._flags = _Flags()
        self._depth = 0

    def parse(self) -> Piece:
        piece = self._alternatives()
        if self._at < len(self._text):
            raise self._error("unexpected )")
        return piece

    # --- structure -------------------------------------------------------------------------------

    def _alternatives(self) -> Piece:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error("nested too deeply")
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._depth -= 1
        if len(choices) == 1:
            return choices[0]
        return lambda after: self._add(State(None, "", tuple(piece(after) for piece in choices)))

    def _sequence(self) -> Piece:
        pieces: list[Piece] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            pieces.append(self._repeated())

        def build(after: int) -> int:
            for piece in reversed(pieces):
                after = piece(after)
            return after

        return build

    def _repeated(self) -> Piece:
        piece = self._atom()
        while (bounds := self._bounds()) is not None:
            piece = self._repeat(piece, *bounds)
        return piece

    def _bounds(self) -> tuple[int, int | None] | None:
        found: tuple[int, int | None] | None = None
        if self._take("*"):
            found = (0, None)
        elif self._take("+"):
            found = (1, None)
        elif self._take("?"):
            found = (0, 1)
        elif self._text.startswith("{", self._at):
            found = self._counted()
        if found is not None:
            self._take("?")  # fewer or more makes no difference to whether it matches
            if self._text[self._at : self._at + 1] == "+":
                raise self._error("possessive repetition is not supported")
        return found

    def _counted(self) -> tuple[int, int | None] | None:
        close = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : close].partition(",")
        if close < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            return None  # an ordinary brace
        if len(low) > 4 or len(high) > 4 or max(int(low), int(high or 0)) > REPEAT_MAX:
            raise self._error(f"repetition beyond {REPEAT_MAX}")
        self._at = close + 1
        most = int(high) if high else (None if comma else int(low))
        if most is not None and most < int(low):
            raise self._error("repetition from more to fewer")
        return int(low), most

    def _repeat(self, piece: Piece, low: int, high: int | None) -> Piece:
        def build(after: int) -> int:
            if high is None:
                loop = self._add(State(None, "", (after,)))
                self._states[loop] = State(None, "", (piece(loop), after))
                begin = loop
            else:
                begin = after
                for _ in range(high - low):
                    begin = self._add(State(None, "", (piece(begin), after)))
            for _ in range(low):
                begin = piece(begin)
            return begin

        return build

    # --- atoms -----------------------------------------------------------------------------------

    def _atom(self) -> Piece:
        char = self._text[self._at]
        self._at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._eater(self._char_class())
        if char == ".":
            newline: Ranges = () if self._flags.dot_all else ((10, 10),)
            return self._eater(Chars(newline, negated=True, folded=False))
        if char == "^":
            return self._asserter("line begin" if self._flags.multiline else "begin")
        if char == "$":
            return self._asserter("line finish" if self._flags.multiline else "finish")
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise self._error("nothing to repeat")
        return self._eater(self._one(ord(char)))

    def _group(self) -> Piece:
        outer = self._flags
        if self._take("?"):
            if self._take("P<") or (
                self._text[self._at : self._at + 2] not in ("<=", "<!") and self._take("<")
            ):
                close = self._text.find(">", self._at)
                if not self._text[self._at : close].isidentifier():
                    raise self._error("bad name of a group")
                self._at = close + 1
            elif not self._read_flags():
                return lambda after: after  # flags for the rest of the group around
        piece = self._alternatives()
        if not self._take(")"):
            raise self._error("missing )")
        self._flags = outer
        return piece

    def _read_flags(self) -> bool:
        """`i`, `m`, `s`, `U` and `-`; True if a group follows, False if they end with `)`."""
        value = True
        flags = self._flags
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            match char:
                case "i":
                    flags = flags._replace(folded=value)
                case "m":
                    flags = flags._replace(multiline=value)
                case "s":
                    flags = flags._replace(dot_all=value)
                case "U":
                    pass
                case "-":
                    value = False
                case ":" | ")":
                    self._flags = flags
                    return char == ":"
                case _:
                    break
        raise self._error("this kind of group is not supported")

    def _escape(self) -> Piece:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char in ("b", "B"):
            return self._asserter(char)
        if char == "A":
            return self._asserter("begin")
        if char == "z":
            return self._asserter("finish")
        if char and char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]
            return self._eater(Chars(ranges, negated=char.isupper(), folded=False))
        return self._eater(self._one(self._code(char)))

    def _code(self, char: str) -> int:
        """The character an escape stands for."""
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            braced = self._take("{")
            close = self._text.find("}", self._at) if braced else self._at + 2
            digits = self._text[self._at : close]
            try:
                code = int(digits, 16) if len(digits) <= 6 else -1
            except ValueError:
                code = -1
            if close < 0 or not 0 <= code <= 0x10FFFF:
                raise self._error("bad character code")
            self._at = close + braced
            return code
        if not char or char.isalnum():
            raise self._error(f"escape \\{char} is not supported")
        return ord(char)

    def _char_class(self) -> Chars:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self._text.startswith("]", self._at):
            first = False
            if self._at >= len(self._text):
                raise self._error("missing ]")
            if (named := self._named_class()) is not None:
                ranges += named
                continue
            low = high = self._class_char()
            following = self._text[self._at : self._at + 2]
            if following.startswith("-") and following != "-]" and len(following) == 2:
                self._at += 1
                high = self._class_char()
            if high < low:
                raise self._error("range from more to less")
            ranges.append((low, high))
        self._at += 1
        return Chars(tuple(ranges), negated=negated, folded=self._flags.folded)

    def _named_class(self) -> Ranges | None:
        """A class with a name, such as `[:alpha:]`, or its opposite."""
        if self._text.startswith("[:", self._at):
            close = self._text.find(":]", self._at)
            name = self._text[self._at + 2 : close] if close > 0 else ""
            negated = name.startswith("^")
            if name.lstrip("^") not in _POSIX:
                raise self._error("unknown class of characters")
            self._at = close + 2
            found = _POSIX[name.lstrip("^")]
            return _opposite(found) if negated else found
        name = self._text[self._at + 1 : self._at + 2]
        if self._text.startswith("\\", self._at) and name and name.lower() in _CLASSES:
            self._at += 2
            found = _CLASSES[name.lower()]
            return _opposite(found) if name.isupper() else found
        return None

    def _class_char(self) -> int:
        char = self._text[self._at]
        self._at += 1
        if char != "\\":
            return ord(char)
        escaped = self._text[self._at : self._at + 1]
        self._at += 1
        return self._code(escaped)

    # --- states ----------------------------------------------------------------------------------

    def _one(self, code: int) -> Chars:
        return Chars(((code, code),), negated=False, folded=self._flags.folded)

    def _eater(self, chars: Chars) -> Piece:
        return lambda after: self._add(State(chars, "", (after,)))

    def _asserter(self, kind: str) -> Piece:
        return lambda after: self._add(State(None, kind, (after,)))

    def _add(self, state: State) -> int:
        if len(self._states) >= STATES_MAX:
            raise self._error(f"more than {STATES_MAX} states")
        self._states.append(state)
        return len(self._states) - 1

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _error(self, message: str) -> CelRuntimeError:
        return CelRuntimeError(f"regular expression {self._text!r}: {message}")


def _opposite(ranges: Ranges) -> Ranges:
    found = []
    low = 0
    for first, last in sorted(ranges):
        if low < first:
            found.append((low, first - 1))
        low = last + 1
    return (*found, (low, 0x10FFFF))
