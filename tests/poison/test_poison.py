"""Whatever tenants and nodes write, nobody else's pod waits for it and nothing breaks."""

import pytest

from tests.poison.life import Life

SEEDS = range(5)
STEPS = 25


@pytest.mark.parametrize("seed", SEEDS)
def test_others_are_placed_whatever_is_seen(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    assert life.waiting == []
    life.end()
    assert life.waiting == []


def test_what_is_made_is_read_for_the_most_part_and_reaches_bindings() -> None:
    """Otherwise nothing behind the door would be tried."""
    life = Life(0)
    for _ in range(STEPS):
        life.step(poison=8)
    assert 0 < life.malformed < len(life.shown)
    assert life.bound_poison > 5
    assert {kind.plural for kind, _ in life.shown.values()} >= {"pods", "nodes", "resourceclaims"}
