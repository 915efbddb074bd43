"""Plugins with rules as small as can be, and what the framework keeps of them."""

from typing import Any

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.framework.points import FilterPlugin, PreFilterPlugin, PreFilterResult, ScorePlugin
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.prepared import Prepared, PreparedFilter
from asched.core.framework.status import Status, unschedulable
from tests.builders import a_cluster, a_node


class Cpus(FilterPlugin):
    """Code 1 where fewer CPUs are offered than `wanted`. Notes how many rows it was asked about."""

    name = "Cpus"
    depends_on = Aspect.ALLOCATABLE

    def __init__(self, wanted: int = 4) -> None:
        self.wanted = wanted
        self.asked: list[int] = []

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        self.asked.append(nodes.size)
        return (nodes.allocatable(0) < 1000 * self.wanted).astype(np.int32)

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable(f"code {code}")


class CpuScore(ScorePlugin):
    """As many points as CPUs."""

    name = "CpuScore"
    depends_on = Aspect.ALLOCATABLE

    def __init__(self) -> None:
        self.asked: list[int] = []

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        self.asked.append(nodes.size)
        return nodes.allocatable(0) // 1000


class Half(PreFilterPlugin):
    """A PreFilter that says what it is told to."""

    depends_on = Aspect(0)

    def __init__(self, name: str = "Half", result: PreFilterResult | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.result = result or PreFilterResult()
        self.asked = 0

    def pre_filter(self, pod: Any) -> PreFilterResult:
        self.asked += 1
        return self.result


def cluster_of(*cpus: int) -> Cluster:
    """A node n0, n1, ... for each, with so many CPUs."""
    return a_cluster(*(a_node(f"n{at}").allocatable(cpu=str(cpu)) for at, cpu in enumerate(cpus)))


def prepared(plugin: Any, cluster: Cluster) -> Prepared:
    made = PreparedFilter if isinstance(plugin, PreFilterPlugin) else Prepared
    return made(plugin, cluster, OperationCounts())
