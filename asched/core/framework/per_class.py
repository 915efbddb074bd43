"""What a plugin derives from a class of pods, made once and kept as long as the class lives.

What is derived must not refer to the class: then neither would ever go.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary, ref

from asched.core.framework.points import Plugin
from asched.core.state.pods import Memory, PodClass
from asched.core.state.weakly import weakly

T = TypeVar("T")


class PerClass(Generic[T]):
    """`memory(cls)` is `derive(cls)`, derived once. Raises OutOfTurn where the pods are large.

    A plugin's own method does not keep the plugin, whose profile does; any other owner is kept.
    """

    __slots__ = ("__weakref__", "_derive", "_known", "_me")

    def __init__(self, derive: Callable[[PodClass], T]) -> None:
        owner = getattr(derive, "__self__", None)
        self._derive = weakly(derive) if isinstance(owner, Plugin) else derive
        self._known: dict[int, T] = {}
        self._me: ref[Memory] = ref(self)

    def __call__(self, cls: PodClass) -> T:
        number, known = cls.number, self._known
        if number in known:  # where no two pods are alike, half of the time it is not
            return known[number]
        cls.charge()
        made = known[number] = self._derive(cls)
        cls.known_by.append(self._me)
        return made

    def __len__(self) -> int:
        return len(self._known)

    def forget(self, number: int) -> None:
        """The class with this number went."""
        self._known.pop(number, None)


class PerKey(Generic[T]):
    """`memory(cls)` is `derive(cls)`, derived once for all classes with an equal `key_of(cls)`.

    What is derived must allow weak references, and follow from the key alone.
    """

    __slots__ = ("__weakref__", "_derive", "_key_of", "_of_class", "_shared")

    def __init__(
        self, key_of: Callable[[PodClass], Hashable], derive: Callable[[PodClass], T]
    ) -> None:
        self._key_of = key_of
        self._derive = derive
        self._of_class = PerClass(weakly(self._find))
        self._shared: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def __call__(self, cls: PodClass) -> T:
        return self._of_class(cls)

    def _find(self, cls: PodClass) -> T:
        key = self._key_of(cls)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._derive(cls)
        return found
