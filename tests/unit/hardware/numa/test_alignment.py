"""Filter and the five scores against their rules, written a second time, on random nodes."""

import random

import pytest

from asched.hardware.numa.args import (
    STRATEGIES,
    NodeResourceTopologyMatchArgs,
    NumaScoringStrategy,
    ResourceWeight,
)
from asched.hardware.numa.demand import CONTAINERS_MAX, QoS, qos_of
from asched.hardware.numa.match import NodeResourceTopologyMatch
from tests.builders import all_rows
from tests.conformance.twins import numa as twin
from tests.unit.hardware.numa.worlds import (
    DISK,
    GPU,
    World,
    a_node,
    a_pod,
    a_topology,
    a_zone,
    random_pod,
    random_topology,
)

#: 200 nodes and 10 pods: 2,000 states a seed.
NODES, PODS, SEEDS = 200, 10, range(2)


def random_world(rng: random.Random) -> World:
    world = World()
    for number in range(NODES):
        name = f"n{number}"
        more = {GPU: "8", "hugepages-2Mi": "1Gi", "ephemeral-storage": "100Gi"}
        if rng.random() < 0.5:
            more[DISK] = "4"
        world.add(a_node(name, **more))
        if rng.random() < 0.95:
            world.tell(random_topology(rng, name))
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_the_filter_says_what_its_twin_says(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    plugin = NodeResourceTopologyMatch(NodeResourceTopologyMatchArgs(), world.cluster)
    words = ["", *(reason.text for reason in plugin.reasons)]
    seen = set()
    for number in range(PODS):
        pod = random_pod(rng, f"w{number}")
        info = world.pending(pod)
        plugin.stamp(info, None)
        codes = plugin.filter(info, all_rows(world.cluster), None).tolist()
        for row, node in world.cluster.nodes.nodes():
            topology = world.topologies.get(node.name)
            said = twin.filter_one(pod, world.nodes[node.name], topology) if topology else ""
            assert words[codes[row]] == said, (node.name, pod)
            seen.add(said)
    assert len(seen) == 4  # every outcome was met


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_scores_are_those_of_their_twins(seed: int, strategy: str) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    weights = {"cpu": 3, "memory": 1, GPU: 5}
    resources = tuple(ResourceWeight(name, weight) for name, weight in weights.items())
    args = NodeResourceTopologyMatchArgs(scoring_strategy=NumaScoringStrategy(strategy, resources))
    plugin = NodeResourceTopologyMatch(args, world.cluster)
    for number in range(PODS):
        pod = random_pod(rng, f"w{number}")
        info = world.pending(pod)
        plugin.stamp(info, None)
        scores = plugin.score(info, all_rows(world.cluster), None).tolist()
        for row, node in world.cluster.nodes.nodes():
            topology = world.topologies.get(node.name)
            absent = 100 if twin.qos(pod) != "Guaranteed" else 0
            said = twin.score_one(pod, topology, strategy, weights) if topology else absent
            assert scores[row] == said, (node.name, pod, topology)


def test_the_class_of_quality_is_the_api_servers() -> None:
    rng = random.Random(1)
    found = set()
    for number in range(300):
        pod = random_pod(rng, f"w{number}")
        info = World().pending(pod)
        assert qos_of(info.pod).value == twin.qos(pod), pod
        found.add(qos_of(info.pod))
    assert found == set(QoS)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [CONTAINERS_MAX, CONTAINERS_MAX + 1])
def test_pods_of_very_many_containers_are_aligned_as_a_whole_or_not_at_all(
    count: int, strategy: str
) -> None:
    """3,000 that differ took 0.8 s on 1,000 nodes, in one go."""
    world = World()
    for scope in ("container", "pod"):
        world.add(a_node(scope))
        zones = [a_zone(number, cpu="32", memory="128Gi") for number in range(2)]
        world.tell(a_topology(scope, *zones, scope=scope))
    args = NodeResourceTopologyMatchArgs(scoring_strategy=NumaScoringStrategy(strategy))
    plugin = NodeResourceTopologyMatch(args, world.cluster)
    asked = [{"cpu": "10m", "memory": f"{1 + number}Mi"} for number in range(count)]
    info = world.pending(a_pod("large", *asked))
    plugin.stamp(info, None)
    rows = {node.name: row for row, node in world.cluster.nodes.nodes()}
    codes = plugin.filter(info, all_rows(world.cluster), None)
    scores = plugin.score(info, all_rows(world.cluster), None)

    is_looked_at = count == CONTAINERS_MAX
    assert codes[rows["pod"]] == 0
    assert (codes[rows["container"]] == 0) == is_looked_at
    if not is_looked_at:
        assert plugin.reasons[codes[rows["container"]] - 1].text == "cannot align container"
        assert scores[rows["container"]] == 0
    assert scores[rows["pod"]] > 0
