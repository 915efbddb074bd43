"""Room that is held for pods to come, as a pod that waits sees it.

Bounds  OWNERS_MAX owners are told, those with the most places. Linear in the places that are held.
"""

from collections import Counter, defaultdict
from heapq import nlargest
from typing import Any, Final

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.request_book import OWNERS
from asched.core.model.pod import Pod
from asched.core.state.consumers import request_of
from asched.core.state.pod_groups import COSCHEDULED

OWNERS_MAX: Final = 10


def holds_for(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """For whom, how many places on how many nodes, and for how many seconds more; `own`: for the
    request that the pod itself consumes.
    """
    own = f"{OWNERS}:{request_of(pod)}" if request_of(pod) else ""
    places: Counter[str] = Counter()
    nodes: dict[str, set[str]] = defaultdict(set)
    until_s: dict[str, float] = {}
    for hold in context.cluster.holds.all():
        owner = hold.owner.partition("#")[0]
        places[owner] += len(hold.places)
        nodes[owner].update(place.node_name for place in hold.places)
        until_s[owner] = max(hold.until_s, until_s.get(owner, hold.until_s))
    largest = nlargest(OWNERS_MAX, places, key=lambda owner: (places[owner], owner))
    return [
        {
            "owner": _named(owner),
            "own": owner == own,
            "places": places[owner],
            "nodes": len(nodes[owner]),
            "seconds": max(round(until_s[owner] - context.now_s), 0),
        }
        for owner in largest
        if places[owner]
    ]


def _named(owner: str) -> str:
    if owner.startswith(COSCHEDULED):
        return f"podgroup/{owner.removeprefix(COSCHEDULED)}"
    return f"provisioningrequest/{owner.removeprefix(f'{OWNERS}:')}"
