"""What SIGUSR2 finds: objects the API server has otherwise, and counts that have drifted."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from asched.core.state.cluster import Cluster
from asched.host.debugger import Debugger
from tests.builders import a_cluster, a_node, a_pod


def a_debugger(cluster: Cluster) -> Debugger:
    context = SimpleNamespace(cluster=cluster)
    scheduler: Any = SimpleNamespace(machine=SimpleNamespace(context=context))
    unasked: Any = None
    return Debugger(scheduler, unasked, unasked)


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(a_node("n1"), pods=[a_pod("web").requests(cpu="500m").on("n1")])


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    logging.getLogger("asched").propagate = True
    caplog.set_level(logging.INFO, "asched.debugger")
    return lambda: [(record.getMessage(), vars(record)) for record in caplog.records]


async def test_counts_that_agree_are_told_in_one_line(cluster: Cluster, said: Any) -> None:
    await a_debugger(cluster).count_again()

    ((message, extra),) = said()
    assert (message, extra["mismatches"]) == ("recount finished", 0)


async def test_a_count_that_drifted_is_named(cluster: Cluster, said: Any) -> None:
    cluster.nodes.columns.write["requested"][0, 0] += 1

    await a_debugger(cluster).count_again()

    (finding, end) = said()
    assert finding[0] == "Count mismatch"
    assert finding[1]["found"] == "node n1, requested, cpu: kept 501, counted 500"
    assert end[1]["mismatches"] == 1
