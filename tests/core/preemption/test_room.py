"""The room for a group by amounts: against counting anew, and as what it is, a necessary thing."""

import random
from collections.abc import Iterable

import numpy as np
import pytest

from asched.core.framework.group_post_filter import EqualMembers
from asched.core.framework.order_free import POD_PLACE
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.preemption.room import EvictionTrial, Want, is_hopeless, of_group, of_places
from asched.core.preemption.units import Unit
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.host.assemble import Parts
from tests.builders import a_node, a_pod

CPU = 0


def a_room(cluster: Cluster, wants: list[Want], gone: Iterable[Unit]) -> EvictionTrial:
    room = EvictionTrial(cluster, wants)
    for unit in gone:
        room.without(unit)
    room.count()
    return room


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

    def kinds(self) -> tuple[list[EqualMembers], int]:
        """Pods of the group that want different amounts, and how many of them are needed."""
        rng, height = self.rng, len(self.offers)
        likes = [
            EqualMembers(
                tuple(f"{kind}-{i}" for i in range(rng.randint(1, 4))),
                {CPU: rng.randint(1, 4) * 1000, POD_PLACE: 1},
                np.array([rng.random() < 0.8 for _ in range(height)]),
            )
            for kind in range(rng.randint(1, 3))
        ]
        return likes, rng.randint(1, sum(len(like.uids) for like in likes))

    def left(self, away: set[int]) -> list[tuple[int, int]]:
        """(cpu, places) on each node without these units."""
        found = list(self.offers)
        for at, unit in enumerate(self.units):
            if at not in away:
                (info,) = unit.pods
                cpu, places = found[info.row]
                found[info.row] = cpu - self.sizes[info.pod.uid], places - 1
        return found

    def counted(self, likes: list[EqualMembers], needed: int, away: set[int]) -> bool:
        left = self.left(away)
        total = sum(len(like.uids) for like in likes)

        def room(cpu: int, rows: list[bool], most: int) -> int:
            per_row = [
                max(min(free // cpu, places, most), 0) if may else 0
                for (free, places), may in zip(left, rows, strict=True)
            ]
            return sum(per_row)

        for like in likes:
            least = needed - (total - len(like.uids))
            if room(like.takes[CPU] // 1000, like.rows.tolist(), len(like.uids)) < least:
                return False
        modest = min(like.takes[CPU] for like in likes) // 1000
        anywhere = np.logical_or.reduce([like.rows for like in likes]).tolist()
        return len(likes) == 1 or room(modest, anywhere, total) >= needed


@pytest.mark.parametrize("seed", range(60))
def test_it_follows_who_comes_and_goes(seed: int) -> None:
    world = World(seed)
    likes, needed = world.kinds()
    room = a_room(world.cluster, of_group(likes, needed), world.units)
    away = set(range(len(world.units)))
    assert room.is_enough == world.counted(likes, needed, away)
    assert is_hopeless(world.cluster, of_group(likes, needed), 1, ()) is not room.is_enough
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
    likes = [EqualMembers(("a", "b", "c"), {resource: 4}, np.array([True]))]
    units = [Unit((info,), 0, False, 0) for info in cluster.placed.values()]
    room = a_room(cluster, of_group(likes, 3), units)
    assert room.is_enough
    assert not is_hopeless(cluster, of_group(likes, 3), 0, ())
    room.put_back(units[0])
    assert room.is_enough, "only a trial can tell"


@pytest.mark.parametrize("seed", range(60))
def test_pods_keep_the_places_they_have(seed: int) -> None:
    """Enough is left of a row if what its units leave holds all of the group's pods there."""
    world = World(seed)
    likes, _ = world.kinds()
    rng, left = world.rng, world.left(set(range(len(world.units))))
    places, needs = {}, [(0, 0)] * len(left)
    for like in likes:
        for uid in like.uids:
            row = rng.randrange(len(left))
            cpu, pods = needs[row]
            needs[row] = cpu + like.takes[CPU] // 1000, pods + 1
            places[uid] = f"n{row}"
    room = a_room(world.cluster, of_places(likes, places, world.cluster.nodes), world.units)
    away = set(range(len(world.units)))
    for at in (None, *range(len(world.units))):
        if at is not None:
            room.put_back(world.units[at])
            away.discard(at)
        fits = [
            pods == 0 or (cpu <= free and pods <= most)
            for (cpu, pods), (free, most) in zip(needs, world.left(away), strict=True)
        ]
        assert room.is_enough == all(fits)


def test_room_for_twice_as_many_is_asked_for_only_as_far_as_there_is() -> None:
    cluster = Parts.fresh().cluster
    cluster.apply(Seen(NODE, a_node("n").offering_only(cpu="5", pods="9", memory="1Gi").build()))
    likes = [EqualMembers(("a", "b", "c", "d", "e", "f", "g"), {CPU: 1000}, np.array([True]))]
    cluster.apply(Seen(POD, a_pod("big").requests(cpu="2").on("n").build()))
    (info,) = cluster.placed.values()
    unit = Unit((info,), 0, False, 0)
    room = a_room(cluster, of_group(likes, 2), (unit,))
    asked = []
    for _ in range(9):
        room.put_back(unit)
        asked.append(room.is_enough)
        room.take_away(unit)
        assert room.is_enough
        if not room.widen():
            break
    assert asked == [True, False, False], "for 2, 4 and 5 beside one that takes 2 of 5"


def test_pods_of_the_same_priority_are_no_room_unless_they_go_with_their_group() -> None:
    cluster = Parts.fresh().cluster
    cluster.apply(Seen(NODE, a_node("n").offering_only(cpu="2", pods="9", memory="1Gi").build()))
    for name, priority in (("low", 1), ("high", 5)):
        cluster.apply(Seen(POD, a_pod(name).requests(cpu="1").priority(priority).on("n").build()))
    wants = of_group([EqualMembers(("a", "b"), {CPU: 1000}, np.array([True]))], 2)
    others = [info for info in cluster.placed.values() if info.pod.priority == 5]
    assert is_hopeless(cluster, wants, 5, ())
    assert not is_hopeless(cluster, wants, 5, others)
    assert not is_hopeless(cluster, wants, 6, others)
