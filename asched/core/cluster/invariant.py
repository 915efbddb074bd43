"""The error that ends the process: the columns no longer match the known objects."""

from typing import Final

CAUSE_CHARS_MAX: Final = 500


class InvariantError(BaseException):
    """A broken invariant of the columns, named by the message.

    Not an Exception, so that no handler for exceptions contains it: every later decision would be
    based on wrong sums, while a new process reads everything again.
    """


def broken(invariant: str, cause: BaseException) -> InvariantError:
    """The error for a change of the columns that an exception interrupted."""
    text = f"{type(cause).__name__}: {cause}"[:CAUSE_CHARS_MAX]
    return InvariantError(f"broken invariant of the columns: {invariant} ({text})")
