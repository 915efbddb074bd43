"""Runners with plugins, extenders and meters that record what they are asked."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from asched.core.config.defaults import configuration
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.points import BindPlugin
from asched.core.framework.runner import Runner
from asched.core.framework.status import Status, unschedulable
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Answer, Seen
from asched.core.state.pods import PodInfo
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder


class Ears:
    def __init__(self):
        self.points = []
        self.plugins = []
        self.asked = []

    def point_ran(self, point, profile, status, duration_s):
        self.points.append((point, status, duration_s))

    def plugin_ran(self, plugin, point, status, duration_s):
        self.plugins.append((plugin, point, status, duration_s))

    def evaluated(self, point, profile, plugins, times):
        self.asked.append((point, plugins, times))


class Watch:
    now_s = 0.0

    def __call__(self):
        return self.now_s


class Binder(BindPlugin):
    name = "TheirBinder"

    def bind(self, pod: Any, node: str) -> Any: ...


class Table:
    """`keeps` and `points` are None without filters or points; `words` of refusals."""

    has_preempt = False

    def __init__(
        self,
        keeps: tuple[str, ...] | None = None,
        points: Mapping[str, int] | None = None,
        *,
        words: Mapping[str, str] | None = None,
        meets: Callable[[PodInfo], bool] = lambda _: True,
        binds: bool = False,
    ) -> None:
        self._keeps, self._points, self._words = keeps, points, words or {}
        self.has_filter, self.has_prioritize = keeps is not None, points is not None
        self.is_interested, self._binds = meets, binds
        self.parts = Parts.fresh()
        self.asked: list[tuple[str, list[str]]] = []
        self.in_vain: list[str] = []

    def _rows(self, verb: str, pod: PodInfo, feasible: Any) -> dict[str, int]:
        assert isinstance(pod, PodInfo)
        rows, nodes = np.flatnonzero(feasible).tolist(), self.parts.cluster.nodes.node_at
        found = {node.name: row for row in rows if (node := nodes[row]) is not None}
        self.asked.append((verb, sorted(found)))
        return found

    def filter(self, pod: PodInfo, feasible: Any) -> Generator[Effect, Answer, Any]:
        rows, row_of = self._rows("filter", pod, feasible), self.parts.cluster.nodes.row_of
        yield Pause()
        left, told = np.zeros(len(feasible), dtype=np.bool_), dict[int, Status]()
        for name, row in rows.items():
            left[row] = name in (self._keeps or ()) and row_of.get(name) == row
            if name in self._words:
                told[row] = unschedulable(self._words[name]).by("Extender")
        return left, told

    def prioritize(self, pod: PodInfo, feasible: Any) -> Generator[Effect, Answer, Any]:
        rows = self._rows("prioritize", pod, feasible)
        yield Pause()
        extra = np.zeros(len(feasible), dtype=np.int64)
        for name, row in rows.items():
            extra[row] = (self._points or {}).get(name, 0)
        return extra if self._points else None

    def note_in_vain(self, pod: PodInfo) -> None:
        self.in_vain.append(pod.pod.metadata.name)

    def binder(self, pod: PodInfo) -> BindPlugin | None:
        return Binder() if self._binds and self.is_interested(pod) else None


def a_runner(*nodes: NodeBuilder, waiting: PodBuilder | None = None) -> Runner:
    parts = Parts.fresh()
    for node in nodes:
        parts.cluster.apply(Seen(NODE, node.build()))
    if waiting is not None:
        pod = waiting.build()
        parts.cluster.apply(Seen(POD, pod))
        parts.nominator.add(pod)
    return next(iter(build_runners(configuration({}), parts).values()))
