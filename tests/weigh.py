"""What a graph of objects holds: entries of containers, bytes of arrays and texts, by kind.

Counted, not measured: equal histories weigh the same on every machine.
"""

import gc
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np

#: Shared by all, or counted with what they belong to.
_LEFT_OUT = (type, ModuleType, FunctionType, BuiltinFunctionType, weakref.ref)
_CONTAINERS = (dict, list, set, frozenset, tuple, deque, OrderedDict)


def weigh(*roots: object, but: Iterable[object] = ()) -> Counter[str]:
    """`entries of X` for each container type, `bytes` of arrays, `X` objects of other types; what
    hangs on `but` alone is left out.
    """
    found: Counter[str] = Counter()
    seen = {id(one) for one in (*roots, *but)}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        name = type(one).__name__
        if isinstance(one, np.ndarray):
            found["bytes"] += one.nbytes if one.base is None else 0
        elif isinstance(one, str | bytes):
            found["bytes of text"] += len(one)
        elif isinstance(one, _CONTAINERS):
            found[f"entries of {name}"] += len(one)
        else:
            found[name] += 1
        for other in gc.get_referents(one):
            if id(other) not in seen and not isinstance(other, _LEFT_OUT):
                seen.add(id(other))
                waiting.append(other)
    return found


def growth(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """What there is more of."""
    return dict(after - before)
