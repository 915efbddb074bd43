"""A group in numbers, as its profile's filters see it: classes of equal pods and feasible rows.

A class is a set of pods that no rule distinguishes: pods of one `PodClass` and one priority, whose
resource claims have equal specs and statuses.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Hashable
from typing import Final, TypeVar

import numpy as np
from msgspec.json import encode

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement.gang_problem import Unproven
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.order_free import is_order_free, left_of, slots_of, takes_of
from asched.core.framework.placements import Mask, Placement
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.pods_read import ignores_pods
from asched.core.model.arrays import I64
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.pod import Pod

SPENT: Final = Unproven("the budget of work for the gang is used up")
MOVED: Final = Unproven("the cluster changed during the search")
#: Budget steps for a computation over all rows; one more for each ROWS_A_STEP rows.
STATE_STEPS: Final = 6
ROWS_A_STEP: Final = 500

T = TypeVar("T")


class GroupBoard:
    """`needed` of the attempts must get places. `steps`: budget steps in all."""

    def __init__(
        self,
        context: SchedulerContext,
        group: GroupAttempt,
        needed: int,
        within: Mask | None,
        steps: int,
    ) -> None:
        self._context = context
        self._group = group
        self._remaining_steps: float = steps
        self.needed = needed
        self.cluster = context.cluster
        self.within = Placement("", within).mask(self.cluster.nodes)
        members: defaultdict[Hashable, list[Attempt]] = defaultdict(list)
        for attempt in group.attempts:
            claims = claims_key(self.cluster, attempt.pod)
            members[attempt.info.cls.number, attempt.pod.priority, claims].append(attempt)
        self.members = list(members.values())
        self.counts = tuple(len(attempts) for attempts in self.members)
        #: whether the cluster changed meanwhile, which invalidates a proof
        self.was_moved = False

    def example(self, c: int) -> PodInfo:
        return self.members[c][0].info

    def state(self, c: int) -> ClassState:
        return self._group.runner.cache.state_of(self.example(c))

    def feasible(self, c: int) -> Mask:
        """bool[N]: rows that the filters accept for a pod of the class now. Raises PointError,
        OutOfTurn.
        """
        return self._group.runner.dry_run(self.example(c)).rows(self.within)

    def is_order_free(self, c: int) -> bool:
        """Whether the order of placements does not matter to the class."""
        pod, state = self.example(c), self.state(c)
        return all(is_order_free(f.plugin, pod) for f in state.active_plugins.filters)

    def takes(self, c: int) -> dict[int, int]:
        filters = self.state(c).active_plugins.filters
        return takes_of([f.plugin for f in filters], self.example(c))

    def free(self, places: list[int]) -> I64:
        """int64[len(places), N]: free amounts."""
        return np.maximum(left_of(NodeView(self.cluster.nodes), places), 0)

    def slots(self, c: int) -> I64:
        """int64[N]: how many pods of the class each row takes by amounts, at most all."""
        most = np.full(self.cluster.nodes.height, self.counts[c], dtype=np.int64)
        needs = self.takes(c)
        return slots_of(most, needs.values(), self.free(list(needs)))

    def charge(self, steps: float) -> Generator[Effect, Answer, Unproven | None]:
        """Pause if the slice is used up, then charge steps; a result ends the search."""
        self._remaining_steps -= steps
        if self._remaining_steps < 0:
            return SPENT
        budget = self.cluster.budget
        if budget.is_used_up:
            before = self._context.version
            yield Pause()
            self.was_moved |= self._context.version != before
        if self._has_other_rows:
            return MOVED
        budget.note(steps)
        return None

    @property
    def _has_other_rows(self) -> bool:
        """Whether nodes were added or removed, so that `within` does not match the rows."""
        return self.cluster.nodes.height != len(self.within)

    def patiently(self, ask: Callable[[], T]) -> Generator[Effect, Answer, T | Unproven]:
        """Call a function of the board, again after pauses if it raises OutOfTurn."""
        while True:
            if self._has_other_rows:
                return MOVED
            try:
                return ask()
            except OutOfTurn:  # results so far are cached
                stop = yield from self.charge(STATE_STEPS)
                if stop is not None:
                    return stop


def claims_key(cluster: Cluster, pod: Pod) -> Hashable:
    """The specs and statuses of claims that were made for a pod from templates; pods with equal
    keys may be exchanged. () if there are none.
    """
    found = []
    for status in pod.status.resource_claim_statuses or ():
        key = f"{pod.metadata.namespace}/{status.resource_claim_name}"
        claim = cluster.get(RESOURCE_CLAIM, key)
        if claim is not None:
            found.append((status.name, encode(claim.spec), encode(claim.status)))
    return tuple(found)


def accepting(state: ClassState, pod: PodInfo, rows: Mask) -> Mask:
    """`rows` bool[N], without those that filters reject which read only nodes; modified. Raises
    PointError, OutOfTurn.
    """
    if state.update(pod).rejection is None:
        for verdict in state.active:
            if ignores_pods(verdict.plugin):
                rows &= verdict.codes[: len(rows)] == 0
    return rows
