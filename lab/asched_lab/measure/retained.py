"""Count what a graph of objects keeps alive: entries of containers, bytes of arrays and texts.

Counts, not sizes: equal histories have equal counts on every machine.
"""

import gc
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Final

import numpy as np

from asched.core.cluster import change_logs, pod_classes, topology
from asched.core.cycle import decision_records, history
from asched.core.dra import inventory
from asched.core.framework import per_class
from asched.core.framework.results import class_cache, nominated_amounts
from asched.core.preemption import search

#: Shared by the whole process, or counted with the objects that own them.
_LEFT_OUT = (type, ModuleType, FunctionType, BuiltinFunctionType, weakref.ref)
_CONTAINERS = (dict, list, set, frozenset, tuple, deque, OrderedDict)

#: Bounds of caches and logs, small enough to be reached at once.
SMALL: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (change_logs, "LOG_ENTRIES_MAX", 32),
    (history, "ENTRIES_MAX", 40),
    (decision_records, "PATTERNS_MAX", 4),
    (decision_records, "STATES_MAX", 4),
    (inventory, "SPARE", 0),
    (topology, "COUNTERS_MIN", 8),
    (topology, "CELLS_MAX", 0),
    (topology, "IDLE_MAX", 8),
    (pod_classes, "RECENT_BYTES_MAX", 0),
    (pod_classes, "KEYS_BYTES_MAX", 0),
    (per_class, "PODS_MIN", 4),
    (class_cache, "BYTES_MAX", 0),
    (nominated_amounts, "BYTES_MAX", 0),
    (search, "BYTES_MAX", 0),
)


def make_small(set_: Callable[[ModuleType, str, int], object] = setattr) -> None:
    """Set the bounds of `SMALL`, so that growth shows what has no bound."""
    for module, name, value in SMALL:
        set_(module, name, value)


def weigh(*roots: object, but: Iterable[object] = ()) -> Counter[str]:
    """Count `entries of X` for each container type, `bytes` of arrays, and objects `X` of other
    types. Objects that are reached through `but` alone are left out.
    """
    found: Counter[str] = Counter()
    seen = {id(root) for root in (*roots, *but)}
    waiting = list(roots)
    while waiting:
        item = waiting.pop()
        name = type(item).__name__
        if isinstance(item, np.ndarray):
            found["bytes"] += item.nbytes if item.base is None else 0
        elif isinstance(item, str | bytes):
            found["bytes of text"] += len(item)
        elif isinstance(item, _CONTAINERS):
            found[f"entries of {name}"] += len(item)
        else:
            found[name] += 1
        for referent in gc.get_referents(item):
            if id(referent) not in seen and not isinstance(referent, _LEFT_OUT):
                seen.add(id(referent))
                waiting.append(referent)
    return found


def growth(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Return what `after` has more of."""
    return dict(after - before)


def entries_of(held: Counter[str]) -> int:
    return sum(number for name, number in held.items() if name.startswith("entries"))
