"""What is bounded by its size is full at once, so that growth shows what has no bound."""

from collections.abc import Callable
from types import ModuleType
from typing import Final

from asched.core.cluster import changes, pod_classes, topology
from asched.core.cycle import history
from asched.core.dra import inventory
from asched.core.framework import per_class
from asched.core.framework.results import classes, nominated
from asched.core.preemption import search

IDLE_TERMS: Final = 8
SMALL: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (changes, "LOG_ENTRIES_MAX", 32),
    (history, "LINES_MAX", 40),
    (history, "PATTERNS_MAX", 4),
    (inventory, "SPARE", 0),
    (topology, "COUNTERS_MIN", 8),
    (topology, "CELLS_MAX", 0),
    (topology, "IDLE_MAX", IDLE_TERMS),
    (pod_classes, "RECENT_BYTES_MAX", 0),
    (pod_classes, "KEYS_BYTES_MAX", 0),
    (per_class, "PODS_MIN", 4),
    (classes, "BYTES_MAX", 0),
    (nominated, "BYTES_MAX", 0),
    (search, "BYTES_MAX", 0),
)


def make_small(set_: Callable[[ModuleType, str, int], object] = setattr) -> None:
    """Set all of them, by `monkeypatch.setattr` in tests."""
    for module, name, value in SMALL:
        set_(module, name, value)
