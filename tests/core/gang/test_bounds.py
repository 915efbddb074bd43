"""Bounds: what they refute cannot be, by another way of counting."""

from typing import Any

import numpy as np

from asched.core.gang.bounds import max_flow


def test_flows_are_as_large_as_the_best_of_all_orders() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        edges = rng.integers(0, 3, size=(3, 4))
        supply, rooms = rng.integers(0, 5, size=3).tolist(), rng.integers(0, 4, size=4)
        found = max_flow(supply, edges, rooms)
        assert found == _flow_by_cuts(supply, edges, rooms)


def _flow_by_cuts(supply: list[int], edges: Any, rooms: Any) -> int:
    """The smallest cut, of all sets of classes and rows on the side of the source."""
    best = sum(supply)
    for classes in range(8):
        for rows in range(16):
            cut = sum(s for c, s in enumerate(supply) if not classes >> c & 1)
            cut += sum(int(r) for k, r in enumerate(rooms) if rows >> k & 1)
            cut += sum(
                int(edges[c, k])
                for c in range(3)
                for k in range(4)
                if classes >> c & 1 and not rows >> k & 1
            )
            best = min(best, cut)
    return best
