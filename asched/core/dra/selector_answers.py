"""What selectors said of devices, remembered by each device, for all devices of an inventory.

A selector runs once per device however many claims, pods and nodes ask. Whoever may make claims
chooses how many selectors there are, and how long: so what is remembered is bounded in bytes, and
the device that was asked first forgets first, all it knew.

Bounds  BYTES_MAX of one inventory's; ANSWERS_MAX of one device.
"""

from typing import Final, Protocol

from asched.core.dra.cel.errors import CelError

#: Some 600,000 answers: those to six selectors of each of 100,000 devices.
BYTES_MAX: Final = 64 << 20
#: Classes and templates name a handful.
ANSWERS_MAX: Final = 256
#: An entry of a device's dictionary; an error with its words.
ANSWER_BYTES, ERROR_BYTES = 100, 700

Answer = bool | CelError


class AnsweredDevice(Protocol):
    """A device, by identity."""

    answers: dict[str, Answer]


class SelectorAnswers:
    """Keeps account of what devices remember; equal selectors are one text for all of them."""

    __slots__ = ("_asked", "_texts", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._asked: dict[AnsweredDevice, None] = {}  # in the order in which they began to remember
        self._texts: dict[str, tuple[str, int]] = {}  # (the one text, devices that know it)

    def keep(self, device: AnsweredDevice, expression: str, answer: Answer) -> None:
        """A device remembers an answer from now on."""
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
        """A device remembers nothing any more; it may go."""
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
