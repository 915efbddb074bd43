"""What a plugin derives from a class of pods, made once and kept for the pods that follow.

Bounds   CLASSES_MAX entries for each use; a full memory is emptied, since making an entry anew is
         cheap and the classes that matter come back at once.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from asched.core.state.pods import PodClass

T = TypeVar("T")

#: Classes remembered by one plugin. A guess: more classes than this wait in few clusters.
CLASSES_MAX: Final = 8192


class PerClass(Generic[T]):
    """`memory(cls)` is `derive(cls)`, derived once."""

    __slots__ = ("_derive", "_known")

    def __init__(self, derive: Callable[[PodClass], T]) -> None:
        self._derive = derive
        self._known: dict[int, T] = {}

    def __call__(self, cls: PodClass) -> T:
        try:
            return self._known[cls.number]
        except KeyError:
            if len(self._known) >= CLASSES_MAX:
                self._known.clear()
            made = self._known[cls.number] = self._derive(cls)
            return made
