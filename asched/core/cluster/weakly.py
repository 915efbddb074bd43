"""Methods that do not keep their owner alive, for objects that the owner holds.

Without them owner and object would form a cycle, which is freed by the garbage collector only; the
collector never scans old objects, so that all plugins of every reload would stay in memory.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import ref

P = ParamSpec("P")
T = TypeVar("T")


def weakly(method: Callable[P, T]) -> Callable[P, T]:
    """The same method; it raises ReferenceError once its owner is gone."""
    bound: Any = method
    owner, function = ref(bound.__self__), bound.__func__

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        living = owner()
        if living is None:
            raise ReferenceError(f"the owner of {function.__qualname__} is gone")
        found: T = function(living, *args, **kwargs)
        return found

    return called
