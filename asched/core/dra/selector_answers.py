"""Cached results of selectors for devices, stored with each device, for all devices of an
inventory.

A selector runs once per device, whatever the number of claims, pods and nodes. Any client that may
create claims can add selectors of any length: so the cache is bounded in bytes, and the devices
that were cached first are dropped first, with all their results.

Bounds  BYTES_MAX per inventory; ANSWERS_MAX per device.
"""

from typing import Final, Protocol

from asched.core.dra.cel.errors import CelError

#: Some 600,000 results: of six selectors for each of 100,000 devices.
BYTES_MAX: Final = 64 << 20
#: Classes and templates have a handful of selectors.
ANSWERS_MAX: Final = 256
#: An entry of a device's dictionary; an error with its message.
ANSWER_BYTES, ERROR_BYTES = 100, 700

Answer = bool | CelError


class AnsweredDevice(Protocol):
    """A device, by identity."""

    answers: dict[str, Answer]


class SelectorAnswers:
    """Accounts for the cached results of devices; equal selectors share one string."""

    __slots__ = ("_asked", "_texts", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._asked: dict[AnsweredDevice, None] = {}  # in the order of their first result
        self._texts: dict[str, tuple[str, int]] = {}  # (the shared string, number of devices)

    def keep(self, device: AnsweredDevice, expression: str, answer: Answer) -> None:
        """Cache a result for a device."""
        if len(device.answers) >= ANSWERS_MAX:
            self.forget(device)
        text, users = self._texts.get(expression, (expression, 0))
        self._texts[text] = text, users + 1
        if not users:
            self.bytes += len(text)
        device.answers[text] = answer
        self.bytes += _bytes_of(answer)
        self._asked.setdefault(device)
        while self.bytes > BYTES_MAX:
            self.forget(next(iter(self._asked)))

    def forget(self, device: AnsweredDevice) -> None:
        """Drop all results of a device, which may be freed then."""
        if self._asked.pop(device, device) is device:
            return
        for text, answer in device.answers.items():
            self.bytes -= _bytes_of(answer)
            users = self._texts[text][1] - 1
            if users:
                self._texts[text] = text, users
            else:
                del self._texts[text]
                self.bytes -= len(text)
        device.answers.clear()


def _bytes_of(answer: Answer) -> int:
    return ERROR_BYTES if isinstance(answer, CelError) else ANSWER_BYTES
