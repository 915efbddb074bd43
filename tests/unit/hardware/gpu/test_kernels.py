"""Every kernel says of many random nodes what its twin says of each."""

import random

import numpy as np
import pytest

from asched.hardware.gpu import points
from asched.hardware.gpu.fragmentation import Fragmentation, descent_points, expected
from asched.hardware.gpu.ledger import held_by
from asched.hardware.gpu.points import clustering
from asched.hardware.gpu.shares import GpuDemand, GpuShares, best_of, fits
from tests.conformance.twins import gpu_shares as twin
from tests.conformance.twins.gpu_shares import Node

MODELS = ("A", "B", "C")
NODES = 500
SEEDS = range(4)  # 2,000 states
SHARES = (0, 50, 190, 340, 500, 530, 770, 1000, 1000, 1000)


def a_demand(draw: random.Random) -> GpuDemand:
    cpu = draw.choice((0, 500, 3152, 8000, 11908, 32000))
    match draw.randrange(4):
        case 0:
            return GpuDemand(cpu)
        case 1:
            models = tuple(sorted(draw.sample(MODELS, draw.choice((0, 0, 1, 2)))))
            return GpuDemand(cpu, 1000, draw.choice((1, 1, 2, 4, 8)), models)
        case _:
            return GpuDemand(cpu, draw.choice((50, 190, 230, 470, 500, 650, 810)), 1)


def a_node(draw: random.Random) -> Node:
    left = tuple(draw.choice(SHARES) for _ in range(draw.choice((1, 2, 4, 8))))
    return Node(draw.choice((0, 400, 3152, 9000, 40_000, 96_000)), left, draw.choice(MODELS))


def columns(nodes: list[Node]) -> GpuShares:
    left = np.zeros((len(nodes), 8), dtype=np.int64)
    for row, node in enumerate(nodes):
        left[row, : len(node.left)] = node.left
    return GpuShares(
        np.array([node.cpu for node in nodes], dtype=np.int64),
        left,
        np.array([len(node.left) for node in nodes], dtype=np.int64),
        np.array([MODELS.index(node.model) for node in nodes], dtype=np.int32),
        MODELS,
    )


def a_case(seed: int) -> tuple[random.Random, list[Node], GpuDemand]:
    draw = random.Random(seed)
    nodes = [a_node(draw) for _ in range(NODES)]
    return draw, nodes, a_demand(draw)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_nodes_fit(seed: int) -> None:
    _, nodes, demand = a_case(seed)
    assert fits(columns(nodes), demand).tolist() == [twin.fits(node, demand) for node in nodes]


@pytest.mark.parametrize("seed", SEEDS)
def test_descent_and_its_device_are_the_same(seed: int) -> None:
    draw, nodes, demand = a_case(seed)
    workload = expected([(a_demand(draw), draw.randrange(1, 50)) for _ in range(12)])
    kernel = Fragmentation(workload)
    assert kernel.of(columns(nodes)).tolist() == [twin.fragmented(node, workload) for node in nodes]
    nodes = [node for node in nodes if twin.fits(node, demand)]
    ways, gradient = kernel.gradient(columns(nodes), demand)
    scores = descent_points(gradient)
    index, device = best_of(ways, scores, len(nodes))
    found = list(zip(scores[index].tolist(), device.tolist(), strict=True))
    assert found == [twin.descent(node, demand, workload) for node in nodes]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["dot_product", "best_fit", "packing"])
def test_simple_points_are_the_same(name: str, seed: int) -> None:
    _, nodes, demand = a_case(seed)
    nodes = [node for node in nodes if twin.fits(node, demand)]
    found = getattr(points, name)(columns(nodes), demand).tolist()
    assert found == [getattr(twin, name)(node, demand) for node in nodes]


@pytest.mark.parametrize("seed", SEEDS)
def test_clustering_is_the_same(seed: int) -> None:
    draw, nodes, demand = a_case(seed)
    kinds = [set(draw.sample((0, 1, 2, 4), draw.randrange(4))) for _ in nodes]
    held = np.array([demand.kind in there for there in kinds])
    numbers = np.array([len(there) for there in kinds])
    found = clustering(columns(nodes), demand, held, numbers).tolist()
    pairs = zip(nodes, kinds, strict=True)
    assert found == [twin.clustering(node, demand, there) for node, there in pairs]


@pytest.mark.parametrize(
    ("using", "number", "left"),
    [
        ((), 2, [1000, 1000]),
        (((1000, 1),), 0, []),  # its node has lost its devices
        (
            ((400, 1), (600, 1), (700, 1)),
            2,
            [300, 0],
        ),  # the largest first, then as tightly as can be
        (((300, 1), (1000, 2)), 3, [0, 0, 700]),
        (((700, 1), (600, 1)), 1, [0]),  # more than there is
    ],
)
def test_what_is_left_of_devices(using, number: int, left: list[int]) -> None:
    demands = [GpuDemand(0, milli, count) for milli, count in using]
    assert held_by(demands, number) == left
