"""A group in numbers, as its profile's filters see it: classes of equal pods and feasible rows.

A class is a set of pods that no rule distinguishes: pods of one `PodClass` and one priority, whose
resource claims have equal specs and statuses.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Hashable, Iterator
from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec.json import encode

from asched.batch.groups.attempt import GroupAttempt
from asched.batch.placement.bounds import I64, GangProblem, Unproven
from asched.batch.placement.plan import Rule
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import LabelSet, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.order_free import (
    POD_PLACE,
    is_order_free,
    left_of,
    slots_of,
    takes_of,
)
from asched.core.framework.placements import Mask, Placement
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated import ignores_pods
from asched.core.model.kinds import NAMESPACE, RESOURCE_CLAIM
from asched.core.model.pod import Pod
from asched.core.model.requests import PODS
from asched.core.model.selector import Selector, compile_selector, matches
from asched.core.model.workload import Namespace

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

    def _version(self) -> tuple[int, int, int, int]:
        cluster = self.cluster
        return (
            cluster.nodes.log.end,
            cluster.nodes.generation,
            cluster.epoch,
            self._context.nominator.generation,
        )


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
