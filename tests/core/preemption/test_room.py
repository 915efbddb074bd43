"""The room for a group by amounts: against counting anew, and as what it is, a necessary thing."""

import random

import numpy as np
import pytest

from asched.core.framework.group_post_filter import Alike
from asched.core.framework.order_free import POD_PLACE
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.preemption.room import Room
from asched.core.preemption.units import Unit
from asched.core.state.facts import Seen
from asched.edge.host.assemble import Parts
from tests.builders import a_node, a_pod

CPU = 0


class World:
    """Nodes with whole cpus and places for pods; pods of one cpu or more."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.cluster = Parts.fresh().cluster
        self.offers: list[tuple[int, int]] = []
        for n in range(rng.randint(1, 5)):
            cpu, pods = rng.randint(1, 8), rng.randint(1, 6)
            self.offers.append((cpu, pods))
            node = a_node(f"n{n}").offering_only(cpu=str(cpu), pods=str(pods), memory="1Gi")
            self.cluster.apply(Seen(NODE, node.build()))
        self.units: list[Unit] = []
        self.sizes: dict[str, int] = {}
        for p in range(rng.randint(0, 14)):
            cpu, node_row = rng.randint(0, 3), rng.randrange(len(self.offers))
            pod = a_pod(f"p{p}").requests(cpu=str(cpu)).on(f"n{node_row}").build()
            self.sizes[pod.uid] = cpu
            self.cluster.apply(Seen(POD, pod))
            self.units.append(Unit((self.cluster.placed[pod.uid],), 0, False, 0))

    def kinds(self) -> tuple[list[Alike], int]:
        """Pods of the group that want different amounts, and how many of them are needed."""
        rng, height = self.rng, len(self.offers)
        likes = [
            Alike(
                rng.randint(1, 4),
                {CPU: rng.randint(1, 4) * 1000, POD_PLACE: 1},
                np.array([rng.random() < 0.8 for _ in range(height)]),
            )
            for _ in range(rng.randint(1, 3))
        ]
        return likes, rng.randint(1, sum(like.size for like in likes))

    def left(self, away: set[int]) -> list[tuple[int, int]]:
        """(cpu, places) on each node without these units."""
        found = list(self.offers)
        for at, unit in enumerate(self.units):
            if at not in away:
                (info,) = unit.pods
                cpu, places = found[info.row]
                found[info.row] = cpu - self.sizes[info.pod.uid], places - 1
        return found

    def counted(self, likes: list[Alike], needed: int, away: set[int]) -> bool:
        left = self.left(away)
        total = sum(like.size for like in likes)

        def room(cpu: int, rows: list[bool], most: int) -> int:
            per_row = [
                max(min(free // cpu, places, most), 0) if may else 0
                for (free, places), may in zip(left, rows, strict=True)
            ]
            return sum(per_row)

        for like in likes:
            least = needed - (total - like.size)
            if room(like.takes[CPU] // 1000, like.rows.tolist(), like.size) < least:
                return False
        modest = min(like.takes[CPU] for like in likes) // 1000
        anywhere = np.logical_or.reduce([like.rows for like in likes]).tolist()
        return len(likes) == 1 or room(modest, anywhere, total) >= needed


@pytest.mark.parametrize("seed", range(60))
def test_it_follows_who_comes_and_goes(seed: int) -> None:
    world = World(seed)
    likes, needed = world.kinds()
    room = Room(world.cluster, likes, needed, world.units)
    away = set(range(len(world.units)))
    assert room.is_enough == world.counted(likes, needed, away)
    for _ in range(30 if world.units else 0):
        at = world.rng.randrange(len(world.units))
        if at in away:
            room.put_back(world.units[at])
        else:
            room.take_away(world.units[at])
        away ^= {at}
        assert room.is_enough == world.counted(likes, needed, away)


def test_a_row_with_more_than_64_bits_tell_of_is_room_for_all() -> None:
    cluster = Parts.fresh().cluster
    node = a_node("n").allocatable({"example.com/x": "5"})
    cluster.apply(Seen(NODE, decode(Node, node.json)))
    for name in ("a", "b"):
        huge = {"example.com/x": str((1 << 63) - 1)}
        cluster.apply(Seen(POD, a_pod(name).requests(huge).on("n").build()))
    resource = cluster.nodes.find_resource("example.com/x")
    assert resource is not None
    assert cluster.nodes.pod_amounts.rows_beyond
    likes = [Alike(3, {resource: 4}, np.array([True]))]
    units = [Unit((info,), 0, False, 0) for info in cluster.placed.values()]
    room = Room(cluster, likes, 3, units)
    assert room.is_enough
    room.put_back(units[0])
    assert room.is_enough, "only a trial can tell"
