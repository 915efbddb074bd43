"""Limits for low-priority lanes.

Events wait while bindings or evictions are in flight, statuses while some of these wait for a
connection. At first none is sent; from SHARE_S on the number in flight grows with the age of the
oldest, up to all connections at PATIENCE_S. So they neither slow a burst of bindings down nor fall
behind without limit; many statuses are superseded before they are sent.
"""

from collections.abc import Iterable
from math import ceil
from typing import Final

from asched.core.framework.effects import COURTESY_LANES, Lane
from asched.kube.lanes import LaneState

#: Lanes with precedence: bindings, and the writes that bindings wait for.
FIRST_LANES: Final = (Lane.BINDING, Lane.WRITE)
#: Statuses in flight while requests of the first lanes are in flight but none waits.
STATUSES_BUSY: Final = 2
#: Measured on 2 cores with a real API server: two events in flight during a burst cost a tenth of
#: the bindings per second.
SHARE_S: Final = 5.0
PATIENCE_S: Final = 10.0


def limit_of(state: LaneState, first: Iterable[LaneState], now_s: float) -> int:
    """How many requests of a lane may be in flight now. `first`: the states of FIRST_LANES."""
    most = state.concurrency
    if state.lane not in COURTESY_LANES or all(lane.is_idle for lane in first):
        return most
    few = 0
    if state.lane is Lane.STATUS and not any(lane.queue.waiting for lane in first):
        few = min(STATUSES_BUSY, most)
    late_s = now_s - share_from_s(state, now_s)
    if late_s < 0.0:
        return few
    share = min(1.0, late_s / (PATIENCE_S - SHARE_S))
    return max(few, 1, ceil(most * share))


def share_from_s(state: LaneState, now_s: float) -> float:
    """When a low-priority lane may send regardless of other lanes."""
    oldest_s = state.queue.oldest_s
    return (now_s if oldest_s is None else oldest_s) + SHARE_S
