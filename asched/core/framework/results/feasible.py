"""The feasible rows of a class: the codes of its filters folded into one mask.

    codes int32[N] of each filter ─┐
    rows that PreFilter left ──────┴─> mask bool[N]

Convert results of plain methods to statuses, and reasons to codes for columns.

Bounds  REASONS_MAX distinct reasons are stored per plugin; an older code gets a general message. A
        reason that contains a changing number makes many.

Errors of filters: an error on a node that was reached ends the attempt.

A filter computes all rows at once, also those that an earlier filter rejected; upstream would not
run it there, so an error there is ignored.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins)

Sampling: fewer than all feasible nodes are scored if `percentageOfNodesToScore` is set.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (numFeasibleNodesToFind)
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt

from asched.core.cluster.changes import RowLog
from asched.core.cluster.nodes import LIVE_ONLY, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.framework.attempt import explained
from asched.core.framework.per_node.late import nonsense
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.status import (
    SUCCESS,
    Code,
    PluginError,
    PointError,
    Status,
    unschedulable,
)

Mask = npt.NDArray[np.bool_]

#: If the feasibility of more rows changed at once, ranking all is cheaper. Measured at 5,000 rows:
#: gathering costs ten to twenty times as much as reading the rows in order.
TURNED_MAX: Final = 128
#: Folding more rows than this one by one takes longer than folding all of 5,000, ...
ROWS_MANY: Final = 16
#: ... and for more than 5,000 rows, more than this share of them.
ROWS_SHARE: Final = 256
#: Length of the log of changed rows; a reader that is further behind starts again.
TURNED_KEPT: Final = 2 * TURNED_MAX

_NO_ROWS: Final[Mask] = np.zeros(0, dtype=np.bool_)


class Feasible(ByRow[None]):
    """The rows that all filters accept."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes, LIVE_ONLY)
        self._filters: Sequence[CachedVerdict] = ()
        self._left: set[int] | None = None
        self._version_of = (0,)  # a new object for other filters or rows
        #: bool[N]; read-only outside
        self.mask: Mask = _NO_ROWS
        self.count = 0
        #: changes whenever the set of feasible rows changes
        self.version = 0
        #: rows whose feasibility changed
        self.turned = RowLog(TURNED_KEPT)

    def has(self, row: int) -> bool:
        """Whether a row is feasible."""
        return bool(self.mask[row])

    def fold(self, filters: Sequence[CachedVerdict], left: set[int] | None) -> None:
        """Use these filters and PreFilter's rows (None for all) from now on."""
        if left != self._left or list(filters) != list(self._filters):
            self._version_of = (self._version_of[0] + 1,)
        self._filters, self._left = filters, left

    def refresh(self) -> None:
        """Update the mask; the filters' codes are up to date."""
        versions = [verdict.full_version for verdict in self._filters]
        self.update(None, (self._version_of, versions))

    def _make_all(self, _: None) -> None:
        nodes = self._nodes
        self.logs = tuple([log for verdict in self._filters for log in verdict.logs])
        self.aspects = LIVE_ONLY
        for verdict in self._filters:
            self.aspects |= verdict.aspects
        rows: Mask = nodes.columns.read("live")[: nodes.height].copy()
        if self._left is not None:
            left = np.zeros(len(rows), dtype=np.bool_)
            left[list(self._left)] = True
            rows &= left
        for verdict in self._filters:
            if not verdict.is_uniform:
                rows &= verdict.values == 0
        before, self.mask = self.mask, rows
        if len(before) != len(rows):
            self._turn_all()
            return
        turned = np.flatnonzero(before != rows)
        if len(turned) > TURNED_MAX:
            self._turn_all()
        elif len(turned):
            for row in turned.tolist():
                self._turn(row)
            self.count = int(np.count_nonzero(rows))

    def _turn(self, row: int) -> None:
        self.turned.add(row, LIVE_ONLY)
        self.version += 1

    def _turn_all(self) -> None:
        self.turned.forget()
        self.version += 1
        self.count = int(np.count_nonzero(self.mask))

    def _make_rows(self, _: None, rows: Rows) -> bool:
        if len(rows) > max(ROWS_MANY, self._nodes.height // ROWS_SHARE):
            return False
        live = self._nodes.columns.read("live")
        for row in rows:
            fits = live.item(row) and (self._left is None or row in self._left)
            if fits:
                for verdict in self._filters:
                    if not verdict.is_uniform and verdict.values.item(row):
                        fits = False
                        break
            if fits != self.mask.item(row):
                self.mask[row] = fits
                self.count += 1 if fits else -1
                self._turn(row)
        return True


#: A guess: every node of a large cluster may have several reasons of its own.
REASONS_MAX: Final = 1 << 16
#: Codes start again here; the old ones have been dropped long before.
CODE_MAX: Final = 1 << 30

WANTED: Final = "None, True, False, a reason or a Status"


def status_of(answer: object, plugin: str, point: str) -> Status:
    """None and True accept, False and a text reject, a Status is used as it is.

    Raises PluginError for anything else.
    """
    if answer is None or answer is True:
        return SUCCESS
    if isinstance(answer, Status):
        return answer
    if isinstance(answer, str) and answer:
        return unschedulable(answer)
    if isinstance(answer, (bool, np.bool_)):
        return SUCCESS if answer else unschedulable(f"node(s) were rejected by plugin {plugin}")
    raise nonsense(plugin, point, answer, WANTED)


def raise_error(status: Status, plugin: str) -> NoReturn:
    """End the attempt: the status is neither acceptance nor rejection."""
    said = status.message
    if status.code is not Code.ERROR:
        said = f"{status.code.text} is not a valid answer here {said}".rstrip()
    raise PluginError(f'running "{plugin}" filter plugin: {said}', plugin, "filter")


class Reasons:
    """Codes for the statuses of one plugin, in order of appearance."""

    def __init__(self) -> None:
        self._codes: dict[Status, int] = {}
        self._statuses: OrderedDict[int, Status] = OrderedDict()
        self._next = 1

    def code_of(self, status: Status) -> int:
        known = self._codes.get(status)
        if known is not None:
            return known
        code = self._next
        self._next = code + 1 if code < CODE_MAX else 1
        self._codes[status] = code
        self._statuses[code] = status
        if len(self._statuses) > REASONS_MAX:
            _, oldest = self._statuses.popitem(last=False)
            del self._codes[oldest]
        return code

    def status_of(self, code: int, plugin: str) -> Status:
        known = self._statuses.get(code)
        return known or unschedulable(f"node(s) were rejected by plugin {plugin}")


def end_on_errors(
    pod: PodInfo,
    active: Sequence[CachedVerdict],
    live: npt.NDArray[np.bool_],
    narrowed: Collection[int] | None,
) -> None:
    """`active` in profile order, with codes up to date. Raises PointError."""
    for position, verdict in enumerate(active):
        plugin = verdict.plugin
        if plugin.errors_from is None:
            continue
        for row in np.flatnonzero(verdict.codes >= plugin.errors_from).tolist():
            if not live[row] or (narrowed is not None and row not in narrowed):
                continue
            if not any(earlier.codes[row] for earlier in active[:position]):
                said = explained(plugin, pod, int(verdict.codes[row])).message
                raise PointError(f'running "{plugin.name}" filter plugin: {said}')


#: At least this number of feasible nodes is scored (upstream's minFeasibleNodesToFind).
FEASIBLE_NODES_MIN: Final = 100


def wanted_count(percentage: int, candidates: int) -> int:
    """How many feasible nodes suffice for a `percentageOfNodesToScore` other than 0."""
    if candidates < FEASIBLE_NODES_MIN or percentage == 0:
        return candidates
    return max(candidates * percentage // 100, FEASIBLE_NODES_MIN)


def adaptive_count(percentage: int, candidates: int) -> int:
    """The same by kube-scheduler's rule, where 0 means a lower share for more nodes."""
    return wanted_count(percentage or max(50 - candidates // 125, 5), candidates)


class Sampler:
    """Round-robin: each sample begins after the end of the previous one."""

    def __init__(self, percentage: int) -> None:
        self._percentage = percentage
        #: whether it can take fewer than all
        self.is_on = percentage not in (0, 100)
        self._start = 0

    def sample(self, feasible: Mask, count: int, node_count: int) -> Mask | None:
        """A sample of the `count` feasible rows (bool[N]) of a cluster with this number of nodes;
        None for all.
        """
        if not self.is_on:
            return None
        wanted = wanted_count(self._percentage, node_count)
        if wanted >= count:
            return None
        rows = np.flatnonzero(feasible)
        at = int(np.searchsorted(rows, self._start % len(feasible)))
        chosen = np.take(rows, range(at, at + wanted), mode="wrap")
        self._start = int(chosen[-1]) + 1
        sample = np.zeros(len(feasible), dtype=np.bool_)
        sample[chosen] = True
        return sample
