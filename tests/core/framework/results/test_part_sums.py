"""Sums over parts of the cluster, kept up to date, are what a fresh sum comes to."""

from random import Random

import numpy as np
import pytest

from asched.core.framework.placements import Divisions, Placement
from asched.core.framework.points import I64
from asched.core.framework.results.part_sums import PartSums
from asched.core.model.kinds import NODE
from asched.core.model.quantity import INT64_MAX
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.core.state.nodes import Aspect
from asched.core.state.view import NodeView
from tests.builders import a_node
from tests.contract.worlds import World, a_world, changes

READS = int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE)


class Asked:
    """What is summed, and how many rows were asked for it."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, nodes: NodeView) -> I64:
        self.rows += nodes.size
        both = (nodes.requested(0), nodes.allowed_pods - nodes.pod_count)
        return np.maximum(np.stack(both), 0)


def _parts(world: World, random: Random):
    height = world.cluster.nodes.height
    owner = np.array([random.choice((0, 1, 2, 3)) for _ in range(height)])  # 3: nobody's
    owner[:3] = range(min(3, height))
    masks = [owner == part for part in range(3)]
    placements = [Placement(str(at), mask) for at, mask in enumerate(masks) if mask.any()]
    return Divisions(world.cluster).of(placements), [one.rows for one in placements]


@pytest.mark.parametrize("is_plain", [False, True], ids=["of rows", "of each row"])
@pytest.mark.parametrize("seed", range(30))
def test_sums_that_follow_changed_rows_are_those_of_all_rows(seed: int, is_plain: bool) -> None:
    world, random = a_world(seed), Random(seed)
    parts, masks = _parts(world, random)
    assert parts is not None
    asked = Asked()
    sums, height = PartSums(world.cluster.nodes, parts, READS), world.cluster.nodes.height

    def of_row(row: int) -> list[int]:
        one = NodeView(world.cluster.nodes, np.array([row], dtype=np.int32))
        return [amount for (amount,) in Asked()(one).tolist()]

    before, seen, full = [], 0, -1
    for _ in changes(world, seed, 20):
        if world.cluster.nodes.height != height:
            return  # then there are other parts
        found = sums.of(asked, of_row=of_row if is_plain else None)
        fresh = Asked()(NodeView(world.cluster.nodes))
        assert found is not None
        assert found.tolist() == [[int(one[mask].sum()) for mask in masks] for one in fresh]
        if full == sums.full_version:
            moved = [at for at, one in enumerate(found.T.tolist()) if one != before[at]]
            assert set(moved) <= set(sums.turned.rows(seen, 1) or ())
        before, seen, full = found.T.tolist(), sums.turned.end, sums.full_version


def test_a_row_that_changed_is_looked_at_and_no_other() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.apply(Seen(NODE, a_node(f"n{number}").allocatable(pods="10").build()))
    parts = Divisions(cluster).of([Placement(str(at), np.arange(40) % 4 == at) for at in range(4)])
    assert parts is not None
    asked, sums = Asked(), PartSums(cluster.nodes, parts, READS)
    sums.of(asked)
    for number in range(10):
        cluster.apply(Seen(NODE, a_node(f"n{number}").allocatable(pods="7").build()))
        sums.of(asked)
    assert asked.rows == 40 + 10


def test_sums_beyond_64_bits_are_not_told() -> None:
    cluster = Cluster()
    for number in range(4):
        cluster.apply(Seen(NODE, a_node(f"n{number}").build()))
    parts = Divisions(cluster).of([Placement("a", np.ones(4, dtype=np.bool_))])
    assert parts is not None
    sums = PartSums(cluster.nodes, parts, READS)
    assert sums.of(lambda nodes: np.full((1, nodes.size), INT64_MAX // 4)) is not None
    assert sums.of(lambda nodes: np.full((1, nodes.size), INT64_MAX // 4 + 1), "more") is None
    assert sums.of(lambda nodes: np.full((1, nodes.size), 1), "less") is not None
