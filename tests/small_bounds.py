"""What is bounded by its size is full at once, so that growth shows what has no bound."""

from collections.abc import Callable
from types import ModuleType
from typing import Final

from asched.core.cycle import decided, history
from asched.core.dra import inventory
from asched.core.framework.results import class_cache, nominated_amounts
from asched.core.plugins import per_pod
from asched.core.plugins.resources import hints
from asched.core.preemption import search
from asched.core.state import change_log, journal, pod_classes, topology

IDLE_TERMS: Final = 8
SMALL: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (change_log, "LOG_ENTRIES_MAX", 32),
    (journal, "BYTES_MAX", 0),
    (history, "LINES_MAX", 40),
    (decided, "PATTERNS_MAX", 4),
    (inventory, "SPARE", 0),
    (topology, "COUNTERS_MIN", 8),
    (topology, "CELLS_MAX", 0),
    (topology, "IDLE_MAX", IDLE_TERMS),
    (pod_classes, "RECENT_BYTES_MAX", 0),
    (pod_classes, "RECENT_LARGE_BYTES_MAX", 0),
    (pod_classes, "LARGE_KEYS_BYTES_MAX", 0),
    (pod_classes, "KEYS_BYTES_MAX", 0),
    (per_pod, "PODS_MIN", 4),
    (hints, "KNOWN_MAX", 4),
    (class_cache, "BYTES_MAX", 0),
    (nominated_amounts, "BYTES_MAX", 0),
    (search, "BYTES_MAX", 0),
)


def make_small(set_: Callable[[ModuleType, str, int], object] = setattr) -> None:
    """Set all of them, by `monkeypatch.setattr` in tests."""
    for module, name, value in SMALL:
        set_(module, name, value)
