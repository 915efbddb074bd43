"""The feasible rows of a class: the codes of its filters folded into one mask.

    codes int32[N] of each filter ─┐
    rows that PreFilter left ──────┴─> passing bool[N] ─┐
    codes int32[D] of whole domains ────────────────────┴─> mask bool[N]

One filter may have results by domain (`points.DomainCodes`). The other results are stored by row,
and the domains separately: a domain that changes costs no row. The mask itself is made on demand.

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
from asched.core.framework.points import DomainCodes
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
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: If the feasibility of more rows changed at once, ranking all is cheaper. Measured at 5,000 rows:
#: gathering costs ten to twenty times as much as reading the rows in order.
TURNED_MAX: Final = 128
#: Folding more rows than this one by one takes longer than folding all of 5,000, ...
ROWS_MANY: Final = 16
#: ... and for more than 5,000 rows, more than this share of them.
ROWS_SHARE: Final = 256
#: Length of the log of changed rows; a reader that is further behind starts again.
TURNED_KEPT: Final = 2 * TURNED_MAX

NOWHERE: Final = -1
_NO_ROWS: Final[Mask] = np.zeros(0, dtype=np.bool_)
_NO_DOMAINS: Final[I32] = np.zeros(0, dtype=np.int32)
_NO_COUNTS: Final[I64] = np.zeros(0, dtype=np.int64)
_NO_DOMAINS_OPEN: Final[Mask] = np.zeros(1, dtype=np.bool_)


class Feasible(ByRow[None]):
    """The rows that all filters accept."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes, LIVE_ONLY)
        self._filters: Sequence[CachedVerdict] = ()
        self._left: set[int] | None = None
        self._version_of = (0,)  # a new object for other filters or rows
        #: bool[N]: the results by row, and a log of rows whose result, or whose domain, changed
        self.passing: Mask = _NO_ROWS
        self.passing_turned = RowLog(TURNED_KEPT)
        #: the filter with results by domain; int32[N] the value id of each passing row, NOWHERE for
        #: other rows; and the ids that it accepts
        self.by_domain: DomainCodes | None = None
        self.domain_of: I32 = _NO_DOMAINS
        self.open_ids: I64 = _NO_COUNTS
        self._seen = -1
        #: filters that may have results by domain; the one used, and the others, which are folded
        self._speakers: Sequence[CachedVerdict] = ()
        self._domains: DomainCodes | None = None
        self._folded: list[DomainCodes] = []
        #: by id: the number of passing rows, and whether they are feasible; NOWHERE comes last
        self.counts: I64 = _NO_COUNTS
        self.is_open: Mask = _NO_DOMAINS_OPEN
        self._mask, self._mask_version = self.passing, -1
        self.count = 0
        #: changes whenever the set of feasible rows changes
        self.version = 0
        #: rows whose feasibility changed
        self.turned = RowLog(TURNED_KEPT)

    @property
    def mask(self) -> Mask:
        """bool[N]; read-only."""
        if self.by_domain is None:
            return self.passing
        if self._mask_version != self.version:
            self._mask = self.is_open.take(self.domain_of)
            self._mask_version = self.version
        return self._mask

    def has(self, row: int) -> bool:
        """Whether a row is feasible."""
        if self.by_domain is None:
            return bool(self.passing[row])
        return bool(self.is_open[self.domain_of[row]])

    def fold(self, filters: Sequence[CachedVerdict], left: set[int] | None) -> None:
        """Use these filters and PreFilter's rows (None for all) from now on."""
        if left != self._left or list(filters) != list(self._filters):
            self._version_of = (self._version_of[0] + 1,)
        self._filters, self._left = filters, left
        self._speakers = [v for v in filters if v.prepared.result.by_domain is not None]
        self._domains, self._folded = None, []

    def refresh(self) -> None:
        """Update the mask; the filters' codes are up to date."""
        versions = [verdict.full_version for verdict in self._filters]
        if not self._speakers:
            self.update(None, (self._version_of, versions))
            return
        found = [codes for verdict in self._speakers if (codes := verdict.by_domain) is not None]
        first, self._folded = (found[0] if found else None), found[1:]
        versions += [folded.version for folded in self._folded]
        self._domains = first
        self.update(None, (self._version_of, versions, first, first and first.column))
        if first is not None and first.version != self._seen:
            self._open()

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
        for folded in self._folded:
            rows &= folded.by_row(nodes.height) == 0
        if self._domains is not None or self.by_domain is not None:
            self._make_domains(self._domains, rows)
            return
        before, self.passing = self.passing, rows
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

    def _make_domains(self, domains: DomainCodes | None, rows: Mask) -> None:
        """Make everything if a filter has, or had, results by domain."""
        self.passing, self.by_domain = rows, domains
        if domains is None:
            self.domain_of = _NO_DOMAINS
        else:
            assert domains.column is not None
            ids, do_all_pass = domains.column.ids[: len(rows)], rows.all()
            self.domain_of = ids.copy() if do_all_pass else np.where(rows, ids, np.int32(NOWHERE))
            ids_passing = ids if do_all_pass else ids[rows]
            self.counts = np.bincount(ids_passing, minlength=len(domains.codes))
            self._seen = NOWHERE
            self._open()
        self._turn_all()

    def _open(self) -> None:
        """Update which domains pass."""
        domains = self.by_domain
        assert domains is not None
        self._seen = domains.version
        is_open = np.zeros(len(self.counts) + 1, dtype=np.bool_)
        codes = domains.codes[: len(self.counts)]
        is_open[: len(codes)] = codes == 0
        if is_open.tobytes() != self.is_open.tobytes():  # np.array_equal: 5 us
            self.is_open, self.open_ids = is_open, is_open.nonzero()[0]
            self.turned.forget()
            self.version += 1
        self._count_open()

    def _count_open(self) -> None:
        self.count = int(self.counts[self.open_ids].sum())

    def _turn(self, row: int) -> None:
        self.passing_turned.add(row, LIVE_ONLY)
        self.turned.add(row, LIVE_ONLY)
        self.version += 1

    def _turn_all(self) -> None:
        self.passing_turned.forget()
        self.turned.forget()
        self.version += 1
        if self.by_domain is None:
            self.count = int(np.count_nonzero(self.passing))

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
            if self.by_domain is not None:
                if not self._place(row, fits):
                    return False
            elif fits != self.passing.item(row):
                self.passing[row] = fits
                self.count += 1 if fits else -1
                self._turn(row)
        return True

    def _place(self, row: int, fits: bool) -> bool:
        """Assign a row to its domain. False for a domain that is not known yet."""
        domains, counts = self.by_domain, self.counts
        assert domains is not None
        assert domains.column is not None
        fits = fits and not any(folded.of_row(row) for folded in self._folded)
        was, id_ = self.domain_of.item(row), domains.column.ids.item(row) if fits else NOWHERE
        if id_ == was:
            return True
        if id_ >= len(counts):
            return False
        self.passing[row] = fits
        self.domain_of[row] = id_
        if was >= 0:
            counts[was] -= 1
        if id_ >= 0:
            counts[id_] += 1
        self.passing_turned.add(row, LIVE_ONLY)
        if self.is_open[was] != self.is_open[id_]:
            self.turned.add(row, LIVE_ONLY)
            self.version += 1
            self._count_open()
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
