"""Dry runs: which pods must be evicted from a node so that a pod fits.

All pods of lower priority are removed; if the pod does not fit then, evicting cannot help.
Otherwise they are put back one after the other as long as the pod still fits, those that a
disruption budget protects first, then the rest, each time the most important first. A pod that
cannot be put back is a victim. `cost.py` chooses among the nodes.

`dry_run` does that to one node by trial, with every filter. `suppose` does it to many rows at once,
slot by slot, for classes whose filters consider only amounts; tests compare both.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
        (SelectVictimsOnNode)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.supposition import Supposition
from asched.core.cluster.view import SupposedView
from asched.core.framework.points import FilterPlugin
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.status import MISTAKES, Reason, Status, raise_plugin_error
from asched.core.model.arrays import I32, I64, Indices, Mask
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.cost import Cost, costs_of
from asched.core.preemption.pods_by_priority import PodsByPriority, by_importance

_NOTHING: Final[Mapping[tuple[str, int], int]] = {}
NO_VICTIM: Final[Mask] = np.zeros((0, 0), dtype=np.bool_)
NO_COSTS: Final[I64] = np.zeros((len(Cost._fields), 0), dtype=np.int64)
NO_VICTIMS: Final = Reason("No preemption victims found for incoming pod", resolvable=False)


class DryRun(NamedTuple):
    """Result for one node: its victims, the most important first, or why it is no candidate."""

    victims: tuple[PodInfo, ...]
    violations: int
    status: Status | None


#: The dry run of a row without pods of lower priority.
NO_LOWER_PODS: Final = DryRun((), 0, NO_VICTIMS.status)


def dry_run(
    pod: PodInfo, row: int, lower: Sequence[PodInfo], trial: Trial, budgets: Budgets
) -> DryRun:
    """Try one row with every filter, its nominated pods included. `lower`: its pods of lower
    priority, the most important first.
    """
    if not lower:
        return NO_LOWER_PODS
    with trial.cluster.supposing().gone(lower, row) as suppose:
        status = trial.status_of(pod, row)
        if status is not None:
            return DryRun((), 0, status)

        def stays(_: PodInfo) -> bool:
            return trial.status_of(pod, row) is None

        return DryRun(*reprieve(suppose, lower, row, budgets, stays), None)


def reprieve(
    suppose: Supposition,
    gone: Sequence[PodInfo],
    row: int,
    budgets: Budgets,
    stays: Callable[[PodInfo], bool],
) -> tuple[tuple[PodInfo, ...], int]:
    """Put removed pods back, those first that a budget protects, then the most important; `gone`
    come with the most important first. Returns the pods that may not stay, and how many of them a
    budget protects.
    """
    victims: list[PodInfo] = []
    violations = 0
    over = zip(budgets.violations(gone), gone, strict=True)
    for is_over, info in sorted(over, key=lambda entry: not entry[0]):
        suppose.there((info,), row)
        if not stays(info):
            suppose.back()
            victims.append(info)
            violations += is_over
    return tuple(by_importance(victims)), violations


class VictimTrial(NamedTuple):
    """Many rows at once; M rows, K slots, and S rows on which the pod fits without the less
    important pods.

    `lower` int64[M]: pods of lower priority there. `codes`: the code of each filter without them,
    int32[M]. `some` int[S]: positions of the rows on which it fits then; of these `victims` bool[K,
    S] by slot, and `costs` int64[5, S] in the order of `Cost`, undefined for rows without
    victims.
    """

    lower: I64
    codes: list[I32]
    some: Indices
    victims: Mask
    costs: I64


class NominatedRequests(NamedTuple):
    """Requests of nominated pods on the rows: amounts int64[R, M] and pods int64[M]."""

    amounts: I64
    pods: I64


class AmountsFilter(Protocol):
    """A filter that reads only amounts, with the data of a class of pods."""

    @property
    def plugin(self) -> FilterPlugin: ...
    @property
    def data(self) -> Any: ...


def suppose(
    pod: PodInfo,
    rows: I64,
    verdicts: Sequence[AmountsFilter],
    cluster: Cluster,
    pods_by_priority: PodsByPriority,
    budgets: Budgets,
    promise: NominatedRequests | None,
) -> VictimTrial:
    """Try rows with the filters that read only amounts; nominated pods are counted, too."""
    places = pods_by_priority.places(rows)
    bulks = pods_by_priority.bulks[places]
    priorities = pods_by_priority.priorities[bulks]
    is_lower = priorities < pod.pod.priority
    amounts = pods_by_priority.amounts[:, np.where(is_lower, bulks, 0)]
    beyond = _beyond(rows, cluster)
    if beyond is not None:
        amounts = amounts.astype(np.object_)  # whole numbers of any size
    lower = is_lower.sum(axis=0)
    more, more_pods = -amounts.sum(axis=1), -lower
    if beyond is not None:
        more += beyond
    if promise is not None:
        more += promise.amounts
        more_pods += promise.pods
    view = SupposedView(cluster.nodes, rows.astype(np.int32), more, more_pods)
    try:
        codes = [np.asarray((plugin := v.plugin).filter(pod, view, v.data)) for v in verdicts]
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
    fits = lower > 0
    for kept in codes:
        fits &= kept == 0
    some = fits.nonzero()[0]
    if not len(some):  # the usual case where few rows are tried again
        return VictimTrial(lower, codes, some, NO_VICTIM, NO_COSTS)
    order, violating = _order(rows[some], is_lower[:, some], pods_by_priority, budgets)
    victims = _reprieve(
        pod,
        rows[some],
        verdicts,
        cluster,
        order,
        lower[some],
        amounts[:, :, some],
        more[:, some],
        more_pods[some],
    )
    starts = pods_by_priority.starts[places[:, some]]
    costs = costs_of(victims, victims & violating, priorities[:, some], starts)
    return VictimTrial(lower, codes, some, victims, costs)


def _beyond(rows: I64, cluster: Cluster) -> npt.NDArray[np.object_] | None:
    """[R, M]: amounts of rows beyond 64 bits; None if all sums fit."""
    held = cluster.nodes.pod_amounts.rows_beyond
    if not held or not any(row in held for row in rows.tolist()):
        return None
    kept = np.zeros((cluster.nodes.columns.size_of("R"), len(rows)), dtype=np.object_)
    for position, row in enumerate(rows.tolist()):
        for (column, index), surplus in held.get(row, _NOTHING).items():
            if column == "requested":
                kept[index, position] = surplus
    return kept


def _order(
    rows: I64, is_lower: Mask, pods_by_priority: PodsByPriority, budgets: Budgets
) -> tuple[I64, Mask]:
    """(slots int64[K, M] in the order in which pods are put back, violating bool[K, M] by slot)."""
    first = is_lower.argmax(axis=0)
    depth = len(is_lower)
    order = np.minimum(first + np.arange(depth)[:, None], depth - 1)
    violating: Mask = np.zeros(is_lower.shape, dtype=np.bool_)
    if not len(budgets):
        return order, violating
    for position, row in enumerate(rows.tolist()):
        start = int(first[position])
        pods = pods_by_priority.pods(row)[start:]
        over = budgets.violations(pods)
        if any(over):
            slots = sorted(range(len(pods)), key=lambda i: not over[i])
            order[: len(pods), position] = np.array(slots) + start
            violating[start : start + len(pods), position] = over
    return order, violating


def _reprieve(
    pod: PodInfo,
    rows: I64,
    verdicts: Sequence[AmountsFilter],
    cluster: Cluster,
    order: I64,
    lower: I64,
    amounts: I64,
    more: I64,
    more_pods: I64,
) -> Mask:
    """bool[K, M]: the pods that cannot be put back. `more` and `more_pods` are the state without
    all of them.
    """
    victims: Mask = np.zeros(order.shape, dtype=np.bool_)
    across = np.arange(len(rows))
    for step in range(int(lower.max())):
        slots = order[step]
        back = amounts[:, slots, across]
        view = SupposedView(cluster.nodes, rows.astype(np.int32), more + back, more_pods + 1)
        fits = step < lower
        is_open = fits
        try:
            for verdict in verdicts:
                fits = fits & (np.asarray(verdict.plugin.filter(pod, view, verdict.data)) == 0)
        except MISTAKES as raised:
            raise_plugin_error(verdict.plugin.name, "filter", raised)
        victims[slots, across] |= is_open & ~fits
        more = np.where(fits, more + back, more)
        more_pods = more_pods + fits
    return victims
