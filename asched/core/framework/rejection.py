"""The result of a failed attempt: which plugin rejected which node and why, in arrays.

A `Rejection` is made when no node is left. It has, per node row, the first plugin that rejected the
row and that plugin's code; texts are built on demand from the distinct pairs. The messages are
kube-scheduler's FitError, to the byte.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/types.go (FitError), interface.go
(Diagnosis)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, Protocol

import numpy as np

from asched.core.cluster.pods import PodInfo
from asched.core.framework.status import MISTAKES, Code, Status, raise_plugin_error
from asched.core.model.arrays import I32, I64, Mask
from asched.core.model.derived import derived

#: Up to this many distinct verdicts are found without sorting: a pod that fits on none of 5,000
#: nodes costs 1.33 million instructions; if verdicts are always sorted, 2.0.
DISTINCT_FEW: Final = 8

NO_NODES: Final = "no nodes available to schedule pods"


class ExplainsCodes(Protocol):
    """A filter plugin, as far as a rejection uses it."""

    name: ClassVar[str]

    def explain(self, pod: PodInfo, code: int, /) -> Status: ...


def explained(plugin: ExplainsCodes, pod: PodInfo, code: int) -> Status:
    """The status of a filter's code. Raises PluginError."""
    try:
        return plugin.explain(pod, code).by(plugin.name)
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)


class Rejection:
    """Why no node was left for a pod.

    `first_rejector[row]`: 1 + the position in `plugins` of the first that rejected the row, 0 if
    none did; `codes[row]` is that plugin's code. `overrides` maps rows with another verdict
    (nominated pods, extenders) to their status. PreFilter excluded the rows outside `looked_at`,
    for the reason in `absent`. With `all_codes` (one array per plugin) every rejecting plugin of a
    row counts, not only the first.
    """

    def __init__(
        self,
        pod: PodInfo,
        *,
        plugins: Sequence[ExplainsCodes],
        first_rejector: I32,
        codes: I32,
        live: Mask,
        looked_at: Mask | None = None,
        absent: Status | None = None,
        pre_filter: Status | None = None,
        pre_filter_plugins: frozenset[str] = frozenset(),
        pre_filter_ran: frozenset[str] | None = None,
        overrides: Mapping[int, Status] | None = None,
        all_codes: Sequence[I32] | None = None,
    ) -> None:
        self.pod = pod
        self.plugins = plugins
        self.first_rejector = first_rejector
        self.codes = codes
        self.live = live
        self.looked_at = looked_at
        self.absent = absent
        self.pre_filter = pre_filter
        self.overrides = overrides or {}
        self._pre_filter_plugins = pre_filter_plugins
        self._all_codes = all_codes
        self._pre_filter_ran = pre_filter_ran

    def pre_filter_ran(self, plugin: str) -> bool:
        """Whether the plugin ran before PreFilter ended."""
        return self._pre_filter_ran is None or plugin in self._pre_filter_ran

    @property
    def node_count(self) -> int:
        return int(np.count_nonzero(self.live))

    @derived
    def groups(self) -> tuple[tuple[Status, I64], ...]:
        """(status, rows) for each distinct verdict of the filters, without overridden rows."""
        if self.pre_filter is not None:
            return ((self.pre_filter, np.flatnonzero(self.live)),)
        seen = self.live & (self.first_rejector > 0)
        if self.looked_at is not None:
            seen &= self.looked_at
        for row in self.overrides:
            seen[row] = False
        rows = seen.nonzero()[0]
        if self._all_codes is not None:
            return tuple(self._groups_of_all(rows, self._all_codes))
        pairs = self.first_rejector[rows].astype(np.int64) << 32 | self.codes[rows].astype(np.int64)
        found = []
        for value, members in _by_value(pairs, rows):
            plugin = self.plugins[(value >> 32) - 1]
            found.append((explained(plugin, self.pod, value & 0xFFFFFFFF), members))
        return tuple(found)

    def _groups_of_all(self, rows: I64, all_codes: Sequence[I32]) -> Iterator[tuple[Status, I64]]:
        """As for the legacy `alwaysCheckAllPredicates`: all rejecting plugins of a row count."""
        table = np.stack([codes[rows] for codes in all_codes])
        values, inverse = np.unique(table, axis=1, return_inverse=True)
        for index in range(values.shape[1]):
            yield self._merged(values[:, index].tolist()), rows[inverse.ravel() == index]

    def _merged(self, codes: Sequence[int]) -> Status:
        said = [
            explained(plugin, self.pod, code)
            for plugin, code in zip(self.plugins, codes, strict=True)
            if code
        ]
        code = max(status.code for status in said)
        reasons = tuple(reason for status in said for reason in status.reasons)
        return Status(code, reasons, said[0].plugin)

    def status_at(self, row: int) -> Status | None:
        """The verdict on one row; None for a row that was not checked or that fits."""
        if self.pre_filter is not None:
            return self.pre_filter
        if row in self.overrides:
            return self.overrides[row]
        if self.looked_at is not None and not self.looked_at[row]:
            return None
        first_rejector = int(self.first_rejector[row])
        if not first_rejector:
            return None
        if self._all_codes is not None:
            return self._merged([int(codes[row]) for codes in self._all_codes])
        return explained(self.plugins[first_rejector - 1], self.pod, int(self.codes[row]))

    def statuses(self) -> Iterator[tuple[Status, int]]:
        """(status, number of nodes) for each distinct verdict; overridden rows one by one."""
        for status, rows in self.groups:
            yield status, len(rows)
        for status in self.overrides.values():
            yield status, 1

    def summary(self) -> tuple[tuple[str, str, str, int], ...]:
        """(plugin, code, reasons, nodes) for each distinct verdict, for histories: a rejection
        itself has arrays of the cluster's size.
        """
        said = [
            (status.plugin, status.code.text, ", ".join(status.reasons), count)
            for status, count in self.statuses()
            if count
        ]
        if self.absent is not None and self.absent_count:
            absent = self.absent
            said.append(("", absent.code.text, ", ".join(absent.reasons), self.absent_count))
        return tuple(said)

    @derived
    def absent_count(self) -> int:
        """Nodes that PreFilter excluded before any filter ran."""
        if self.looked_at is None:
            return 0
        return int(np.count_nonzero(self.live & ~self.looked_at))

    @derived
    def candidates(self) -> I64:
        """Rows on which evicting pods could help: those rejected as exactly Unschedulable."""
        parts = [rows for status, rows in self.groups if status.code is Code.UNSCHEDULABLE]
        overridden = [r for r, s in self.overrides.items() if s.code is Code.UNSCHEDULABLE]
        if overridden:
            parts.append(np.array(overridden, dtype=np.int64))
        if len(parts) == 1:
            return parts[0]
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)

    @derived
    def unschedulable_plugins(self) -> frozenset[str]:
        """Plugins that rejected nodes, except those that wait for something external."""
        return self._blamed(pending=False)

    @derived
    def pending_plugins(self) -> frozenset[str]:
        return self._blamed(pending=True)

    def _blamed(self, *, pending: bool) -> frozenset[str]:
        by_filters = {
            status.plugin
            for status, _ in self.statuses()
            if (status.code is Code.PENDING) is pending and status.plugin
        }
        return frozenset(by_filters) | (frozenset() if pending else self._pre_filter_plugins)

    def message(self, post_filter: str = "") -> str:
        """`0/N nodes are available: …`, followed by the messages of the PostFilter plugins."""
        return fit_error(
            self.node_count,
            self.pre_filter.message if self.pre_filter is not None else "",
            self.reason_counts(),
            post_filter,
        )

    def reason_counts(self) -> dict[str, int]:
        """Number of nodes by reason; a node with two reasons counts twice."""
        counts: dict[str, int] = {}
        if self.pre_filter is not None:
            return counts
        for status, number in self.statuses():
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + number
        if self.absent is not None and self.absent_count:
            for reason in self.absent.reasons:
                counts[reason] = counts.get(reason, 0) + self.absent_count
        return counts


def _by_value(values: I64, rows: I64) -> Iterator[tuple[int, I64]]:
    """(value, its rows in ascending order). A few distinct values cost one pass each, less than
    sorting.
    """
    for _ in range(DISTINCT_FEW):
        if not len(values):
            return
        value = values[0]
        is_other = values != value
        if not is_other.any():
            yield int(value), rows
            return
        yield int(value), rows[~is_other]
        values, rows = values[is_other], rows[is_other]
    distinct, inverse = np.unique(values, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(distinct) + 1))
    for index, value in enumerate(distinct.tolist()):
        yield value, rows[order[bounds[index] : bounds[index + 1]]]


def fit_error(
    node_count: int, pre_filter: str, reason_counts: Mapping[str, int], post_filter: str
) -> str:
    """The text of a FitError. Counted reasons are sorted as strings, so `10 …` precedes `2 …`."""
    text = f"0/{node_count} nodes are available:"
    if pre_filter:
        text += f" {pre_filter}."
    else:
        counted = sorted(f"{count} {reason}" for reason, count in reason_counts.items() if count)
        if counted:
            text += f" {', '.join(counted)}."
    return f"{text} {post_filter}" if post_filter else text
