"""The devices that a request may choose from: a list that is filled lazily."""

from collections.abc import Callable, Iterator

from asched.core.dra.devices import ReadyDevice


class Candidates:
    """Selectors run once per device, and only for available devices: an error of a selector ends
    the attempt.
    """

    __slots__ = ("_answers", "_are_alike", "_known", "_rest", "_selects", "_unasked")

    def __init__(self, rest: Iterator[ReadyDevice], selects: Callable[[ReadyDevice], bool]) -> None:
        self._rest: Iterator[ReadyDevice] | None = rest
        self._selects = selects
        self._known: list[ReadyDevice] = []
        self._answers: list[bool | None] = []
        self._unasked = 0
        self._are_alike = True  # no device is changed by a trial

    def from_index(self, index: int) -> Iterator[tuple[int, ReadyDevice]]:
        """Devices that are not excluded yet, with their positions."""
        while True:
            while self._rest is not None and len(self._known) <= index:
                self._find()
            if index >= len(self._known):
                return
            if self._answers[index] is not False:
                yield index, self._known[index]
            index += 1

    def _find(self) -> None:
        assert self._rest is not None
        device = next(self._rest, None)
        if device is None:
            self._rest = None
            return
        self._known.append(device)
        self._answers.append(None)
        self._unasked += 1
        self._are_alike = self._are_alike and not device.consumes

    def is_selectable(self, index: int) -> bool:
        answer = self._answers[index]
        if answer is None:
            answer = self._answers[index] = self._selects(self._known[index])
            self._unasked -= 1
        return answer

    def are_too_few(self, index: int, needed: int) -> bool:
        """Whether it is known that fewer than `needed` can be chosen from the index-th on."""
        if self._rest is not None or self._unasked or not self._are_alike:
            return False
        return len(self._known) - index < needed
