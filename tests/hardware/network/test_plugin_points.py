"""The points of nodes: for pods of a group near the others, for other pods where much is in use."""

import math
import random
from typing import Any

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.hardware.network.plugin import NetworkTopology, NetworkTopologyArgs
from asched.plugin import group_key
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending

LEVELS = ("zone", "block", "rack")
LABEL, CREWS = "scheduling.x-k8s.io/pod-group", "scheduling.x-k8s.io:default/"


def a_plugin(cluster: Cluster, **args: Any) -> NetworkTopology:
    return NetworkTopology(NetworkTopologyArgs(**args or {"levels": LEVELS}), cluster)


def a_world(**paths: str) -> Cluster:
    """Nodes by name with their ways down, `zone/block/rack`, or the beginning of it."""
    return a_cluster(
        *(
            a_node(name).labels(dict(zip(LEVELS, path.split("/") if path else (), strict=False)))
            for name, path in paths.items()
        )
    )


def place(cluster: Cluster, pod: PodBuilder, node: str) -> None:
    cluster.apply(Seen(POD, pod.on(node).build()))


def way_of(node: Node) -> tuple[str, ...]:
    return tuple(node.labels[key] for key in LEVELS if key in node.labels)


def points_by_rule(cluster: Cluster, group: str) -> dict[int, int]:
    """By row. Each level counts 0.8 of the one below; of mates their share in the domain, for other
    pods the hundredths of its CPU that are asked for.
    """
    ways = {row: way_of(node) for row, node in cluster.nodes.nodes()}
    pods = [(row, pod) for row in ways for pod in cluster.pods_on(row).values()]
    mates = [row for row, pod in pods if group and group_key(pod.pod) == CREWS + group]
    found = {}
    for row, way in ways.items():
        total = 0.0
        for level in range(len(way)):
            near = [at for at, other in ways.items() if other[: level + 1] == way[: level + 1]]
            if mates:
                points = 100 * sum(mate in near for mate in mates) / len(mates)
            else:
                asked = sum(pod.cls.requests["cpu"] for at, pod in pods if at in near)
                points = min(100, 100 * asked // (64_000 * len(near)))
            total += 0.8 ** (len(LEVELS) - 1 - level) * points
        found[row] = math.floor(total / (1 + 0.8 + 0.64) + 1e-9)
    return found


def something_else(rng: random.Random, cluster: Cluster, number: int) -> None:
    name = f"n{rng.randrange(10)}"
    match rng.randrange(6):
        case 0 if name in cluster.nodes.row_of:
            cluster.apply(Gone(NODE, cluster.node_of(name)))
        case 0 | 1:
            way = dict(zip(LEVELS, rng.choices("abc", k=rng.randrange(4)), strict=False))
            cluster.apply(Seen(NODE, a_node(name).labels(way).build()))
        case _:
            pod = a_pod(f"p{number}").requests(cpu=f"{rng.randrange(40)}")
            if rng.random() < 0.3:
                pod = pod.labels({LABEL: rng.choice(("red", "blue"))})
            place(cluster, pod, name)


@pytest.mark.parametrize("seed", range(12))
def test_points_are_those_of_the_plain_rule_and_stamps_move_with_them(seed: int) -> None:
    """What a row has by its own labels is made anew with them; all the rest moves the stamp."""
    rng = random.Random(seed)
    ways = ["/".join(rng.choice("abc") for _ in range(rng.randrange(4))) for _ in range(10)]
    cluster = a_world(**{f"n{at}": way for at, way in enumerate(ways)})
    plugins = {group: a_plugin(cluster) for group in ("", "red", "blue")}
    told: dict[Any, int] = {}
    for number in range(50):
        something_else(rng, cluster, number)
        for group, plugin in plugins.items():
            waiting = pending(cluster, a_pod().labels({LABEL: group} if group else {}))
            expected = points_by_rule(cluster, group)
            stamp = plugin.stamp(waiting, None) if rng.random() < 0.8 else None
            found = plugin.score(waiting, all_rows(cluster), None).tolist()
            assert {row: found[row] for row in expected} == expected
            for row, points in expected.items() if stamp is not None else ():
                key = group, stamp, way_of(cluster.nodes.node_at[row])
                assert told.setdefault(key, points) == points


def test_without_levels_all_nodes_are_alike() -> None:
    cluster = a_world(n0="z/a/1", n1="")
    place(cluster, a_pod("p").requests(cpu="3"), "n0")
    plugin = a_plugin(cluster, source="Kueue", topology="t")
    assert plugin.score(pending(cluster, a_pod()), all_rows(cluster), None).tolist() == [0, 0]
