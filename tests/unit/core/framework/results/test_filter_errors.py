"""An error of a filter counts on nodes that were reached, and nowhere else."""

from typing import Any

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.filter_errors import end_on_errors
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.status import PointError
from tests.builders import a_pod, pending
from tests.unit.core.framework.results.kernels import Cpus, cluster_of, prepared


class Coded(Cpus):
    """Says these codes; from 5 on they are errors."""

    errors_from = 5

    def __init__(self, *codes: int) -> None:
        self.codes = codes

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.array(self.codes, dtype=np.int32)


class Harmless(Coded):
    errors_from = None


def judged(cluster: Cluster, *plugins: Coded, narrowed: Any = None) -> None:
    pod = pending(cluster, a_pod())
    active = [
        CachedVerdict(cluster.nodes, prepared(p, cluster), OperationCounts()) for p in plugins
    ]
    for verdict in active:
        verdict.refresh(pod)
    end_on_errors(pod, active, cluster.nodes.columns.read("live"), narrowed)


def test_an_error_ends_the_attempt_in_its_own_words() -> None:
    with pytest.raises(PointError, match=r'^running "Cpus" filter plugin: code 5$'):
        judged(cluster_of(1, 1), Coded(0, 5))


@pytest.mark.parametrize(
    ("plugins", "narrowed"),
    [
        ([Coded(4, 0)], None),
        ([Harmless(7, 0)], None),
        ([Coded(1, 0), Coded(5, 0)], None),  # rejected by an earlier one
        ([Coded(0, 5)], {0}),  # not looked at
    ],
)
def test_it_does_not_where_nobody_would_have_asked(plugins: Any, narrowed: Any) -> None:
    judged(cluster_of(1, 1), *plugins, narrowed=narrowed)


def test_a_row_without_a_node_means_nothing() -> None:
    cluster = cluster_of(1, 1)
    cluster.nodes.remove("n1")
    judged(cluster, Coded(0, 5))


def test_a_later_rejection_comes_too_late() -> None:
    with pytest.raises(PointError):
        judged(cluster_of(1, 1), Coded(5, 0), Coded(1, 0))
    with pytest.raises(PointError):
        judged(cluster_of(1, 1), Coded(1, 0), Coded(5, 5))
