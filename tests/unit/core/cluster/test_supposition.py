"""What is supposed of a cluster is so while it is supposed, and leaves nothing behind."""

import pytest

from asched.core.cluster.audit import recount
from asched.core.model.kinds import NODE
from tests.builders import a_node
from tests.topology_builders import RandomWorld


@pytest.mark.parametrize("seed", range(8))
def test_random_suppositions_leave_no_trace(seed: int) -> None:
    """Facts first, then rows, steps taken back now and then: as a fresh count has it in the end."""
    world = RandomWorld(7000 + seed)
    rng, cluster = world.rng, world.cluster
    for _ in range(12):
        world.step()
        if not world.nodes:
            continue
        before = {uid: (i.node_name, i.row) for uid, i in cluster.placed.items()}
        with cluster.supposing() as suppose:
            for _ in range(rng.randint(0, 3)):
                placed = [i for i in cluster.placed.values() if not i.assumed]
                suppose.without(rng.sample(placed, min(len(placed), rng.randint(0, 4))))
                suppose.placed(world.info(world.some_pod("")), rng.choice(list(world.nodes)))
            if rng.random() < 0.3:
                suppose.seen(
                    NODE, a_node(rng.choice((*world.nodes, "new"))).labels(zone="z").build()
                )
            for _ in range(rng.randint(0, 4)):
                row = cluster.nodes.row_of[rng.choice(list(world.nodes))]
                there = list(cluster.pods_on(row).values())
                if there and rng.random() < 0.5:
                    suppose.gone(rng.sample(there, rng.randint(1, len(there))), row)
                else:
                    suppose.there([world.info(world.some_pod(""))], row)
                if rng.random() < 0.4:
                    suppose.back()
        assert {uid: (i.node_name, i.row) for uid, i in cluster.placed.items()} == before
        assert recount(cluster) == []
