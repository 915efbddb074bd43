"""Trouble on purpose: rules that make the server drop, delay, refuse or forget.

A rule names what it hits and what it does; `count` ends it after so many hits, `rate` lets it hit a
seeded share of the calls. Two of the actions exist for one question: whether a client that got no
answer to its binding knows that it may have succeeded.

    reset_before   the connection breaks and nothing was written
    reset_after    the write is done and then the connection breaks without an answer
    refuse         answered with `status`, text and Retry-After instead of being handled
    delay          answered `seconds` later (the write itself happens at once)
    drop_watch     a watch's connection breaks after its next frame
    expire_watch   a watch ends with an ERROR event that holds 410
    mute_watch     a watch stays open, but from its next frame on says nothing, not even its end
"""

import random
import re
from dataclasses import dataclass, field
from typing import Final, Literal

from asched.lab.apiserver.call import TEXT, Reply

Action = Literal[
    "reset_before", "reset_after", "refuse", "delay", "drop_watch", "expire_watch", "mute_watch"
]

OVERLOADED: Final = "Too many requests, please try again later.\n"
WATCH_ACTIONS: Final = frozenset({"drop_watch", "expire_watch", "mute_watch"})


@dataclass(slots=True)
class Fault:
    """One rule; `path` is a regular expression searched in the path, `method` empty for any."""

    action: Action
    path: str = ""
    method: str = ""
    count: int | None = None
    rate: float = 1.0
    status: int = 429
    retry_after_s: int | None = 1
    text: str = OVERLOADED
    seconds: float = 0.0
    hits: int = field(default=0, init=False)

    def covers(self, method: str, path: str) -> bool:
        if self.count is not None and self.hits >= self.count:
            return False
        return self.method in {"", method} and re.search(self.path, path) is not None

    def refusal(self) -> Reply:
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        return Reply(self.status, self.text.encode(), TEXT, headers)


class Faults:
    """The rules in force, asked in the order they were added; the first that hits counts."""

    def __init__(self, seed: int = 0) -> None:
        self.rules: list[Fault] = []
        self._random = random.Random(seed)

    def add(self, fault: Fault) -> Fault:
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        self.rules.clear()

    def hit(self, method: str, path: str, *, watch: bool = False) -> Fault | None:
        """The fault that befalls this call, if any; counts as a hit."""
        for fault in self.rules:
            if (fault.action in WATCH_ACTIONS) != watch or not fault.covers(method, path):
                continue
            if fault.rate >= 1.0 or self._random.random() < fault.rate:
                fault.hits += 1
                return fault
        return None
