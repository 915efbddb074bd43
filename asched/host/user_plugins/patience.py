"""Run users' code with a time limit, so that it cannot end the process."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotInTimeError(Exception):
    """The code was still running; its thread continues and its result is ignored."""


def within(seconds: float, work: Callable[[], T], name: str = "plugin") -> T:
    """The result or exception of `work`, SystemExit too: in a thread it ends only that. Raises
    NotInTimeError.
    """
    ends: list[tuple[list[T], BaseException | None]] = []

    def run() -> None:
        try:
            ends.append(([work()], None))
        except BaseException as error:  # noqa: BLE001 - raised below
            ends.append(([], error))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if not ends:
        raise NotInTimeError
    returned, error = ends[0]
    if error is not None:
        raise error
    return returned[0]
