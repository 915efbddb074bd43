"""End the process by a signal where no event loop listens to it.

A handler that raises is not safe: the exception appears in whatever code runs at that moment, and
a callback of a parser or of the event loop turns it into an error of a connection, which is
retried. While a loop runs, its handlers wake it (`ending.py`). Without one there is nothing to give
back, and the process ends as by the kernel's default, which process 1 of a container lacks.
"""

import os


def end_at_once(number: int, _: object) -> None:
    """A handler: end with the status that a shell shows for a process ended by the signal."""
    os._exit(128 + number)
