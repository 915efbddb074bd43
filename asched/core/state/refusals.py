"""Nodes whose kubelet refused a pod, kept from pods of the same owner for a while.

A kubelet counts what it still holds, and what others bound a moment ago; the pod it refuses is
Failed for good, and its controller makes another one. Sent to the same node at once, that one
fares no better: clusters were flooded with refused pods so (kubernetes#104560, #106884, #115325).

Rules   each refusal doubles the time, from HOLD_S to HOLD_S_MAX; without one for FORGET_S all is
        forgotten. Pods without a controller are nobody's: they do not come again.
Bounds  PAIRS_MAX owners and nodes; the oldest are forgotten first.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from asched.core.model.pod import Pod
from asched.core.state.nodes import NodeTable

#: Three refusals a minute at most: after 0, 10 and 30 s.
HOLD_S: Final = 10.0
HOLD_S_MAX: Final = 300.0
FORGET_S: Final = 600.0
PAIRS_MAX: Final = 10_000


class _Held(NamedTuple):
    until_s: float
    times: int


class Refusals:
    """By owner and node. Times are seconds since 1970."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._by_owner: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def note(self, owner: str, node_name: str, now_s: float) -> float:
        """A kubelet refused a pod of this owner (a uid). For how many seconds none goes there."""
        key = (owner, node_name)
        known = self._held.pop(key, None)
        times = known.times + 1 if known is not None and now_s < known.until_s + FORGET_S else 1
        hold_s = min(HOLD_S * 2.0 ** (times - 1), HOLD_S_MAX)
        self._held[key] = _Held(now_s + hold_s, times)
        self._by_owner.setdefault(owner, {})[node_name] = None
        self._forget(now_s)
        return hold_s

    def rows(self, pod: Pod, now_s: float) -> tuple[int, ...]:
        """Rows that a pod is kept from now."""
        owner = pod.metadata.controller
        if owner is None or owner.uid not in self._by_owner:
            return ()
        row_of = self._nodes.row_of
        return tuple(
            row_of[name]
            for name in self._by_owner[owner.uid]
            if name in row_of and self._held[owner.uid, name].until_s > now_s
        )

    def _forget(self, now_s: float) -> None:
        while self._held:
            (owner, name), oldest = next(iter(self._held.items()))
            if len(self._held) <= PAIRS_MAX and now_s < oldest.until_s + FORGET_S:
                return
            del self._held[owner, name]
            del self._by_owner[owner][name]
            if not self._by_owner[owner]:
                del self._by_owner[owner]
