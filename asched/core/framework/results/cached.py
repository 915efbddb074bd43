"""Cached results: one plugin's codes or raw scores by row, for pods it does not distinguish."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import ALL_ASPECTS, AMOUNTS, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import CachedPlugin, FilterPlugin, ScorePlugin
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.prepared import Prepared, PreparedScores
from asched.core.framework.status import PluginError
from asched.core.model.arrays import I32, I64, Mask

Values = npt.NDArray[Any]

NO_VALUES: Final[I64] = np.zeros(0, dtype=np.int64)


class CachedResult(ByRow[PodInfo]):
    """Common to filters and scorers. A few rows are made from plain integers, if the plugin has a
    function for that; more rows from a view.
    """

    point: ClassVar[str]
    plugin: CachedPlugin

    def __init__(self, nodes: NodeTable, prepared: Prepared, work: OperationCounts) -> None:
        depends_on = prepared.plugin.depends_on
        super().__init__(nodes, ALL_ASPECTS if depends_on is None else int(depends_on))
        self.plugin = prepared.plugin
        #: the plugin's codes or raw scores of a few rows; None: it wants a view
        self._rule_of_few = self._find_rule_of_few()
        self.prepared = prepared
        self._work = work
        #: int32[N] or int64[N]
        self.values: Values = NO_VALUES
        #: whether all live rows have this value, so that rows need not be read. Benchmark
        #: `decide-anti-affinity`: 323 calls a pod, without 357; a pod that fits on none of 5,000
        #: nodes: 1.33 million instructions, without 1.43
        self.is_uniform = False
        self.alike = 0

    @property
    def data(self) -> Any:
        """The data of PreFilter or PreScore."""
        return self.prepared.result.data

    @property
    def reads(self) -> int:
        """The bits of `Moves` after which the result may have changed."""
        return self.prepared.reads | self.aspects

    def refresh(self, pod: PodInfo) -> None:
        """Update every row; the prepared data is up to date."""
        self.update(pod, self.prepared.version)

    def _make_all(self, pod: PodInfo) -> None:
        moved = self.prepared.result.moved
        self.logs = () if moved is None else (moved,)
        work = self._work
        self.values = self._owned(self._ask(pod, NodeView(self._nodes)))
        self._look_for_difference()
        work.full_passes += 1
        work.rows += self._nodes.height

    def _make_rows(self, pod: PodInfo, rows: Rows) -> bool:
        work, values = self._work, self.values
        work.row_passes += 1
        work.rows += len(rows)
        # Benchmark `decide-plain`, CPU ms a pod: 0.26, 0.38; without 0.43, 0.58
        if len(rows) <= self.plugin.rows_few:
            rule, data, meter = self._rule_of_few, self.prepared.result.data, work.meter
            if meter is None or not meter.is_sampled:
                found = rule(pod, rows, data)
            else:
                found = meter.call(self.plugin.name, self.point, rule, pod, rows, data)
            if found is not None:
                for row, value in zip(rows, found, strict=True):
                    values[row] = value
                self.is_uniform = self.is_uniform and found.count(self.alike) == len(found)
                return True
        at = np.array(rows, dtype=np.int32)
        answer = self._ask(pod, NodeView(self._nodes, at))
        values[at] = answer
        self.is_uniform = self.is_uniform and bool((answer == self.alike).all())
        return True

    def _ask(self, pod: PodInfo, view: NodeView) -> Values:
        """One integer for each row of the view. Raises PluginError for anything else."""
        rule, data, meter = self._rule(), self.prepared.result.data, self._work.meter
        if meter is None:
            answer = rule(pod, view, data)
        else:
            answer = meter.call(self.plugin.name, self.point, rule, pod, view, data)
        if getattr(answer, "shape", None) == (view.size,) and answer.dtype.kind in "iu":
            return answer
        name, point = self.plugin.name, self.point.lower()
        shape = getattr(answer, "shape", type(answer).__name__)
        text = f"answered {shape} where an array of {view.size} integers is expected"
        raise PluginError(f'running {point} plugin "{name}": {text}', name, point)

    @abstractmethod
    def _rule(self) -> Callable[[PodInfo, NodeView, Any], Values]: ...

    @abstractmethod
    def _find_rule_of_few(self) -> Callable[[PodInfo, Rows, Any], list[int] | None]: ...

    @abstractmethod
    def _owned(self, answer: Values) -> Values:
        """A writable array."""

    @abstractmethod
    def _look_for_difference(self) -> None:
        """Set `is_uniform` and `alike` after a full pass."""


class CachedVerdict(CachedResult):
    """A filter's codes: 0 where the pods fit."""

    point = "Filter"
    plugin: FilterPlugin

    @property
    def codes(self) -> I32:
        return self.values

    def code_of(self, row: int) -> int:
        """The code of one row."""
        code: int = self.values.item(row)
        return code

    def ask_left(self, pod: PodInfo, left: Mask) -> None:
        """Filter these rows only. The others count as accepted."""
        rows = np.flatnonzero(left).astype(np.int32)
        codes = np.zeros(self._nodes.height, dtype=np.int32)
        if len(rows):
            codes[rows] = self._ask(pod, NodeView(self._nodes, rows))
        self.values = codes
        self._look_for_difference()
        self.full_version += 1
        self._work.full_passes += 1
        self._work.rows += len(rows)

    def _rule(self) -> Callable[[PodInfo, NodeView, Any], Values]:
        return self.plugin.filter

    def _find_rule_of_few(self) -> Callable[[PodInfo, Rows, Any], list[int] | None]:
        return self.plugin.filter_few

    def _owned(self, answer: Values) -> Values:
        return answer if answer.flags.writeable else answer.copy()

    def _look_for_difference(self) -> None:
        self.is_uniform = not np.count_nonzero(self.values)


class CachedScores(CachedResult):
    """A scorer's raw scores."""

    point = "Score"
    plugin: ScorePlugin
    prepared: PreparedScores

    def __init__(self, nodes: NodeTable, prepared: PreparedScores, work: OperationCounts) -> None:
        super().__init__(nodes, prepared, work)
        #: a row with the common score, if scores are uniform
        self.first_live = 0

    @property
    def raw(self) -> I64:
        return self.values

    def normal_of_all(self) -> int:
        """The normalized score of every row, if all raw scores are equal."""
        score = self.values[self.first_live : self.first_live + 1]
        return int(self.plugin.normalize(score, self.data)[0])

    def _rule(self) -> Callable[[PodInfo, NodeView, Any], Values]:
        return self.plugin.score

    def _find_rule_of_few(self) -> Callable[[PodInfo, Rows, Any], list[int] | None]:
        return self.plugin.score_few

    def _owned(self, answer: Values) -> Values:
        return np.array(answer, dtype=np.int64)

    def _look_for_difference(self) -> None:
        """Not used if every placement changes the score."""
        nodes, raw = self._nodes, self.values
        self.is_uniform = False
        if not nodes.count or (self.aspects & AMOUNTS and not self.plugin.normalizes):
            return
        live = nodes.columns.read("live")[: nodes.height]
        self.first_live = int(live.argmax())
        self.alike = raw.item(self.first_live)
        same = raw == self.alike
        if nodes.count < nodes.height:
            same |= ~live
        # A NumPy bool would make a NumPy number of the version.
        self.is_uniform = bool(np.count_nonzero(same) == len(same))
