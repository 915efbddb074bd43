"""One tree from four sources: random clusters told in four ways have the same domains."""

import random
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.hardware.network.sources import (
    HYPER_NODE,
    KAI_TOPOLOGY,
    KUEUE_TOPOLOGY,
    HyperNode,
    Topology,
)
from asched.hardware.network.tree import NOWHERE, Shares, Tree
from tests import builders

Json = dict[str, Any]
TREES, SEEDS = 25, range(4)
LEVELS = ("block", "rack")


def random_places(rng: random.Random, levels: int) -> dict[str, list[str]]:
    """Node to its domains from the top; some lack the lower levels, some all."""
    places = {}
    for at in range(rng.randrange(1, 25)):
        path = [str(rng.randrange(3)) for _ in range(levels)]
        places[f"n{at}"] = path[: rng.choice((levels, levels, levels, rng.randrange(levels + 1)))]
    return places


def a_node(name: str, path: list[str], keys: list[str]) -> Node:
    labels = {"name": name, **dict(zip(keys, path, strict=False))}
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
    return decode(Node, {"metadata": metadata, "status": {"allocatable": {"cpu": "4"}}})


def hyper_nodes(rng: random.Random, places: dict[str, list[str]], levels: int) -> list[Json]:
    """Each path a HyperNode, in tier 1 at the bottom; members by name, by pattern or by label."""
    members: dict[tuple[str, ...], list[Json]] = {}
    for name, path in places.items():
        if not path:
            continue
        exact = {"exactMatch": {"name": name}}
        pattern = {"regexMatch": {"pattern": f"^{name}$"}}
        label = {"labelMatch": {"matchLabels": {"name": name}}}
        chosen = {"type": "Node", "selector": rng.choice((exact, pattern, label))}
        members.setdefault(tuple(path), []).append(chosen)
        for upto in range(len(path) - 1, 0, -1):
            held = {
                "type": "HyperNode",
                "selector": {"exactMatch": {"name": called(path[: upto + 1])}},
            }
            known = members.setdefault(tuple(path[:upto]), [])
            if held not in known:
                known.append(held)
    return [
        {
            "metadata": {"name": called(path)},
            "spec": {"tier": levels - len(path) + 1, "members": held},
        }
        for path, held in members.items()
    ]


def called(path: Any) -> str:
    return "h" + "-".join(path)


def canonical(tree: Tree) -> list[list[int]]:
    """Domains by level, numbered by their first row."""
    tree.refresh()
    found = []
    for column in tree.domains.tolist():
        numbers: dict[int, int] = {}
        found.append([numbers.setdefault(d, len(numbers)) if d != NOWHERE else d for d in column])
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_four_sources_tell_of_the_same_tree(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(TREES):
        levels = rng.randrange(1, 4)
        keys = [f"example.com/level-{at}" for at in range(levels)]
        places = random_places(rng, levels)
        cluster = Cluster()
        for name, path in places.items():
            cluster.apply(Seen(NODE, a_node(name, path, keys)))
        object_ = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": k} for k in keys]}}
        for kind in (KUEUE_TOPOLOGY, KAI_TOPOLOGY):
            cluster.apply(Seen(kind, decode(Topology, object_)))
        for one in hyper_nodes(rng, places, levels):
            cluster.apply(Seen(HYPER_NODE, decode(HyperNode, one)))
        by_labels = canonical(Tree(cluster, None, "", tuple(keys)))
        assert by_labels == expected(places, levels)
        for kind in (KUEUE_TOPOLOGY, KAI_TOPOLOGY):
            assert canonical(Tree(cluster, kind, "t", ())) == by_labels
        told = canonical(Tree(cluster, HYPER_NODE, "", ()))
        assert told == by_labels[: len(told)]
        # Levels in which no HyperNode is are none.
        assert all(set(rest) == {NOWHERE} for rest in by_labels[len(told) :])


def expected(places: dict[str, list[str]], levels: int) -> list[list[int]]:
    found = []
    for level in range(levels):
        numbers: dict[tuple[str, ...], int] = {}
        column = []
        for path in places.values():
            upto = tuple(path[: level + 1])
            is_in = len(path) > level
            column.append(numbers.setdefault(upto, len(numbers)) if is_in else NOWHERE)
        found.append(column)
    return found


def test_what_changes_is_read_again() -> None:
    cluster = Cluster()
    tree = Tree(cluster, None, "", ("block", "rack"))
    for name, path in (("a", ["x", "1"]), ("b", ["x", "1"]), ("c", ["y", "1"])):
        cluster.apply(Seen(NODE, a_node(name, path, ["block", "rack"])))
    assert canonical(tree) == [[0, 0, 1], [0, 0, 1]]
    cluster.apply(Seen(NODE, a_node("b", ["y", "1"], ["block", "rack"])))
    assert canonical(tree) == [[0, 1, 1], [0, 1, 1]]
    cluster.apply(Gone(NODE, a_node("a", [], [])))
    assert canonical(tree) == [[NOWHERE, 0, 0], [NOWHERE, 0, 0]]


def test_hyper_nodes_in_circles_and_broken_patterns_do_no_harm() -> None:
    cluster = Cluster()
    cluster.apply(Seen(NODE, a_node("n1", [], [])))
    for name, other in (("a", "b"), ("b", "a")):
        held = [
            {"type": "HyperNode", "selector": {"exactMatch": {"name": other}}},
            {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
            {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}},
        ]
        one = {"metadata": {"name": name}, "spec": {"tier": 1, "members": held}}
        cluster.apply(Seen(HYPER_NODE, decode(HyperNode, one)))
    tree = Tree(cluster, HYPER_NODE, "", ())
    assert canonical(tree) == [[0]]
    assert tree.paths == [[("a",)]]


def in_use(cluster: Cluster, levels: Sequence[str]) -> list[dict[Any, int]]:
    """By level, domain -> hundredths of its CPU that are asked for; by a look at all there is."""
    sums: list[dict[Any, list[int]]] = [{} for _ in levels]
    for row, node in cluster.nodes.nodes():
        pods = cluster.pods_on(row).values()
        for level in range(len(path_of(node, levels))):
            found = sums[level].setdefault(path_of(node, levels)[: level + 1], [0, 0])
            found[0] += sum(pod.cls.requests["cpu"] for pod in pods)
            found[1] += 1000 * int(node.status.allocatable["cpu"])
    return [
        {path: min(100, 100 * asked // max(offered, 1)) for path, (asked, offered) in one.items()}
        for one in sums
    ]


def path_of(node: Node, levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(node.labels[key] for key in takewhile(node.labels.__contains__, levels))


def something_else(rng: random.Random, cluster: Cluster, number: int) -> None:
    """A node or a pod comes, changes or goes, or the levels are others."""
    name = f"n{rng.randrange(12)}"
    match rng.randrange(12):
        case 0:
            keys = rng.choice(((), ("block",), LEVELS, LEVELS, LEVELS[::-1]))
            levels = {"levels": [{"nodeLabel": key} for key in keys]} if keys else {}
            told = {"metadata": {"name": "t"}, "spec": levels}
            cluster.apply(Seen(KUEUE_TOPOLOGY, decode(Topology, told)))
        case 1 if name in cluster.nodes.row_of:
            cluster.apply(Gone(NODE, cluster.node_of(name)))
        case 1 | 2 | 3 | 4:
            labels = {key: str(rng.randrange(3)) for key in LEVELS if rng.random() < 0.9}
            node = builders.a_node(name).labels(labels).allocatable(cpu=rng.choice("0124"))
            cluster.apply(Seen(NODE, node.build()))
        case 5 | 6 if cluster.placed:
            cluster.apply(Gone(POD, cluster.placed[rng.choice(sorted(cluster.placed))].pod))
        case _:
            pod = builders.a_pod(f"p{number}").requests(cpu=f"{rng.randrange(1500)}m").on(name)
            cluster.apply(Seen(POD, pod.build()))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_is_what_a_look_at_all_tells_and_versions_move_with_it(seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster()
    tree = Tree(cluster, KUEUE_TOPOLOGY, "t", ())
    shares = Shares(cluster, tree)
    told: dict[Any, Any] = {}
    for number in range(200):
        something_else(rng, cluster, number)
        if rng.random() < 0.5:
            continue
        shares.refresh()
        topology = cluster.get(KUEUE_TOPOLOGY, "t")
        levels = [one.node_label for one in (topology and topology.spec.levels) or ()]
        expected = in_use(cluster, levels)
        kept = [
            dict(zip(paths, points.tolist(), strict=False))
            for paths, points in zip(tree.paths, shares.points, strict=True)
        ]
        empty = [dict.fromkeys(one, 0) for one in kept]  # of those that nobody is in
        assert kept == [{**none, **one} for none, one in zip(empty, expected, strict=True)]
        where = [
            [paths[number] if number != NOWHERE else None for number in column]
            for paths, column in zip(tree.paths, tree.domains.tolist(), strict=True)
        ]
        assert where == [
            [
                path[: level + 1] if len(path) > level else None
                for path in (path_of(n, levels) if n else () for n in cluster.nodes.node_at)
            ]
            for level in range(len(levels))
        ]
        assert told.setdefault(tree.version, where) == where
        assert told.setdefault((shares.version, tree.full_version), expected) == expected


def test_what_did_not_change_is_neither_read_nor_made_again() -> None:
    cluster = Cluster()
    told = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "block"}]}}
    cluster.apply(Seen(KUEUE_TOPOLOGY, decode(Topology, told)))
    for at in range(20):
        cluster.apply(Seen(NODE, a_node(f"n{at}", [str(at % 4)], ["block"])))
    tree = Tree(cluster, KUEUE_TOPOLOGY, "t", ())
    shares = Shares(cluster, tree)
    shares.refresh()
    before = tree.source, tree.version, tree.full_version, shares.full_version, shares.version
    cluster.apply(Seen(POD, builders.a_pod("p").requests(cpu="3").on("n1").build()))
    shares.refresh()
    assert shares.points[0].tolist() == [0, 15, 0, 0]
    now = tree.source, tree.version, tree.full_version, shares.full_version, shares.version
    assert now[0] is before[0]
    assert now[1:4] == before[1:4]
    assert now[4] != before[4]
    cluster.apply(Seen(POD, builders.a_pod("q").requests(cpu="10m").on("n1").build()))
    shares.refresh()
    assert shares.version == now[4]  # no hundredth more


def test_domains_that_nobody_is_in_any_more_are_forgotten_now_and_then() -> None:
    """There are never more than twice those that there could be, and all is seldom made anew."""
    cluster = Cluster()
    nodes = 10
    for at in range(nodes):
        cluster.apply(Seen(NODE, a_node(f"n{at}", ["a", "1"], list(LEVELS))))
    tree = Tree(cluster, None, "", LEVELS)
    tree.refresh()
    bound, most = 2 * (2 * nodes + 1), 0
    for number in range(200):
        cluster.apply(Seen(NODE, a_node("n3", [f"b{number}", "1"], list(LEVELS))))
        tree.refresh()
        most = max(most, sum(map(len, tree.paths)))
    assert bound - 1 <= most <= bound
    assert tree.full_version <= 1 + 200 * 2 // (bound - 4)


def test_domains_are_columns_of_numbers() -> None:
    tree = Tree(Cluster(), None, "", ("rack",))
    tree.refresh()
    assert tree.domains.dtype == np.int32
    assert tree.domains.shape == (1, 0)
