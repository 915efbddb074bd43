"""Beside a foreign binder at 95 % full: less than half as many pods are refused by kubelets."""

from collections import Counter

from tests.sim.clash_rate import clashes, rate


def test_room_left_on_contested_nodes_halves_the_clashes() -> None:
    found = {True: Counter[str](), False: Counter[str]()}
    for seed in range(2):
        for leaves_room, sums in found.items():
            sums.update(clashes(seed, leaves_room=leaves_room))

    assert found[True]["ours"] > 200
    assert found[False]["refused"] > 10
    assert rate(found[True]) < rate(found[False]) / 2
