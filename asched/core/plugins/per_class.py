"""What a plugin derives from a class of pods, made once and kept for the pods that follow.

Bounds   CLASSES_MAX entries for each use; a full memory is emptied, since making an entry anew is
         cheap and the classes that matter come back at once.
"""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

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


class PerKey(Generic[T]):
    """`memory(cls)` is `derive(cls)`, derived once for all classes with an equal `key_of(cls)`.

    What is derived must allow weak references, and follow from the key alone.
    """

    __slots__ = ("_derive", "_key_of", "_of_class", "_shared")

    def __init__(
        self, key_of: Callable[[PodClass], Hashable], derive: Callable[[PodClass], T]
    ) -> None:
        self._key_of = key_of
        self._derive = derive
        self._of_class = PerClass(self._find)
        self._shared: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def __call__(self, cls: PodClass) -> T:
        return self._of_class(cls)

    def _find(self, cls: PodClass) -> T:
        key = self._key_of(cls)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._derive(cls)
        return found
