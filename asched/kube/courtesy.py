"""How far courtesy gives way: events and statuses beside bindings and evictions.

Events wait while bindings or evictions are under way, statuses while some of these even wait for a
connection. At first none is sent; from SHARE_S on more the longer the oldest has waited, as many as
there are connections from PATIENCE_S on. So they neither slow a burst of bindings down nor are
seconds behind it forever, and many a status is pointless by then.
"""

from collections.abc import Iterable
from math import ceil
from typing import Final

from asched.core.framework.effects import COURTESY_LANES, Lane
from asched.kube.lanes import LaneState

#: Lanes that courtesy gives way to: what is bound, and what bindings wait for.
FIRST_LANES: Final = (Lane.BINDING, Lane.WRITE)
#: Statuses in flight while nothing waits in the first lanes, but something is under way there.
STATUSES_BUSY: Final = 2
#: Measured on 2 cores with a real API server: two events in flight during a burst cost it a tenth
#: of its bindings per second.
SHARE_S: Final = 5.0
PATIENCE_S: Final = 10.0


def limit_of(state: LaneState, first: Iterable[LaneState], now_s: float) -> int:
    """How many requests of a lane may be in flight right now. `first`: those of FIRST_LANES."""
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
    """From when on a lane of courtesy has a share, whatever else is under way."""
    oldest_s = state.queue.oldest_s
    return (now_s if oldest_s is None else oldest_s) + SHARE_S
