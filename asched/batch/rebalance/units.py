"""Units that wait for a plan, what was moved for them, and what the process counts.

A unit is tracked from its first rejection until it is placed or gone. How many pods were moved for
it, and when, is in a condition of its pods (`names.PODS_MOVED`), which is written before a pod is
evicted: a new process reads it, so that the limits hold across restarts.

Bounds  UNITS_MAX units, further ones wait until another is placed.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from asched import names
from asched.batch.rebalance.draining import NodeDrain
from asched.batch.rebalance.search import MovePlan
from asched.core.cluster.cluster import Cluster
from asched.core.config.args import RebalanceArgs
from asched.core.model.pod import Pod, PodCondition, difference
from asched.core.model.timestamp import seconds

UNITS_MAX: Final = 256
#: What became of plans: `dry run` ones are not carried out, `none` was found, and why plans were
#: abandoned.
CARRIED_OUT, DRY_RUN, NONE = "carried out", "dry run", "none"
ABANDONED: Final = (
    "unrecorded",  # the condition could not be written
    "budget",  # a disruption budget refused an eviction
    "refused",  # the server refused it otherwise
    "changed",  # a pod of the plan may not move any more
    "room",  # a place was lost: to other pods, or with its node
    "overtaken",  # a more important pod took a place
    "elsewhere",  # the unit was placed elsewhere
    "unit",  # pods of the unit are gone, or others came
    "time",  # timeLimitSeconds is over
    "profile",  # Rebalance was removed from the profile
    "node",  # the request to drain a node was withdrawn
    "error",
)
OUTCOMES: Final = (CARRIED_OUT, DRY_RUN, NONE, *ABANDONED)
MINUTE_S: Final = 60.0
_TEXT: Final = re.compile(r"(\d{1,4}) pods? moved to make room for it, (\d{1,4}) in all")


class WaitingUnit(msgspec.Struct, eq=False):
    """A gang, or a pod by itself, without places. `search_s`: when a plan is searched for it next;
    `moved`: pods that were moved for it; `text`: what the last search found, for its condition.
    """

    key: str
    pod: Pod
    profile: str
    since_s: float
    search_s: float
    moved: int = 0
    text: str = ""
    #: whether a search has ended, with or without a plan, and the plan
    was_searched: bool = False
    plan: MovePlan | None = None


class RebalanceUnits:
    """All of them. Made by `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.tracked: dict[str, WaitingUnit] = {}
        #: by name of a node
        self.drains: dict[str, NodeDrain] = {}
        #: the plan that is carried out, of which there is one at a time (`carrying.Carrying`)
        self.active: Any = None
        #: for what a plan is searched
        self.searching: WaitingUnit | NodeDrain | None = None
        self.has_recalled = False
        #: no plan begins before, because one of an earlier process may still be under way
        self.blocked_until_s = 0.0
        #: steady times of evictions
        self._evicted_s: deque[float] = deque()
        self.outcomes = Counter[str]()
        self.moves = self.placed = 0
        #: seconds from evictions until the successors were placed
        self.lost_s = 0.0

    @property
    def is_awake(self) -> bool:
        return bool(self.tracked or self.drains) or self.active is not None

    def forget_gone(self) -> None:
        """Drop the units whose pods are gone, or have nodes."""
        for key, unit in tuple(self.tracked.items()):
            now = self._cluster.pods_seen.get(unit.pod.key)
            if now is None or now.uid != unit.pod.uid or now.spec.node_name:
                del self.tracked[key]

    def moves_left(self, args: RebalanceArgs) -> int:
        """How many pods may be evicted now by the limit for a minute."""
        while self._evicted_s and self._evicted_s[0] <= self._cluster.steady_s - MINUTE_S:
            self._evicted_s.popleft()
        return args.max_moves_per_minute - len(self._evicted_s)

    def note_eviction(self) -> None:
        self._evicted_s.append(self._cluster.steady_s)
        self.moves += 1

    def recall(self, time_limit_s: float) -> None:
        """Read what an earlier process has written down."""
        self.has_recalled = True
        for pod in self._cluster.pods_seen.values():
            found = read(pod)
            if found is None:
                continue
            count, _, at_s = found
            evicted_s = at_s - self._cluster.wall_ahead_s
            if evicted_s > self._cluster.steady_s - MINUTE_S:
                self._evicted_s.extend([evicted_s] * count)
            if not pod.spec.node_name:
                self.blocked_until_s = max(self.blocked_until_s, evicted_s + time_limit_s)
        self._evicted_s = deque(sorted(self._evicted_s))


def read(pod: Pod) -> tuple[int, int, float] | None:
    """What the condition of a pod says: pods moved by the last plan, in all, and the date."""
    condition = pod.condition(names.PODS_MOVED)
    match = _TEXT.match(condition.message) if condition is not None else None
    if condition is None or match is None:
        return None
    return int(match[1]), int(match[2]), seconds(condition.last_transition_time, 0.0)


def condition_of(cluster: Cluster, pod: Pod, count: int, before: int) -> dict[str, Any] | None:
    """The condition to write before `count` pods are evicted."""
    plural = "" if count == 1 else "s"
    text = f"{count} pod{plural} moved to make room for it, {before + count} in all"
    wanted = PodCondition(
        type=names.PODS_MOVED,
        status="True",
        reason=names.EVENT_PODS_MOVE,
        message=text,
        observed_generation=pod.metadata.generation or None,
    )
    old = pod.condition(names.PODS_MOVED)
    older = old if old is None else msgspec.structs.replace(old, status="")
    return difference(older, wanted, cluster.wall_clock_s)  # so that the time is always written


def moved_before(pods: Iterable[Pod]) -> tuple[int, float]:
    """How many pods were moved for a unit in all, and the date of the last plan."""
    known = [found for pod in pods if (found := read(pod)) is not None]
    return max((k[1] for k in known), default=0), max((k[2] for k in known), default=0.0)
