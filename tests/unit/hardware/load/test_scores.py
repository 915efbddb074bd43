"""The three scores against their formulas, written a second time, on random clusters."""

import random
from collections.abc import Sequence
from datetime import datetime

import pytest

from asched.hardware.load.overcommitment import LowRiskOverCommitment, LowRiskOverCommitmentArgs
from asched.hardware.load.packing import TargetLoadPacking, TargetLoadPackingArgs
from asched.hardware.load.variation import (
    LoadVariationRiskBalancing,
    LoadVariationRiskBalancingArgs,
)
from asched.plugin import ScorePlugin
from tests.builders import all_rows
from tests.conformance.twins import load as twin
from tests.unit.hardware.load.worlds import Json, World, random_pod, random_world

#: Nodes, and pods for each of them: 1,000 states of a node a seed.
NODES, PODS, SEEDS = 200, 5, range(2)


def scores(plugin: ScorePlugin, world: World, pod: Json) -> dict[str, int]:
    """Of all nodes, by name."""
    info = world.pending(pod)
    plugin.stamp(info, None)
    view = all_rows(world.cluster)
    found = plugin.score(info, view, None).tolist()
    return {node.name: found[row] for row, node in world.cluster.nodes.nodes()}


def pods(seed: int) -> Sequence[Json]:
    rng = random.Random(-seed)
    return [random_pod(rng, f"w{at}") for at in range(PODS)]


def not_measured_yet(world: World, name: str) -> list[Json]:
    """Pods scheduled less than a minute before the measurement ended, or after it."""
    end_s = world.end_s.get(name, 0.0)
    return [one for one in world.placed.get(name, ()) if scheduled_s(one) > end_s - 60]


def scheduled_s(pod: Json) -> float:
    told: str = pod["status"]["conditions"][0]["lastTransitionTime"]
    return datetime.fromisoformat(told).timestamp()


@pytest.mark.parametrize("seed", SEEDS)
def test_target_load_packing_says_what_its_twin_says(seed: int) -> None:
    world = random_world(random.Random(seed), NODES)
    plugin = TargetLoadPacking(TargetLoadPackingArgs(), world.cluster)
    for pod in pods(seed):
        found = scores(plugin, world, pod)
        for name, node in world.nodes.items():
            samples = world.samples.get(name)
            used = samples[0][0] if samples else None
            waiting = not_measured_yet(world, name)
            assert found[name] == twin.target_load_packing(node, used, waiting, pod, 40), name


@pytest.mark.parametrize("seed", SEEDS)
def test_load_variation_risk_balancing_says_what_its_twin_says(seed: int) -> None:
    world = random_world(random.Random(seed), NODES)
    margin, root = random.Random(seed).choice(((1.0, 1.0), (2.5, 2.0), (0.5, 3.0)))
    args = LoadVariationRiskBalancingArgs(
        safe_variance_margin=margin, safe_variance_sensitivity=root
    )
    plugin = LoadVariationRiskBalancing(args, world.cluster)
    for pod in pods(seed):
        found = scores(plugin, world, pod)
        for name, node in world.nodes.items():
            samples = world.samples.get(name, ())
            assert found[name] == twin.load_variation(node, samples, pod, margin, root), name


@pytest.mark.parametrize("seed", SEEDS)
def test_low_risk_over_commitment_says_what_its_twin_says(seed: int) -> None:
    world = random_world(random.Random(seed), NODES)
    plugin = LowRiskOverCommitment(LowRiskOverCommitmentArgs(), world.cluster)
    for pod in pods(seed):
        found = scores(plugin, world, pod)
        for name, node in world.nodes.items():
            samples, there = world.samples.get(name, ()), world.placed.get(name, ())
            assert found[name] == twin.low_risk_over_commitment(node, samples, there, pod), name
