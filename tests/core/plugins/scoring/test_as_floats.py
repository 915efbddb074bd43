"""Amounts of nodes as floats, and their balance: kept row by row, against what is made afresh."""

import random

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.plugins.scoring.as_floats import AMOUNT_MAX, Evenness
from asched.core.state.facts import Gone, Seen
from tests.builders import a_cluster, a_node, a_pod

ONE = (1, 1)


def of_all(kept: Evenness) -> list[list[float]] | None:
    """None where a node lacks something, or has too much."""
    return (
        [*kept.parts.tolist(), *kept.offered.tolist(), kept.values.tolist()]
        if kept.serves(ONE)
        else None
    )


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
            assert of_all(kept) == of_all(Evenness(cluster)), f"seed {seed}, {step}"


@pytest.mark.parametrize("lacking", [{"cpu": "0"}, {"memory": "1Pi"}])
def test_a_node_that_lacks_something_or_has_too_much_is_nothing_for_floats(
    lacking: dict[str, str],
) -> None:
    cluster = a_cluster(a_node("n0").allocatable(cpu="4", memory="8Gi"))
    kept = Evenness(cluster)
    assert kept.serves((1000, AMOUNT_MAX))
    assert not kept.serves((1000, AMOUNT_MAX + 1))
    cluster.apply(
        Seen(NODE, a_node("n1").allocatable({"cpu": "4", "memory": "8Gi", **lacking}).build())
    )
    assert not kept.serves(ONE)
    cluster.apply(Gone(NODE, a_node("n1").build()))
    assert kept.serves(ONE)
