"""One tree from four sources: random clusters told in four ways have the same domains."""

import random
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.hardware.network.sources import (
    HYPER_NODE,
    KAI_TOPOLOGY,
    KUEUE_TOPOLOGY,
    HyperNode,
    Topology,
)
from asched.hardware.network.tree import NOWHERE, Tree

Json = dict[str, Any]
TREES, SEEDS = 25, range(4)


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
