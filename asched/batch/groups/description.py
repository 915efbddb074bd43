"""Describe a group on its board in numbers, for bounds and plans (`batch/placement`).

Bounds  CLASSES_MAX classes, and CELLS_MAX cells of classes by rows, but at least CLASSES_MIN
        classes; RULES_MAX rules, from REQUIREMENTS_MAX evaluated requirements: plans are guesses,
        and the filters check the rest.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import numpy as np

from asched.batch.groups.board import GroupBoard
from asched.batch.placement.domains import Rule
from asched.batch.placement.gang_problem import GangProblem
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import LabelSet, PodInfo
from asched.core.framework.order_free import POD_PLACE, is_order_free
from asched.core.framework.placements import Mask
from asched.core.model.kinds import NAMESPACE
from asched.core.model.requests import PODS
from asched.core.model.selector import Selector, compile_selector, matches
from asched.core.model.workload import Namespace

#: Sums of amounts up to this are exact in 64 bits.
AMOUNT_MAX: Final = float(1 << 62)
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a value compared
#: With more cells the bounds alone take a quarter of a second in one step.
CELLS_MAX: Final = 1_000_000
CLASSES_MIN, CLASSES_MAX = 8, 250
RULES_MAX: Final = 64
#: Some 50 ms.
REQUIREMENTS_MAX: Final = 100_000


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
    rules = np.zeros((size, size), dtype=np.bool_)
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
        rules[np.ix_(sorted(left), sorted(right))] = True
    return rules | rules.T


class _ClassConstraint(NamedTuple):
    """A constraint of class `owner` on pods of a selector and the domains of a label."""

    owner: int
    kind: Literal["together", "apart", "even"]
    selector: Selector | None
    topology_key: str
    skew: int = 0


def _rules(board: GroupBoard) -> list[Rule]:
    """The rules of the group's pods about each other's domains."""
    rules: list[Rule] = []
    there = _Placed(board.cluster)
    requirements = 0
    for constraint in _constraints(board):
        label_sets = len(board.counts)
        if constraint.kind == "even":
            label_sets += len(there.sets(board.example(constraint.owner)))
        of_each = constraint.selector.requirements if constraint.selector else ()
        requirements += label_sets * (1 + len(of_each))
        if requirements > REQUIREMENTS_MAX or len(rules) == RULES_MAX:
            break
        about = _about(board, constraint.selector, constraint.owner)
        if about or constraint.kind == "even":
            rules.append(_rule(board, constraint, about, there))
    return rules


def _constraints(board: GroupBoard) -> Iterator[_ClassConstraint]:
    for c in range(len(board.counts)):
        cls = board.example(c).cls
        inside = cls.label_set.namespace
        namespace: Namespace | None = board.cluster.get(NAMESPACE, inside)
        labels = namespace.metadata.labels if namespace is not None else None
        for term in cls.terms.required_affinity:
            if term.covers_namespace(inside, labels):
                yield _ClassConstraint(c, "together", term.selector, term.topology_key)
        for term in cls.terms.required_anti_affinity:
            if term.covers_namespace(inside, labels):
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
