"""The graph a regular expression becomes: states, and the characters that lead on from them."""

from typing import NamedTuple

Ranges = tuple[tuple[int, int], ...]


class Chars(NamedTuple):
    """A set of characters."""

    ranges: Ranges
    negated: bool
    folded: bool

    def has(self, char: str) -> bool:
        forms = {char, char.lower(), char.upper()} if self.folded else {char}
        inside = any(
            low <= ord(f) <= high for f in forms if len(f) == 1 for low, high in self.ranges
        )
        return inside is not self.negated


class State(NamedTuple):
    """`chars` is eaten on the way, `asserts` must hold, or neither; `next` are what follows."""

    chars: Chars | None
    asserts: str
    next: tuple[int, ...]
