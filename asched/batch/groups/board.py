"""A group in numbers, as its profile's filters see it: classes of equal pods and feasible rows; and
what counting shows.

A class is a set of pods that no rule distinguishes: pods of one `PodClass` and one priority, whose
resource claims have equal specs and statuses.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import inf
from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec.json import encode

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement.bounds import I64, GangProblem, Unproven, refuted
from asched.batch.placement.plan import Rule
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing
from asched.core.cluster.nodes import FIXED_RESOURCES, Aspect, NodeTable
from asched.core.cluster.pod_groups import is_coscheduled
from asched.core.cluster.pods import LabelSet, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.order_free import (
    POD_PLACE,
    OrderFree,
    is_order_free,
    left_of,
    slots_of,
    takes_of,
)
from asched.core.framework.placements import Divisions, Mask, Placement
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated import ignores_pods
from asched.core.framework.results.part_sums import KeptSums, OfRow, PartSums
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.kinds import COMPOSITE_POD_GROUP, NAMESPACE, POD_GROUP, RESOURCE_CLAIM
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod
from asched.core.model.requests import PODS
from asched.core.model.selector import Selector, compile_selector, matches
from asched.core.model.workload import Namespace, PodGroup
from asched.core.queue.queued import QueuedPod

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
        self._left: float = steps
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
        return self._group.runner.fitting(self.example(c)).rows(self.within)

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
        self._left -= steps
        if self._left < 0:
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


# Describe a group on its board in numbers, for bounds and plans (`batch/placement`).
#
# Bounds  CLASSES_MAX classes, and CELLS_MAX cells of classes by rows, but at least CLASSES_MIN
#         classes; RULES_MAX rules, from LOOKS_MAX evaluated requirements: plans are guesses, and
#         the filters check the rest.

#: Sums of amounts up to this are exact in 64 bits.
AMOUNT_MAX: Final = float(1 << 62)
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a value compared
#: With more cells the bounds alone take a quarter of a second in one step.
CELLS_MAX: Final = 1_000_000
CLASSES_MIN, CLASSES_MAX = 8, 250
RULES_MAX: Final = 64
#: Some 50 ms.
LOOKS_MAX: Final = 100_000


class Description(NamedTuple):
    """`problem` has only restrictions that follow from the rules; `hopeful` also restricts rows to
    those where pods fit now. `names` of classes, `resources` by axis R.
    """

    problem: GangProblem
    hopeful: GangProblem
    rules: list[Rule]
    names: list[str]
    resources: list[str]


def described(board: GroupBoard) -> Description | None:
    """Describe the board. None if amounts are too large to be summed, or there are too many classes
    by rows. Raises PointError, OutOfTurn.
    """
    size = len(board.counts)
    most = max(CLASSES_MIN, CELLS_MAX // max(board.cluster.nodes.height, 1))
    if size > min(most, CLASSES_MAX):
        return None
    takes = [board.takes(c) for c in range(size)]
    places = sorted({at for of_class in takes for at in of_class if at != POD_PLACE})
    if any(POD_PLACE in of_class for of_class in takes):
        places.append(POD_PLACE)
    needs = np.array([[of_class.get(at, 0) for at in places] for of_class in takes], dtype=np.int64)
    needs = needs.reshape(size, len(places))
    free = board.free(places) if places else np.zeros((0, board.cluster.nodes.height), np.int64)
    sums = needs.sum(axis=0, dtype=np.float64) * sum(board.counts)
    if (sums > AMOUNT_MAX).any():
        return None
    now = [board.feasible(c) for c in range(size)]
    rows = np.array([_rows(board, c, now[c]) for c in range(size)])
    apart = _clashes(board)
    caps = tuple(1 if apart[c, c] else count for c, count in enumerate(board.counts))
    np.fill_diagonal(apart, val=False)
    problem = GangProblem(
        counts=board.counts,
        needs=needs,
        free=free,
        rows=rows,
        caps=caps,
        apart=apart,
        needed=board.needed,
    )
    hopes = np.array([now[c] if now[c].any() else rows[c] for c in range(size)])
    vocab = board.cluster.nodes.resources.values
    names = [board.example(c).pod.metadata.name for c in range(size)]
    resources = [PODS if at == POD_PLACE else vocab[at + 1] for at in places]
    hopeful = GangProblem(
        problem.counts, needs, free, hopes, problem.caps, problem.apart, problem.needed
    )
    return Description(problem, hopeful, _rules(board), names, resources)


def _rows(board: GroupBoard, c: int, now: Mask) -> Mask:
    """Rows where pods of a class may go at any stage of the search: only filters whose results
    never improve while pods are added count.
    """
    if board.is_order_free(c):
        return now
    mask: Mask = board.within & board.cluster.nodes.columns.read("live")[: len(now)]
    state = board.state(c)
    if state.update(board.example(c)).rejection is None:
        for verdict in state.active:
            if is_order_free(verdict.plugin, board.example(c)):
                mask = mask & (verdict.codes == 0)
    return mask


def _clashes(board: GroupBoard) -> Mask:
    """bool[C, C]: pairs of classes whose pods request the same host port; on the diagonal, classes
    whose pods request any.
    """
    size = len(board.counts)
    found = np.zeros((size, size), dtype=np.bool_)
    users: dict[tuple[str, int], defaultdict[str, set[int]]] = {}  # port to address to classes
    for c in range(size):
        for port in board.example(c).cls.host_ports:
            by_address = users.setdefault((port.protocol, port.port), defaultdict(set))
            by_address[port.ip].add(c)
    pairs = set()
    for by_address in users.values():
        all_users = frozenset[int]().union(*by_address.values())
        pairs.add((frozenset(by_address.get(ANY_ADDRESS, ())), all_users))
        pairs.update((frozenset(some), frozenset(some)) for some in by_address.values())
    for left, right in pairs:
        found[np.ix_(sorted(left), sorted(right))] = True
    return found | found.T


class _ClassConstraint(NamedTuple):
    """A constraint of class `owner` on pods of a selector and the domains of a label."""

    owner: int
    kind: Literal["together", "apart", "even"]
    selector: Selector | None
    topology_key: str
    skew: int = 0


def _rules(board: GroupBoard) -> list[Rule]:
    """The rules of the group's pods about each other's domains."""
    found: list[Rule] = []
    there = _Placed(board.cluster)
    looks = 0
    for constraint in _constraints(board):
        asked = len(board.counts)
        if constraint.kind == "even":
            asked += len(there.sets(board.example(constraint.owner)))
        looks += asked * (1 + len(constraint.selector.requirements if constraint.selector else ()))
        if looks > LOOKS_MAX or len(found) == RULES_MAX:
            break
        about = _about(board, constraint.selector, constraint.owner)
        if about or constraint.kind == "even":
            found.append(_rule(board, constraint, about, there))
    return found


def _constraints(board: GroupBoard) -> Iterator[_ClassConstraint]:
    for c in range(len(board.counts)):
        cls = board.example(c).cls
        inside = cls.label_set.namespace
        namespace: Namespace | None = board.cluster.get(NAMESPACE, inside)
        labels = namespace.metadata.labels if namespace is not None else None
        for term in cls.terms.required_affinity:
            if term.looks_into(inside, labels):
                yield _ClassConstraint(c, "together", term.selector, term.topology_key)
        for term in cls.terms.required_anti_affinity:
            if term.looks_into(inside, labels):
                yield _ClassConstraint(c, "apart", term.selector, term.topology_key)
        for spread in cls.example.spec.topology_spread_constraints or ():
            if spread.when_unsatisfiable == DO_NOT_SCHEDULE:
                keys, own = spread.match_label_keys or (), cls.label_set.labels
                selector = compile_selector(spread.label_selector, keys, own)
                yield _ClassConstraint(c, "even", selector, spread.topology_key, spread.max_skew)


class _Placed:
    """Rows of placed pods that are not being deleted, by their labels, collected on first use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, defaultdict[LabelSet, list[int]]] | None = None

    def sets(self, pod: PodInfo) -> dict[LabelSet, list[int]]:
        """The rows by labels in a pod's namespace."""
        if self._rows is None:
            self._rows = {}
            for info in self._cluster.placed.values():
                if info.row >= 0 and not info.pod.is_terminating:
                    labels = info.cls.label_set
                    rows = self._rows.setdefault(labels.namespace, defaultdict(list))
                    rows[labels].append(info.row)
        return self._rows.get(pod.cls.label_set.namespace, {})


def _about(board: GroupBoard, selector: Selector | None, owner: int) -> frozenset[int]:
    if selector is None:
        return frozenset()
    return frozenset(
        c
        for c in range(len(board.counts))
        if selector.matches(board.example(c).cls.label_set.labels)
        and (c != owner or board.counts[c] > 1)
    )


def _rule(
    board: GroupBoard, constraint: _ClassConstraint, about: frozenset[int], placed: _Placed
) -> Rule:
    nodes = board.cluster.nodes
    domains = nodes.label_column(constraint.topology_key).ids[: nodes.height].astype(np.int64)
    there = np.zeros(int(domains.max(initial=0)) + 1, dtype=np.int64)
    if constraint.kind == "even":
        for labels, rows in placed.sets(board.example(constraint.owner)).items():
            if matches(constraint.selector, labels.labels):
                np.add.at(there, domains[rows], 1)
    there[0] = 0
    return Rule(constraint.kind, constraint.owner, about, domains, constraint.skew, there)


#: Some 50 MB. With more pods in a cycle none is in the cache, and each dry run costs six times as
#: much.
PODS_MAX: Final = 200_000
#: The memory of a gang beside its pods, counted in pods.
GANG_PODS: Final = 4
#: With more PodGroups one of them may be less important than any gang.
WHOLE_MAX: Final = 1_000
#: Resources of every node, each at a fixed index on axis R.
PLACES: Final = (POD_PLACE, *range(len(FIXED_RESOURCES)))


# Dry runs of waiting gangs: which certainly have no places now.
#
#     totals    the needs of the gang's cheapest pods, and the free amounts of all nodes together
#     bounds    the counts of `batch/placement/bounds.py`, of nodes that accept the pods
#
# Both check less than all rules, so an attempt at a refuted gang would fail; a gang that is not
# refuted is tried, and so is a gang whose pods might evict other pods.
#
# Bounds  PODS_MAX pods of recently checked gangs are cached, with GANG_PODS more for each gang;
#         results are cached for equal gangs while nothing changes that a filter reads.
class Waiting(NamedTuple):
    """The unplaced pods of a gang. `looks`: the number of pods by class and priority; `sums`: by
    resource, the needs of the cheapest 1, 2, 3 ... pods; `most_important`: the highest priority of
    pods that may evict others, None if none may; `is_beyond`: counting does not suffice for them.
    """

    pods: tuple[Pod, ...]
    read_at: Hashable
    infos: tuple[PodInfo, ...]
    looks: frozenset[tuple[Hashable, int]]
    sums: Mapping[int, list[int]]
    most_important: int | None
    is_beyond: bool


class GangDryRuns:
    def __init__(self) -> None:
        self._version: Hashable = None
        self._known: Lru[str, Waiting] = Lru(PODS_MAX)
        self._found: dict[Hashable, bool] = {}
        self._free: dict[int, int] = {}
        #: the lowest priority of a group that is evicted as a whole; None until it is needed
        self._lowest_whole: float | None = None

    def has_no_places(
        self, context: SchedulerContext, runner: Runner, queued: QueuedPod, version: Hashable
    ) -> bool:
        """Whether an attempt at all pods of the gang is certain to fail. `version` changes with all
        that filters read. Raises PointError, OutOfTurn.
        """
        self._renew(version)
        cluster, key = context.cluster, queued.gang
        if cluster.pod_groups.tree_of(key) is not None:
            return False
        members, needed = cluster.pod_groups.get(key), max(count_missing(cluster, key), 1)
        if needed > len(members.unplaced) - len(members.foreign) or not context.gang_search_steps:
            return False
        most = max(pod.priority for pod in members.unplaced.values())
        if context.extensions.yields_to(most):
            return False  # held places may give way to it
        waiting = self._waiting(context, runner, key)
        above = waiting.most_important
        if not self._is_countable(context, waiting):
            return False
        if above is not None and self._may_evict(context, key, above):
            return False
        return self._is_too_large(context, runner, queued, waiting, needed)

    def may_start(
        self, context: SchedulerContext, runner: Runner, queued: QueuedPod, version: Hashable
    ) -> bool:
        """Whether the gang has places by counting, without evictions and held places; False if
        counting does not suffice. Raises as `has_no_places`.
        """
        self._renew(version)
        key, groups = queued.gang, context.cluster.pod_groups
        if groups.tree_of(key) is not None:
            return False
        needed = max(count_missing(context.cluster, key), 1)
        waiting = self._waiting(context, runner, key)
        if needed > len(waiting.pods) or not self._is_countable(context, waiting):
            return False
        return not self._is_too_large(context, runner, queued, waiting, needed)

    def _is_countable(self, context: SchedulerContext, waiting: Waiting) -> bool:
        """Whether counting says something about these pods: none is nominated, and no extender or
        plugin of nodes of its own choice takes part.
        """
        node_of = context.nominator.node_of
        is_nominated = context.nominator and any(node_of(pod.uid) for pod in waiting.pods)
        return not (waiting.is_beyond or is_nominated)

    def _is_too_large(
        self,
        context: SchedulerContext,
        runner: Runner,
        queued: QueuedPod,
        waiting: Waiting,
        needed: int,
    ) -> bool:
        return self._is_short(context, waiting, needed) or self._is_refuted(
            context, runner, queued, waiting, needed
        )

    def _renew(self, version: Hashable) -> None:
        """Drop what was found at another version."""
        if version != self._version:
            self._version = version
            self._found.clear()
            self._free.clear()
            self._lowest_whole = None

    def _may_evict(self, context: SchedulerContext, key: str, above: int) -> bool:
        """Whether less important pods or groups might make room for the gang. `above`: the highest
        priority of its pods.
        """
        cluster = context.cluster
        if is_coscheduled(key) or not context.gangs.makes_room:
            return cluster.priorities.are_below(above)
        group: PodGroup | None = cluster.get(POD_GROUP, key)
        if group is None or cluster.priorities.are_below(group.priority):
            return True
        if self._lowest_whole is None:
            groups = [*cluster.all(POD_GROUP).values(), *cluster.all(COMPOSITE_POD_GROUP).values()]
            whole = [group.priority for group in groups[:WHOLE_MAX] if group.goes_whole]
            self._lowest_whole = -inf if len(groups) > WHOLE_MAX else min(whole, default=inf)
        return self._lowest_whole < group.priority

    def _waiting(self, context: SchedulerContext, runner: Runner, key: str) -> Waiting:
        cluster, members = context.cluster, context.cluster.pod_groups.get(key)
        pods = tuple([pod for uid, pod in members.unplaced.items() if uid not in members.foreign])
        read_at = runner, cluster.epoch, cluster.topology.terms_generation
        waiting = self._known.get(key)
        if waiting is None or waiting.read_at != read_at or waiting.pods != pods:
            waiting = _read(context, runner, pods, read_at)
            self._known.put(key, waiting, len(pods) + GANG_PODS)
        return waiting

    def _is_short(self, context: SchedulerContext, waiting: Waiting, needed: int) -> bool:
        """Whether all nodes together have too little of a resource."""
        for place, sums in waiting.sums.items():
            if place not in self._free:
                self._free[place] = _free(context, place)
            if sums[needed - 1] > self._free[place]:
                return True
        return False

    def _is_refuted(
        self,
        context: SchedulerContext,
        runner: Runner,
        queued: QueuedPod,
        waiting: Waiting,
        needed: int,
    ) -> bool:
        key = needed, waiting.looks
        if key not in self._found:
            attempts = [Attempt(0, queued, info, runner, 0.0) for info in waiting.infos]
            group = GroupAttempt(attempts[0], attempts, queued.gang)
            description = described(GroupBoard(context, group, needed, None, 0))
            self._found[key] = description is not None and bool(
                refuted(description.problem, description.names, description.resources)
            )
        return self._found[key]


def _read(
    context: SchedulerContext, runner: Runner, pods: tuple[Pod, ...], read_at: Hashable
) -> Waiting:
    infos = tuple([context.cluster.classes.info_of(pod) for pod in pods])
    states = [runner.cache.state_of(info) for info in infos]
    evictors = [pod.priority for pod in pods if pod.spec.preemption_policy != "Never"]
    takers = [
        f.plugin
        for f in runner.profile.filters
        if isinstance(f.plugin, OrderFree) and type(f.plugin).takes is not OrderFree.takes
    ]
    amounts: dict[int, list[int]] = {}
    for info in infos:
        needs = takes_of(takers, info)
        for place in PLACES:
            amounts.setdefault(place, []).append(needs.get(place, 0))
    looks = Counter((s.number, i.pod.priority) for s, i in zip(states, infos, strict=True))
    return Waiting(
        pods,
        read_at,
        infos,
        frozenset(looks.items()),
        {place: list(accumulate(sorted(of_all))) for place, of_all in amounts.items()},
        max(evictors, default=None),
        any(
            info.pod.spec.scheduler_name != runner.profile.scheduler_name
            or info.pod.status.nominated_node_name
            or runner.consults(info)
            or not state.active_plugins.keeps_all
            or not runner.treats_equals_alike(state.active_plugins)
            for info, state in zip(infos, states, strict=True)
        ),
    )


def _free(context: SchedulerContext, place: int) -> int:
    """The free amount of all nodes together, as an exact integer."""
    left = left_of(NodeView(context.cluster.nodes), (place,))[0]
    return sum(amount for amount in left.tolist() if amount > 0)


# Find placements that certainly take a whole group, or certainly do not, by counting slots.
#
# Equal pods for which only amounts and single nodes matter may fill a placement in any order: all
# of them fit if and only if its rows have as many slots together. That replaces the trials of
# placements of which only one is chosen. The chosen placement is tried as usual, and if the trial
# fails, all placements are tried. If any other rule matters, or pods might be evicted, all are
# tried, too.
#
# Bounds  linear in the nodes.

#: The aspects of rows that slots depend on.
READS: Final = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


def guess(
    context: SchedulerContext,
    group: GroupAttempt,
    placements: Sequence[Placement],
    *,
    is_wanted: bool = True,
) -> list[bool | None]:
    """For each placement: True if all pods of the group fit there now; False if they do not, no
    room can be made, and another placement fits; None if only a trial can find out.
    """
    unknown: list[bool | None] = [None] * len(placements)
    if not is_wanted or len(placements) <= 1:
        return unknown
    size, least = len(group.attempts), _least(context, group)
    counts = _counts(context, group, placements) if size >= least else None
    if counts is None:
        return unknown
    if min(counts) >= size:
        return [True] * len(counts)
    is_certain = max(counts) >= size and not _makes_room(context, group)
    return [
        True if count >= size else False if is_certain and count < least else None
        for count in counts
    ]


def _least(context: SchedulerContext, group: GroupAttempt) -> int:
    """The number of attempts that must have places."""
    return max(count_missing(context.cluster, group.key), 1)


def _makes_room(context: SchedulerContext, group: GroupAttempt) -> bool:
    """Whether pods could be evicted for one of the pods."""
    plugins = group.runner.profile.post_filters
    if not all(plugin.spares_equals for plugin in plugins):
        return True
    return bool(plugins) and context.cluster.priorities.are_below(group.pod.priority)


def _counts(
    context: SchedulerContext, group: GroupAttempt, placements: Sequence[Placement]
) -> list[int] | None:
    """The number of pods of the group that each placement takes; None if it cannot be counted."""
    if group.consults or group.nominated or context.nominator:
        return None
    for scorer in group.runner.profile.placement_scorers:
        if not scorer.plugin.ignores_nodes:
            return None
    pod = group.attempts[0].info
    cls, priority = pod.cls, pod.pod.priority
    for attempt in group.attempts:
        if attempt.info.cls is not cls or attempt.info.pod.priority != priority:
            return None
    context.cluster.budget.note(STATE_STEPS)
    try:
        fitting = group.runner.fitting(pod)
        is_refused = len(fitting.refused.rows) > 0
    except (OutOfTurn, PointError):
        return None  # the trial reports it
    state, most = fitting.state, len(group.attempts)
    needs = None if state.active_plugins.reserves else _needs(state, pod)
    if needs is None:
        return None
    cluster = context.cluster
    parts = cluster.singleton(Divisions).of(placements)
    if parts is not None and not is_refused and fitting.rejection is None:
        part_sums = cluster.singleton(_GuessSums).get(
            (state.number, most),
            parts,
            lambda: PartSums(cluster.nodes, parts, READS, state.mask.turned),
        )
        sums = part_sums.of(
            partial(_slots, state, needs, most),
            tuple(needs.items()),
            of_row=_slots_of_rows(cluster.nodes, state, needs, most),
        )
        assert sums is not None  # the number of pods is too small for an overflow
        counts: list[int] = sums[0].tolist()
        return counts
    cluster.budget.note(cluster.nodes.height // ROWS_A_STEP)
    board = GroupBoard(context, group, 0, None, 0)
    slots = np.where(board.feasible(0), board.slots(0), 0)
    return [0 if part.rows is None else int(slots[part.rows].sum()) for part in placements]


def _needs(state: ClassState, pod: PodInfo) -> Mapping[int, int] | None:
    """As `takes_of`; None if a filter reads more of the pods on a row than their amounts."""
    taking = 0
    for filterer in state.active_plugins.filters:
        if takes_of((filterer.plugin,), pod):
            taking += 1
        elif not ignores_pods(filterer.plugin):
            return None
    return takes_of([f.plugin for f in state.active_plugins.filters], pod) if taking else {}


def _slots(state: ClassState, needs: Mapping[int, int], most: int, nodes: NodeView) -> I64:
    """int64[1, M]: the number of pods of the class that each row takes, at most `most`."""
    feasible = state.feasible if nodes.rows is None else state.feasible[nodes.rows]
    free = np.maximum(left_of(nodes, list(needs)), 0)
    return slots_of(np.where(feasible, most, 0), needs.values(), free).reshape(1, -1)


def _slots_of_rows(
    nodes: NodeTable, state: ClassState, needs: Mapping[int, int], most: int
) -> OfRow:
    """As `_slots`, for one row at a time."""
    read, mask, items = nodes.columns.read, state.mask, tuple(needs.items())
    allowed, count = read("allowed_pods").item, read("pod_count").item
    allocatable, requested = read("allocatable").item, read("requested").item

    def slots(row: int) -> tuple[int]:
        if not mask.has(row):
            return (0,)
        found = most
        for at, need in items:
            if at == POD_PLACE:
                free = allowed(row) - count(row)
            else:
                free = allocatable(at, row) - requested(at, row)
            if free < found * need:
                found = free // need if free > 0 else 0
        return (found,)

    return slots


class _GuessSums(KeptSums):
    """Cached sums of slots. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        super().__init__()
