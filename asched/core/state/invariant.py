"""What ends the process: the columns do not show what is known any more."""

from typing import Final

CAUSE_CHARS_MAX: Final = 500


class InvariantError(BaseException):
    """An invariant of the columns is broken; the message names it.

    It is no Exception, so that nothing that contains exceptions contains it: every later decision
    would rest on wrong sums, while a new process reads everything anew.
    """


def broken(invariant: str, cause: BaseException) -> InvariantError:
    """The error for a change of the columns that an exception ended halfway."""
    text = f"{type(cause).__name__}: {cause}"[:CAUSE_CHARS_MAX]
    return InvariantError(f"broken invariant of the columns: {invariant} ({text})")
