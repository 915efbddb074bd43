"""Where the pods of a group are: the same as counted afresh, and counted once."""

import random
from collections import Counter

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.hardware.network.mates import Mates, MatesByGroup
from asched.hardware.network.tree import NOWHERE, Tree
from asched.plugin import group_key
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod

LEVELS = ("block", "rack")
GROUP = "scheduling.x-k8s.io/pod-group"
CREWS = ("red", "blue")
STEPS = 200


def a_place(rng: random.Random, name: str) -> NodeBuilder:
    path = dict(zip(LEVELS, (rng.choice("ab"), rng.choice("123")), strict=True))
    return a_node(name).labels(path if rng.random() < 0.9 else {}).allocatable(cpu="64")


def a_mate(number: int, crew: str) -> PodBuilder:
    return a_pod(f"p{number}").labels({GROUP: crew}).requests(cpu="1")


def shares_afresh(cluster: Cluster, group: str) -> list[dict[int, float]]:
    """By level, domain -> the share of the group's pods that is there; by a look at every pod."""
    tree = Tree(cluster, None, "", LEVELS)
    tree.refresh()
    members = [one for one in cluster.placed.values() if group_key(one.pod) == group]
    rows = [one.row for one in members if one.row >= 0]
    paths = [
        Counter(
            tree.paths[level][number]
            for row in rows
            if (number := int(tree.domains[level, row])) != NOWHERE
        )
        for level in range(len(LEVELS))
    ]
    return [{path: count / len(rows) for path, count in one.items()} for one in paths]


def shares_kept(tree: Tree, mates: Mates) -> list[dict[int, float]]:
    return [
        {tree.paths[level][number]: count / mates.total for number, count in counts.items()}
        for level, counts in enumerate(mates.counts)
    ]


def change(rng: random.Random, cluster: Cluster, number: int, names: list[str]) -> None:
    """One thing that happens to pods of groups, or to nodes."""
    match rng.randrange(8):
        case 0:  # labelled otherwise, or back again
            cluster.apply(Seen(NODE, a_place(rng, rng.choice(names)).build()))
        case 1:
            name = rng.choice(names)
            if name in cluster.nodes.row_of:
                cluster.apply(Gone(NODE, cluster.nodes.node_at[cluster.nodes.row_of[name]]))
        case 2 | 3 if cluster.placed:
            left = cluster.placed[rng.choice(sorted(cluster.placed))]
            if not cluster.forget(left):
                cluster.apply(Gone(POD, left.pod))
        case 4 | 5:
            waiting = a_mate(number, rng.choice(CREWS)).build()
            cluster.apply(Seen(POD, waiting))
            cluster.assume(cluster.classes.info_of(waiting), rng.choice(names))
        case _:
            mate = a_mate(number, rng.choice(CREWS)).on(rng.choice(names))
            cluster.apply(Seen(POD, mate.build()))


@pytest.mark.parametrize("seed", range(15))
def test_it_is_what_a_look_at_every_pod_tells_and_its_version_moves_with_the_shares(
    seed: int,
) -> None:
    rng = random.Random(seed)
    names = [f"n{at}" for at in range(8)]
    cluster = a_cluster(*(a_place(rng, name) for name in names))
    tree = Tree(cluster, None, "", LEVELS)
    mates = MatesByGroup(cluster, tree)
    told: dict[str, tuple[int, list[dict[int, float]]]] = {}
    for number in range(STEPS):
        change(rng, cluster, number, names)
        for crew in CREWS if rng.random() < 0.7 else ():
            tree.refresh()
            group = f"scheduling.x-k8s.io:default/{crew}"
            found = mates.of(group)
            if not found.total:
                continue
            kept = shares_kept(tree, found)
            assert kept == shares_afresh(cluster, group)
            version, before = told.get(group, (0, []))
            assert version != found.version or before == kept
            told[group] = found.version, kept
