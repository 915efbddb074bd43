"""Amounts of nodes as floats, and their balance: kept row by row, against what is made afresh."""

import random
from typing import Any

import numpy as np
import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.plugins.scoring.amounts import default_amounts
from asched.core.plugins.scoring.as_floats import AMOUNT_MAX, AsFloats, Evenness
from asched.core.state.facts import Gone, Seen
from asched.core.state.view import NodeView
from tests.builders import a_cluster, a_node, a_pod, all_rows

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


def share(held: Any, offered: Any) -> Any:
    return held / offered


@pytest.mark.parametrize("nonzero", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_parts_are_made_of_what_is_requested_with_the_defaults_or_without(
    seed: int, nonzero: bool
) -> None:
    rng = random.Random(seed)
    nodes = [a_node(f"n{i}").allocatable(cpu=f"{i + 1}m", memory=f"{i + 1}") for i in range(9)]
    cluster = a_cluster(*nodes)
    kept = AsFloats(cluster, share, nonzero=nonzero)
    for step in range(20):
        pod = a_pod(f"p{step}").requests({"cpu": "2m"} if rng.random() < 0.5 else {})
        cluster.apply(Seen(POD, pod.on(f"n{rng.randrange(9)}").build()))
        assert kept.serves(ONE)
        requested, allocatable = default_amounts(all_rows(cluster), nonzero=nonzero)
        rows = np.array(rng.sample(range(9), 3), dtype=np.int32)
        for view, some in ((all_rows(cluster), slice(None)), (NodeView(cluster.nodes, rows), rows)):
            parts, offered = kept.of(view)
            assert parts.tolist() == (requested[:, some] / allocatable[:, some]).tolist()
            assert offered.tolist() == allocatable[:, some].tolist()


@pytest.mark.parametrize("asked", [AMOUNT_MAX - 1, AMOUNT_MAX, AMOUNT_MAX + 1])
@pytest.mark.parametrize("is_known", [True, False])
def test_pods_that_hold_too_much_are_nothing_for_floats(asked: int, is_known: bool) -> None:
    """Whether the row was followed, or all rows are made anew."""
    cluster = a_cluster(a_node("n0").allocatable(cpu="4", memory="8Gi"))
    kept = Evenness(cluster)
    if is_known:
        assert kept.serves(ONE)
    cluster.apply(Seen(POD, a_pod("p").requests(memory=str(asked)).on("n0").build()))

    assert kept.serves(ONE) is (asked <= AMOUNT_MAX)


@pytest.mark.parametrize("is_known", [True, False])
def test_nodes_may_offer_as_much_as_floats_hold(is_known: bool) -> None:
    cluster = a_cluster(a_node("n0").allocatable(cpu="4", memory="8Gi"))
    kept = Evenness(cluster)
    if is_known:
        assert kept.serves(ONE)
    for memory, serves in ((AMOUNT_MAX, True), (AMOUNT_MAX + 1, False), (1, True), (0, False)):
        cluster.apply(Seen(NODE, a_node("n0").allocatable(cpu="1m", memory=str(memory)).build()))
        assert kept.serves(ONE) is serves


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
