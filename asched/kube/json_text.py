"""JSON as text, before it is read."""

import re
from typing import Final

#: An escape in JSON; the group is half a letter without the other half.
_JSON_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def whole_letters(text: str) -> str:
    """JSON without halves of letters that it can escape: Go reads U+FFFD for each, and what has
    half a letter can be written nowhere.
    """
    return _JSON_ESCAPE.sub(lambda found: found[0] if found[1] is None else "\\ufffd", text)
