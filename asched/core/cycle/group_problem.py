"""A group on its board, written down in numbers for bounds and plans (`core/gang`)."""

from typing import Final, NamedTuple

import numpy as np

from asched.core.cycle.group_board import GroupBoard
from asched.core.framework.order_free import POD_PLACE, is_order_free
from asched.core.framework.placements import Mask
from asched.core.gang.domains import Rule
from asched.core.gang.problem import I64, Problem
from asched.core.model.requests import PODS
from asched.core.model.selector import Selector, compile_selector, matches
from asched.core.state.pods import HostPort, LabelSet

#: Sums of amounts up to this are exact in 64 bits.
AMOUNT_MAX: Final = float(1 << 62)
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a value compared


class Description(NamedTuple):
    """`problem` says nothing that the rules do not say; `hopeful` also where pods fit just now.
    `names` of classes, `resources` by axis R.
    """

    problem: Problem
    hopeful: Problem
    rules: list[Rule]
    names: list[str]
    resources: list[str]


def described(board: GroupBoard) -> Description | None:
    """None if amounts are too large to be summed. Raises PointError, OutOfTurn."""
    size = len(board.counts)
    takes = [board.takes(c) for c in range(size)]
    places = sorted({at for one in takes for at in one if at != POD_PLACE})
    if any(POD_PLACE in one for one in takes):
        places.append(POD_PLACE)
    needs = np.array([[one.get(at, 0) for at in places] for one in takes], dtype=np.int64)
    needs = needs.reshape(size, len(places))
    free = board.free(places) if places else np.zeros((0, board.cluster.nodes.height), np.int64)
    sums = needs.sum(axis=0, dtype=np.float64) * sum(board.counts)
    if (sums > AMOUNT_MAX).any():
        return None
    now = [board.feasible(c) for c in range(size)]
    rows = np.array([_rows(board, c, now[c]) for c in range(size)])
    problem = Problem(
        counts=board.counts,
        needs=needs,
        free=free,
        rows=rows,
        caps=tuple(1 if _clash(board, c, c) else count for c, count in enumerate(board.counts)),
        apart=np.array(
            [[a != b and _clash(board, a, b) for b in range(size)] for a in range(size)]
        ).reshape(size, size),
        needed=board.needed,
    )
    hopes = np.array([now[c] if now[c].any() else rows[c] for c in range(size)])
    vocab = board.cluster.nodes.resources.values
    names = [board.example(c).pod.metadata.name for c in range(size)]
    resources = [PODS if at == POD_PLACE else vocab[at + 1] for at in places]
    hopeful = Problem(
        problem.counts, needs, free, hopes, problem.caps, problem.apart, problem.needed
    )
    return Description(problem, hopeful, _rules(board), names, resources)


def _rows(board: GroupBoard, c: int, now: Mask) -> Mask:
    """Where a class may ever go while nothing leaves: only what never relents is believed."""
    if board.is_order_free(c):
        return now
    mask: Mask = board.within & board.cluster.nodes.columns.read("live")[: len(now)]
    state = board.state(c)
    if state.update(board.example(c)).rejection is None:
        for verdict in state.active:
            if is_order_free(verdict.plugin, board.example(c)):
                mask = mask & (verdict.codes == 0)
    return mask


def _clash(board: GroupBoard, a: int, b: int) -> bool:
    return any(
        _same(one, other)
        for one in board.example(a).cls.host_ports
        for other in board.example(b).cls.host_ports
    )


def _same(one: HostPort, other: HostPort) -> bool:
    is_one = one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)
    return is_one and (one.protocol, one.port) == (other.protocol, other.port)


def _rules(board: GroupBoard) -> list[Rule]:
    """What pods of the group say about each other's domains."""
    found: list[Rule] = []
    for c in range(len(board.counts)):
        cls = board.example(c).cls
        for term in cls.terms.required_affinity:
            about = _about(board, term.selector, c)
            if about:
                found.append(_rule(board, "together", c, about, term.topology_key))
        for term in cls.terms.required_anti_affinity:
            about = _about(board, term.selector, c)
            if about:
                found.append(_rule(board, "apart", c, about, term.topology_key))
        for constraint in cls.example.spec.topology_spread_constraints or ():
            if constraint.when_unsatisfiable == DO_NOT_SCHEDULE:
                selector = compile_selector(constraint.label_selector)
                about = _about(board, selector, c)
                there = (selector, cls.label_set.namespace)
                key, skew = constraint.topology_key, constraint.max_skew
                found.append(_rule(board, "even", c, about, key, skew, there))
    return found


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
    board: GroupBoard,
    kind: str,
    owner: int,
    about: frozenset[int],
    key: str,
    skew: int = 0,
    counted: tuple[Selector | None, str] | None = None,
) -> Rule:
    nodes = board.cluster.nodes
    domains = nodes.label_column(key).ids[: nodes.height].astype(np.int64)
    there = np.zeros(int(domains.max(initial=0)) + 1, dtype=np.int64)
    if counted is not None:
        selector, namespace = counted
        matched: dict[LabelSet, bool] = {}
        for info in board.cluster.placed.values():
            labels = info.cls.label_set
            if labels not in matched:
                is_ours = labels.namespace == namespace
                matched[labels] = is_ours and matches(selector, labels.labels)
            if matched[labels] and info.row >= 0:
                there[domains[info.row]] += 1
    return Rule(kind, owner, about, domains, skew, _but_none(there))  # type: ignore[arg-type]


def _but_none(there: I64) -> I64:
    there[0] = 0
    return there
