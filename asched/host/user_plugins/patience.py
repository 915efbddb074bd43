"""Code of others, run where it can neither end the process nor be waited for without end."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotInTimeError(Exception):
    """It had not ended by then; it goes on in its thread, and nobody asks what becomes of it."""


def within(seconds: float, work: Callable[[], T], name: str = "plugin") -> T:
    """What it returns or raises, SystemExit too: in a thread it ends only that. Raises
    NotInTimeError.
    """
    ends: list[tuple[list[T], BaseException | None]] = []

    def live() -> None:
        try:
            ends.append(([work()], None))
        except BaseException as error:  # noqa: BLE001 - raised below
            ends.append(([], error))

    thread = threading.Thread(target=live, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if not ends:
        raise NotInTimeError
    returned, error = ends[0]
    if error is not None:
        raise error
    return returned[0]
