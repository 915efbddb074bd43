"""NodeResourcesFit on placements: all nodes of one together, with the group's pods on top.

The expected shares are worked out by hand from noderesources/resource_allocation.go.
"""

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.config import args as config
from asched.core.framework.placements import EVERYWHERE, Assignments, Placement
from asched.core.plugins.resources.fit import NodeResourcesFit
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending

GPU = "example.com/gpu"


def a_machine(name: str, **more: str) -> NodeBuilder:
    return a_node(name).offering_only(cpu="4", memory="8Gi", pods="10", **more)


def points(
    cluster: Cluster,
    *pods: PodBuilder,
    placement: Placement = EVERYWHERE,
    resources: tuple[config.ResourceSpec, ...] = config.CPU_AND_MEMORY,
    strategy: str = config.LEAST_ALLOCATED,
) -> int:
    args = config.NodeResourcesFitArgs(scoring_strategy=config.ScoringStrategy(strategy, resources))
    placed = tuple((pending(cluster, pod), "n1") for pod in pods)
    plugin = NodeResourcesFit(args, cluster)
    return plugin.score_placement("default/crew", Assignments(placement, placed))


def test_what_is_there_and_what_would_come_is_compared_with_all_that_is_offered() -> None:
    """cpu (1 + 2) of 8 is 37, memory (2 + 2) of 16 GiB is 25; their mean is 31."""
    there = a_pod("there").requests(cpu="1", memory="2Gi").on("n1")
    cluster = a_cluster(a_machine("n1"), a_machine("n2"), pods=[there])
    come = [a_pod(name).requests(cpu="1", memory="1Gi") for name in "ab"]

    assert points(cluster, *come) == 31


def test_only_the_nodes_of_the_placement_count() -> None:
    """cpu 1 of 4 is 25, memory 1 of 8 GiB is 12; the mean is 18."""
    there = a_pod("there").requests(cpu="4", memory="8Gi").on("n1")
    cluster = a_cluster(a_machine("n1"), a_machine("n2"), pods=[there])
    second = Placement("second", np.array([False, True]))

    assert points(cluster, a_pod("a").requests(cpu="1", memory="1Gi"), placement=second) == 18


def test_the_strategy_for_nodes_is_none_for_placements() -> None:
    cluster = a_cluster(a_machine("n1"))
    pod = a_pod("a").requests(cpu="2", memory="4Gi")

    assert points(cluster, pod) == points(cluster, pod, strategy=config.MOST_ALLOCATED) == 50


def test_silent_containers_count_with_the_usual_defaults() -> None:
    """100 milli-CPU of 4000 is 2, 200 MiB of 8 GiB is 2."""
    assert points(a_cluster(a_machine("n1")), a_pod("silent")) == 2


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("2", 37),  # cpu 1 of 4 is 25; 2 of the 4 GPUs of the one node that has some are 50
        ("0", 25),  # nobody asks for one: it is left out
    ],
)
def test_a_device_counts_where_it_is_offered_and_only_if_somebody_asks(
    asked: str, expected: int
) -> None:
    resources = (config.ResourceSpec("cpu", 1), config.ResourceSpec(GPU, 1))
    cluster = a_cluster(a_node("n1").offering_only(cpu="4", pods="9").allocatable({GPU: "4"}))
    amounts = {"cpu": "1", **({GPU: asked} if asked != "0" else {})}

    assert points(cluster, a_pod("a").requests(amounts), resources=resources) == expected


def test_weights_count_and_more_than_everything_is_everything() -> None:
    """cpu 8 of 4 counts as 100 three times, memory 0 GiB-ish of 8 once: (3 * 100 + 2) / 4."""
    resources = (config.ResourceSpec("cpu", 3), config.ResourceSpec("memory", 1))
    pods = [a_pod(name).requests(cpu="4") for name in "ab"]

    # 2 x 200 MiB of 8 GiB are 4.
    assert points(a_cluster(a_machine("n1")), *pods, resources=resources) == 76
