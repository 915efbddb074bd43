"""Methods for somebody whom the method's owner holds: without the owner, so that no circle closes.

Whoever is part of a circle stays when he is of no use any more, until the collector of garbage
looks at him, which it never does at what is old: of each reload all plugins would stay.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import ref

P = ParamSpec("P")
T = TypeVar("T")


def weakly(method: Callable[P, T]) -> Callable[P, T]:
    """The same method, to be called as long as its owner lives; then it raises ReferenceError."""
    bound: Any = method
    owner, function = ref(bound.__self__), bound.__func__

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        living = owner()
        if living is None:
            raise ReferenceError(f"the owner of {function.__qualname__} is gone")
        found: T = function(living, *args, **kwargs)
        return found

    return called
