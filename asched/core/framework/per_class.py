"""Data that a plugin derives from a class of pods, cached as long as the class exists.

Derived data must not refer to the class, or neither would ever be freed.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary, ref

from asched.core.cluster.pods import Memory, PodClass
from asched.core.cluster.weakly import weakly
from asched.core.framework.points import Plugin
from asched.core.model.quantity import QuantityError

T = TypeVar("T")
#: Amounts that cannot be parsed raise.
RAISED: Final = object()


class PerClass(Generic[T]):
    """`memory(cls)` is `derive(cls)`, cached.

    `unreadable`: the result for pods with an amount that cannot be parsed. Plugins that read pods
    on nodes need it, since such a pod must not fail the attempt of another one.
    If `derive` is a plugin's own method, it does not keep the plugin alive; other owners it does.
    """

    def __init__(self, derive: Callable[[PodClass], T], unreadable: Any = RAISED) -> None:
        owner = getattr(derive, "__self__", None)
        self._derive = weakly(derive) if isinstance(owner, Plugin) else derive
        self._known: dict[int, T] = {}
        self._me: ref[Memory] = ref(self)
        self._unreadable = unreadable

    def __call__(self, cls: PodClass) -> T:
        number, known = cls.number, self._known
        if number in known:  # unknown half of the time if no two pods are equal
            return known[number]
        try:
            made = self._derive(cls)
        except QuantityError:
            if self._unreadable is RAISED:
                raise
            made = self._unreadable
        known[number] = made
        cls.known_by.append(self._me)
        return made

    def __len__(self) -> int:
        return len(self._known)

    def forget(self, number: int) -> None:
        """The class with this number was freed."""
        self._known.pop(number, None)


class PerKey(Generic[T]):
    """`memory(cls)` is `derive(cls)`, cached for all classes with an equal `key_of(cls)`.

    Derived data must allow weak references and depend on the key only.
    """

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
