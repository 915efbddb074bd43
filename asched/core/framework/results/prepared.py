"""Cached results of PreFilter and PreScore for a class of pods, made again after a change of an
object or a count that the plugin reads.
"""

from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import POD_LABELS
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import (
    CachedPlugin,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from asched.core.framework.results.moves import ALWAYS, COUNTS, EVERYTHING, OBJECTS, OF_NODES
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.unprepared import end_without_pre_score
from asched.core.framework.status import MISTAKES, SUCCESS, Code, PointError, raise_plugin_error

NOTHING_SAID: Final = PreFilterResult()
#: A result without any data.
NOTHING_KNOWN: Final = PreFilterResult(data=object())


class HasMask(Protocol):
    """The rows to be scored: bool[N], made on demand by `Feasible`."""

    @property
    def mask(self) -> Mask: ...


class Masked(NamedTuple):
    """A mask that exists already."""

    mask: Mask


NO_MASK: Final = Masked(np.zeros(0, dtype=np.bool_))


class Prepared:
    """`result` is the last result, `version` changes once every row has to be made again, even if
    PreFilter or PreScore did not run again.
    """

    point: ClassVar = "filter"

    def __init__(self, plugin: CachedPlugin, cluster: Cluster, work: OperationCounts) -> None:
        self.plugin = plugin
        self._cluster = cluster
        self._work = work
        self.result = NOTHING_SAID
        self.version = 0
        #: the bits of `Moves` after which it must be checked
        self.reads = EVERYTHING
        self._has_stamp = type(plugin).stamp is not CachedPlugin.stamp
        self._bits = bits_of(type(plugin))
        self._is_known = False
        self._stamp: Any = None
        self._extra: object = None
        self._epoch = self._kinds_epoch = -1

    @property
    def is_skipped(self) -> bool:
        return self.result.status.code is Code.SKIP

    def update(
        self, pod: PodInfo, feasible: HasMask = NO_MASK, extra: object = None
    ) -> PreFilterResult:
        """Run again if inputs have changed. `extra`: the version of `feasible`, if that is an
        input.
        """
        plugin, stamped = self.plugin, self._has_stamp
        kinds_moved = self._epoch != self._cluster.epoch and self._kinds_moved()
        moved = kinds_moved or not self._is_known or extra != self._extra
        try:
            if not moved and (not stamped or plugin.stamp(pod, self.result.data) == self._stamp):
                return self.result
            was = self.result if self._is_known else NOTHING_KNOWN
            self._is_known = False  # in case one of these raises
            self.result = self._ask(pod, feasible)
            stamp = plugin.stamp(pod, self.result.data) if stamped else 0
            if kinds_moved or stamp != self._stamp or not _is_same(was, self.result):
                self.version += 1
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, self.point, raised)
        self._stamp, self._extra = stamp, extra
        self._is_known = plugin.depends_on is not None
        # Such a stamp is equal to no other.
        self.reads = self._bits | ALWAYS if type(stamp) is object else self._bits
        return self.result

    def _ask(self, pod: PodInfo, feasible: HasMask) -> PreFilterResult:  # noqa: ARG002
        """For a plugin without PreFilter or PreScore."""
        return NOTHING_SAID

    def _kinds_moved(self) -> bool:
        """Whether an object of the plugin's kinds changed, given that some object did."""
        cluster = self._cluster
        self._epoch = cluster.epoch
        epoch = sum(map(cluster.epoch_of, self.plugin.kinds))
        moved = epoch != self._kinds_epoch
        self._kinds_epoch = epoch
        return moved


class PreparedFilter(Prepared):
    """PreFilter's."""

    point = "preFilter"
    plugin: PreFilterPlugin

    def _ask(self, pod: PodInfo, feasible: HasMask) -> PreFilterResult:  # noqa: ARG002
        plugin, meter = self.plugin, self._work.meter
        if meter is None:
            return plugin.pre_filter(pod)
        return meter.call_aside(plugin.name, "PreFilter", plugin.pre_filter, pod)


class PreparedScores(Prepared):
    """PreScore's; `half` is None if it is not enabled."""

    point = "preScore"
    plugin: ScorePlugin

    def __init__(
        self,
        plugin: ScorePlugin,
        half: PreScorePlugin | None,
        cluster: Cluster,
        work: OperationCounts,
    ) -> None:
        super().__init__(plugin, cluster, work)
        self._half = half

    def _ask(self, pod: PodInfo, feasible: HasMask) -> PreFilterResult:
        half, plugin = self._half, self.plugin
        if half is None:
            end_without_pre_score(plugin)
            is_masked = plugin.is_checked and plugin.reads_feasible
            return PreFilterResult(SUCCESS, None, feasible.mask) if is_masked else NOTHING_SAID
        view, meter = NodeView(self._cluster.nodes), self._work.meter
        if meter is None:
            result = half.pre_score(pod, view, feasible.mask)
        else:
            result = meter.call_aside(
                half.name, "PreScore", half.pre_score, pod, view, feasible.mask
            )
        if not result.status.is_success and result.status.code is not Code.SKIP:
            raise PointError(f'running PreScore plugin "{half.name}": {result.status.message}')
        return result


def bits_of(plugin: type[CachedPlugin]) -> int:
    """The bits of `Moves` after which PreFilter or PreScore must be checked."""
    bits = OF_NODES | OBJECTS
    if plugin.reads_counts:
        bits |= COUNTS
    if plugin.depends_on is None:
        return bits | ALWAYS
    return bits | int(plugin.depends_on) & POD_LABELS


def _is_same(was: PreFilterResult, now: PreFilterResult) -> bool:
    """Whether a repeated call had the same result."""
    return was is now or (was.data is now.data and was[:2] == now[:2] and was.moved is now.moved)
