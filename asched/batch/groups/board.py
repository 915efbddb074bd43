"""The board of a gang's search: tries pods on the columns themselves, by the profile's filters.

A class is a set of pods that no rule distinguishes: pods of one `PodClass` and one priority, whose
resource claims have equal specs and statuses. Its pods are placed in the order of the group's
attempts, and filters run for the next pod, because each pod has claims of its own. Places are
assumed and reserved as in any attempt, and given back before the search returns.

Reserve chooses devices and volumes for a pod as usual, although other choices might leave more to
further pods. So a search over such pods proves nothing, and further searches run over the same
board. `is_relaxed`: nothing is reserved, and all pods see what is free at the beginning; a group
without places even so has none. `is_thorough`: all choices are tried.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from itertools import product
from typing import Final, TypeVar

import numpy as np
from msgspec.json import encode

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement.problem import I64, Unproven
from asched.batch.placement.search import FIRST, MOVED, SPENT, Choice
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.choices import CHOICES_MAX, Choices
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.fitting import Fitting
from asched.core.framework.order_free import POD_PLACE, OrderFree, is_order_free, takes_of
from asched.core.framework.placements import Mask, Placement
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated import ignores_pods
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.names import LABEL_HOSTNAME

#: Budget steps for one state of the search; one more for each ROWS_A_STEP rows; all of that again
#: for each CLASSES_A_STATE classes.
STATE_STEPS: Final = 6
ROWS_A_STEP: Final = 500
CLASSES_A_STATE: Final = 8


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
        self._left: float = steps
        self._kept = 0.0
        self.needed = needed
        self.cluster = context.cluster
        self.within = Placement("", within).mask(self.cluster.nodes)
        members: defaultdict[Hashable, list[Attempt]] = defaultdict(list)
        for attempt in group.attempts:
            claims = claims_key(self.cluster, attempt.pod)
            members[attempt.info.cls.number, attempt.pod.priority, claims].append(attempt)
        self.members = list(members.values())
        self.counts = tuple(len(attempts) for attempts in self.members)
        self._used = [0] * len(self.members)
        self.placed: list[tuple[int, Attempt]] = []
        #: by uid: the node and the choices of pods that do not have the first choices
        self.choices_made: dict[str, tuple[str, dict[str, int]]] = {}
        #: whether nothing is reserved; whether a choice was made that could have been another
        self.is_relaxed = self.has_chosen = False
        #: whether all choices are tried; whether there were more than CHOICES_MAX
        self.is_thorough = self.has_more = False
        #: whether the cluster changed meanwhile, which invalidates a proof
        self.was_moved = False

    def example(self, c: int) -> PodInfo:
        """The next pod of the class to be placed, or the last."""
        return self.members[c][min(self._used[c], self.counts[c] - 1)].info

    def state(self, c: int) -> ClassState:
        return self._group.runner.cache.state_of(self.example(c))

    # --- used by the search ----------------------------------------------------------------------

    def fitting(self, c: int) -> Fitting:
        """Raises PointError, OutOfTurn."""
        return self._group.runner.fitting(self.example(c))

    def feasible(self, c: int) -> Mask:
        """bool[N]. Raises PointError, OutOfTurn."""
        return self.fitting(c).rows(self.within)

    def is_order_free(self, c: int) -> bool:
        """Whether the order of placements does not matter to the class, in the present state."""
        pod, state = self.example(c), self.state(c)
        return not self.chooses(c) and all(
            is_order_free(filterer.plugin, pod) for filterer in state.active_plugins.filters
        )

    def takes(self, c: int) -> dict[int, int]:
        filters = self.state(c).active_plugins.filters
        return takes_of([f.plugin for f in filters], self.example(c))

    def free(self, places: list[int]) -> I64:
        """int64[len(places), N]: free amounts."""
        return free_of(NodeView(self.cluster.nodes), places)

    def slots(self, c: int) -> I64:
        most = np.full(self.cluster.nodes.height, self.counts[c], dtype=np.int64)
        needs = self.takes(c)
        for need, free in zip(needs.values(), self.free(list(needs)), strict=True):
            np.minimum(most, free // need, out=most)
        return most

    def chooses(self, c: int) -> bool:
        pod = self.example(c)
        return not self.is_relaxed and any(
            plugin.chooses(pod) for plugin in self.state(c).active_plugins.reserves
        )

    def chosen(self) -> Hashable:
        if self.is_relaxed:
            return ()
        found = Counter(
            (c, attempt.info.row, plugin.name, what)
            for c, attempt in self.placed
            for plugin in self.state(c).active_plugins.reserves
            if plugin.chooses(attempt.info) and (what := plugin.chosen(attempt.info)) != ()
        )
        return frozenset(found.items()) if found else ()

    def choices(self, c: int, row: int) -> Iterable[Choice]:
        """The choices of plugins that reserve anything. Raises OutOfTurn."""
        self.feasible(c)  # as for `put`
        node, pod, state = self.cluster.nodes.node_at[row], self.example(c), self.state(c)
        assert node is not None
        counts = [
            plugin.choices(pod, node.name, state.data_of(plugin.name))
            for plugin in state.active_plugins.reserves
        ]
        self.has_more |= max(counts, default=0) > CHOICES_MAX
        return product(*(range(min(count, CHOICES_MAX)) for count in counts))

    def put(self, c: int, row: int, choice: Choice = FIRST) -> bool:
        """Place a pod; whether Reserve accepts. The pod is on the board in either case. Raises
        OutOfTurn before that.
        """
        if self.chooses(c):
            self.has_chosen = True
            self.feasible(c)  # the plugins' prepared data may be of another state
        node = self.cluster.nodes.node_at[row]
        assert node is not None
        attempt = self.members[c][self._used[c]]
        state = self.state(c)
        self.cluster.assume(attempt.info, node.name)
        self._used[c] += 1
        self.placed.append((c, attempt))
        if any(choice):
            names = [plugin.name for plugin in state.active_plugins.reserves]
            made = node.name, dict(zip(names, choice, strict=True))
            self.choices_made[attempt.pod.uid] = made
            self.cluster.singleton(Choices).insist(attempt.pod.uid, *made)
        return self.is_relaxed or all(
            plugin.reserve(attempt.info, node.name, state.data_of(plugin.name)).is_success
            for plugin in state.active_plugins.reserves
        )

    def take_back(self) -> Generator[Effect, Answer, None]:
        c, attempt = self.placed.pop()
        self._used[c] -= 1
        if self.choices_made.pop(attempt.pod.uid, None):
            self.cluster.singleton(Choices).drop(attempt.pod.uid)
        if self.is_relaxed:
            self.cluster.forget(attempt.info)
        elif self._group.runner.profile.reserves and self.state(c).active_plugins.reserves:
            yield from give_back(self._context, attempt, attempt.info.node_name)
        else:
            self.cluster.forget(attempt.info)

    def clear(self) -> Generator[Effect, Answer, None]:
        while self.placed:
            yield from self.take_back()

    def goes_on(self) -> Generator[Effect, Answer, Unproven | None]:
        steps = STATE_STEPS + self.cluster.nodes.height // ROWS_A_STEP
        return (yield from self.charge(steps * (1 + len(self.members) // CLASSES_A_STATE)))

    def charge(self, steps: float) -> Generator[Effect, Answer, Unproven | None]:
        """Pause if the slice is used up, then charge steps; a result ends the search."""
        self._left -= steps
        if self._left < self._kept:
            return SPENT
        budget = self.cluster.budget
        if budget.is_used_up:
            for _, attempt in self.placed:
                node = attempt.info.node_name
                self._group.freed.add(attempt.info.cls.number, attempt.pod, node)
            before = self._version()
            yield Pause()
            self.was_moved |= self._version() != before
        if self._has_other_rows:
            return MOVED
        budget.note(steps)
        return None

    @property
    def _has_other_rows(self) -> bool:
        """Whether nodes were added or removed, so that `within` does not match the rows."""
        return self.cluster.nodes.height != len(self.within)

    def keep_half(self) -> None:
        """Reserve half of the remaining steps for another search."""
        self._kept = self._left / 2

    def keep_nothing(self) -> None:
        self._kept = 0.0

    def patiently(self, ask: Callable[[], T]) -> Generator[Effect, Answer, T | Unproven]:
        while True:
            if self._has_other_rows:
                return MOVED
            try:
                return ask()
            except OutOfTurn:  # results so far are cached
                stop = yield from self.charge(STATE_STEPS)
                if stop is not None:
                    return stop

    def _version(self) -> tuple[int, int, int, int]:
        cluster = self.cluster
        return (
            cluster.nodes.log.end,
            cluster.nodes.generation,
            cluster.epoch,
            self._context.nominator.generation,
        )

    # --- equal rows ------------------------------------------------------------------------------

    def alike(self) -> tuple[int, ...]:
        """For each row the first row that is equal: in labels except the host name, taints, free
        amounts, pods and the results of all filters. Each row is its own if a plugin may read
        names.
        """
        height = self.cluster.nodes.height
        if not all(self._ignores_names(c) for c in range(len(self.members))):
            return tuple(range(height))
        codes = [
            [verdict.codes for verdict in self.state(c).active]
            for c in range(len(self.members))
            if not self.state(c).update(self.example(c)).rejection
        ]
        columns = np.array([column for of_class in codes for column in of_class]).reshape(
            -1, height
        )
        hosts: dict[str, int] = {}
        for _, node in self.cluster.nodes.nodes():
            name = node.labels.get(LABEL_HOSTNAME, "")
            hosts[name] = hosts.get(name, 0) + 1
        numbers: dict[object, int] = {}
        found = []
        for row in range(height):
            read = self._read_by_rules(row, hosts)
            key = (row,) if read is None else (read, columns[:, row].tobytes())
            found.append(numbers.setdefault(key, row))
        return tuple(found)

    def _ignores_names(self, c: int) -> bool:
        plugins = self.state(c).active_plugins
        return not self.chooses(c) and all(
            isinstance(f.plugin, OrderFree) or ignores_pods(f.plugin) for f in plugins.filters
        )

    def _read_by_rules(self, row: int, hosts: dict[str, int]) -> object:
        """All that rules read of a row; None if no other row can be equal."""
        node = self.cluster.nodes.node_at[row]
        if node is None or self._context.nominator.on(node.name):
            return None
        pods = sorted(
            (info.cls.number, info.pod.priority, info.pod.is_terminating)
            for info in self.cluster.pods_on(row).values()
        )
        spec, status = node.spec, node.status
        fields = (spec.unschedulable, spec.taints, status.declared_features, _amounts(node))
        return _labels(node, hosts), fields, tuple(pods), bool(self.within[row])


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


def free_of(nodes: NodeView, places: Sequence[int]) -> I64:
    """int64[len(places), M]: free amounts on the rows."""
    rows = [
        nodes.allowed_pods - nodes.pod_count
        if at == POD_PLACE
        else nodes.allocatable(at) - nodes.requested(at)
        for at in places
    ]
    found: I64 = np.maximum(np.array(rows, dtype=np.int64), 0)
    return found


def _labels(node: Node, hosts: dict[str, int]) -> tuple[tuple[str, str], ...]:
    labels = dict(node.labels)
    if hosts.get(labels.get(LABEL_HOSTNAME, "")) == 1:
        labels[LABEL_HOSTNAME] = ""
    return tuple(sorted(labels.items()))


def _amounts(node: Node) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((node.status.allocatable or {}).items()))
