"""Repair JSON of a server that a decoder here refuses and Go decodes.

A tenant controls some parts of an object that the API server does not interpret: managedFields,
parameters of drivers. Go decodes all of it; a decoder here fails at a thousand levels of nesting,
at half a surrogate pair and at invalid UTF-8. Such bytes are repaired as little as possible:

    invalid UTF-8, halves of surrogate pairs              U+FFFD, as Go's encoding/json reads them
    lists and mappings on level LEVELS_MAX + 1            empty

No field that is used is nested so deeply, except parameters of drivers; a claim whose parameters
were cut is stored and not allocated (`core/model/claim.py`).

Bounds  a repair takes some 100 ms for the largest object that an API server accepts (3 MiB)
"""

from string import hexdigits
from typing import Final

import numpy as np

#: Typed fields of the API end at some 15 levels, and a list adds two.
LEVELS_MAX: Final = 128
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_UNKNOWN: Final = rb"\ufffd"
#: By byte: the value of a hexadecimal digit, -1 for other bytes. First halves are \ud800 and up,
#: second halves \udc00 and up.
_NIBBLES: Final = np.array([int(chr(n), 16) if chr(n) in hexdigits else -1 for n in range(256)])
_FIRST_HALF, _SECOND_HALF = 8, 12
#: By byte: the change of depth, and whether a list, mapping or string begins or ends with it.
_STEPS: Final = np.zeros(256, dtype=np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1
_MARKS: Final = _STEPS != 0
_MARKS[_QUOTE] = True


def mended(data: bytes) -> bytes:
    """Equivalent JSON for decoders that are stricter than Go's."""
    return _shallow(whole_letters(data.decode("utf-8", "replace").encode()))


def whole_letters(data: bytes) -> bytes:
    """Replace each escaped half of a surrogate pair without its other half by U+FFFD."""
    rest = len(_UNKNOWN) - 1
    text = np.frombuffer(data.replace(rb"\\", b"__") + b"_" * rest, dtype=np.uint8)
    places = np.flatnonzero(text[:-rest] == _BACKSLASH)
    is_half = (text[places + 1] == ord("u")) & (text[places + 2] | 0x20 == ord("d"))
    is_half &= _NIBBLES[text[places + 3]] >= _FIRST_HALF
    is_half &= (_NIBBLES[text[places + 4]] >= 0) & (_NIBBLES[text[places + 5]] >= 0)
    places = places[is_half]
    if not len(places):
        return data
    is_first = _NIBBLES[text[places + 3]] < _SECOND_HALF
    is_pair = is_first[:-1] & ~is_first[1:] & (np.diff(places) == len(_UNKNOWN))
    is_lone = np.ones(len(places), dtype=bool)
    is_lone[:-1] &= ~is_pair
    is_lone[1:] &= ~is_pair
    mended = np.frombuffer(data, dtype=np.uint8).copy()
    for offset, letter in enumerate(_UNKNOWN):
        mended[places[is_lone] + offset] = letter
    return mended.tobytes()


def _shallow(data: bytes) -> bytes:
    """Empty lists and mappings that begin below LEVELS_MAX; no recursion. Text with unbalanced
    brackets is unchanged.
    """
    unescaped = data.replace(rb"\\", b"__").replace(rb"\"", b"__")
    text = np.frombuffer(unescaped, dtype=np.uint8)
    places = np.flatnonzero(_MARKS[text])
    is_quote = text[places] == _QUOTE
    is_bracket = ~is_quote & (np.cumsum(is_quote, dtype=np.uint8) % 2 == 0)
    places = places[is_bracket]
    steps = _STEPS[text[places]]
    depths = np.cumsum(steps, dtype=np.int32)
    begins = places[(depths == LEVELS_MAX + 1) & (steps > 0)]
    ends = places[(depths == LEVELS_MAX) & (steps < 0)]
    if not len(begins) or len(begins) != len(ends):
        return data
    change = np.zeros(len(text) + 1, dtype=np.int8)
    change[begins + 1] += 1
    change[ends] -= 1
    is_kept = np.cumsum(change[:-1], dtype=np.int8) == 0
    kept: bytes = np.frombuffer(data, dtype=np.uint8)[is_kept].tobytes()
    return kept
