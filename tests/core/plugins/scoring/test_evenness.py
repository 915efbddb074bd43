"""The balance of every node as it is: kept row by row, against one made afresh."""

import random

import numpy as np
import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.plugins.scoring.evenness import Evenness
from asched.core.state.facts import Gone, Seen
from tests.builders import a_cluster, a_node, a_pod


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_equals_what_is_made_afresh(seed: int) -> None:
    rng = random.Random(seed)
    cluster = a_cluster(*(a_node(f"n{i}").allocatable(cpu="4", memory="8Gi") for i in range(12)))
    kept, placed = Evenness(cluster), []
    for step in range(60):
        node = f"n{rng.randrange(12)}"
        if placed and rng.random() < 0.3:
            cluster.apply(Gone(POD, placed.pop(rng.randrange(len(placed)))))
        elif rng.random() < 0.1:
            offered = {"cpu": rng.choice(("0", "1", "16")), "memory": rng.choice(("0", "1Gi"))}
            cluster.apply(Seen(NODE, a_node(node).allocatable(**offered).build()))
        else:
            amounts = {"cpu": f"{rng.randint(1, 3000)}m", "memory": f"{rng.randint(1, 6000)}Mi"}
            placed.append(a_pod(f"p{step}").requests(**amounts).on(node).build())
            cluster.apply(Seen(POD, placed[-1]))
        if rng.random() < 0.7:
            assert np.array_equal(kept.of_all(), Evenness(cluster).of_all()), f"seed {seed}, {step}"
