"""How full parts would be, followed row by row, is what each of them is told by itself."""

from random import Random

import numpy as np
import pytest

from asched.core.config import args as config
from asched.core.framework.placements import Assignments, Placement, RepeatedPlacements
from asched.core.plugins.resources.fit import NodeResourcesFit
from asched.core.plugins.resources.placement_points import PlacementPoints
from asched.core.state.cluster import Cluster
from tests.builders import a_cluster, a_node, a_pod, pending
from tests.contract.worlds import World, a_world, changes

GPU = "example.com/gpu"
#: Of the last no node has heard.
MORE = (GPU, "ephemeral-storage", "example.com/none")
RESOURCES = tuple(config.ResourceSpec(name, weight) for name, weight in (("cpu", 1), ("memory", 3)))


def points_of(cluster: Cluster) -> PlacementPoints:
    """As the plugin has them, with an extended resource."""
    strategy = config.ScoringStrategy(
        config.LEAST_ALLOCATED, (*RESOURCES, *(config.ResourceSpec(name, 2) for name in MORE))
    )
    args = config.NodeResourcesFitArgs(scoring_strategy=strategy)
    return NodeResourcesFit(args, cluster)._placement_points


def placements(world: World, random: Random) -> list[Placement]:
    height = world.cluster.nodes.height
    owner = np.array([random.choice((0, 1, 2, 3)) for _ in range(height)])  # 3: nobody's
    owner[:3] = range(min(3, height))
    masks = [owner == part for part in range(3)]
    return [Placement(str(at), mask) for at, mask in enumerate(masks) if mask.any()]


@pytest.mark.parametrize("seed", range(30))
def test_parts_are_told_what_each_is_told_by_itself(seed: int) -> None:
    world, random = a_world(seed), Random(seed)
    parts, height = placements(world, random), world.cluster.nodes.height
    points = points_of(world.cluster)
    sizes = [{"cpu": "1"}, {"cpu": "300m", "memory": "1Gi", GPU: "1"}, {MORE[2]: "1"}]
    gangs = [
        tuple((pending(world.cluster, a_pod(f"g{at}-{n}").requests(asked)), "") for n in range(2))
        for at, asked in enumerate(sizes)
    ]
    for _ in changes(world, seed, 20):
        if world.cluster.nodes.height != height:
            return  # then there are other parts
        pods = random.choice(gangs)
        candidates = [Assignments(one, pods) for one in parts]
        wanted = [points.of(one) for one in candidates]
        assert (
            points.of_parts(candidates)
            == wanted
            == points.of_parts(RepeatedPlacements(parts, pods))
        )


def test_pods_that_differ_from_part_to_part_are_not_told_at_once() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    parts = [Placement(str(at), np.arange(2) == at) for at in range(2)]
    one, other = (pending(cluster, a_pod(name)) for name in "ab")
    candidates = [Assignments(parts[0], ((one, ""),)), Assignments(parts[1], ((other, ""),))]
    assert points_of(cluster).of_parts(candidates) is None
