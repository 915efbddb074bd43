"""Values derived from an object once, on first access."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class derived(Generic[T]):  # noqa: N801 - reads as `property` does
    """Like functools.cached_property, which takes a lock each time before Python 3.12: for distinct
    pods that cost a microsecond for each of a dozen properties.
    """

    def __init__(self, derive: Callable[[Any], T]) -> None:
        self._derive = derive
        self.__doc__ = derive.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "derived[T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> "derived[T] | T":
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._derive(instance)
        return found
