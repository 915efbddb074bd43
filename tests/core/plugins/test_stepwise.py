"""Sums that go on where the budget stopped them."""

from typing import Any

import pytest

from asched.core.model.kinds import NODE
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.stepwise import CHUNK, PARTS_FEW, Stepwise
from asched.core.state import gradual
from asched.core.state.budget import Budget, OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.core.state.view import NodeView
from tests.builders import a_node, a_pod

PARTS = list(range(10 * CHUNK + 3))


class Ledger:
    """A sum of numbers that counts how often one was added."""

    def __init__(self) -> None:
        self.budget = Budget()
        self.sums: Stepwise[int, int] = Stepwise(self.budget, lambda _: 1)
        self.added = 0

    def ask(self, key: object = "k", stamp: int = 0, steps: int = 1) -> int | None:
        def add(total: int, part: int) -> int:
            self.added += 1
            return total + part

        self.budget.open(steps)
        try:
            return self.sums.sum(key, lambda: stamp, PARTS, 0, add)  # type: ignore[arg-type]
        except OutOfTurn:
            return None
        finally:
            self.budget.close()


def test_a_sum_is_gone_on_with() -> None:
    ledger = Ledger()
    found = [ledger.ask() for _ in range(11)]
    assert found == [None] * 10 + [sum(PARTS)]
    assert ledger.added == len(PARTS)


def test_another_stamp_begins_anew_and_another_key_is_another_sum() -> None:
    ledger = Ledger()
    ledger.ask(steps=5 * CHUNK)
    assert ledger.ask("other") is None
    assert ledger.ask(stamp=1, steps=9 * CHUNK) is None
    assert ledger.ask(stamp=1, steps=9 * CHUNK) == sum(PARTS)


def test_several_sums_for_one_answer_all_come_to_their_end() -> None:
    budget = Budget()
    sums: Stepwise[int, int] = Stepwise(budget, lambda _: 1, keeps_whole=True)
    slices = 0
    while True:
        budget.open(CHUNK)
        slices += 1
        try:
            found = [sums.sum(key, lambda: 0, PARTS, key, int.__add__) for key in range(5)]
        except OutOfTurn:
            continue
        break
    assert found == [sum(PARTS) + key for key in range(5)]
    assert slices <= 5 * len(PARTS) / CHUNK + 1


@pytest.mark.parametrize("point", ["filter", "score"])
def test_a_pod_with_thousands_of_node_terms_is_judged_in_slices(point: str) -> None:
    cluster = Cluster()
    for i in range(9):
        cluster.apply(Seen(NODE, a_node(f"n{i}").labels(rack=f"r{i}", disk="ssd").build()))
    terms: list[dict[str, Any]] = [
        {"matchExpressions": [{"key": "rack", "operator": "In", "values": [f"r{i % 4}"]}]}
        for i in range(5 * PARTS_FEW)
    ]
    how = "DuringSchedulingIgnoredDuringExecution"
    required = {"nodeSelectorTerms": terms}
    preferred = [{"weight": 1, "preference": term} for term in terms]
    affinity = {f"required{how}": required, f"preferred{how}": preferred}
    pod = cluster.classes.info_of(a_pod().spec(affinity={"nodeAffinity": affinity}).build())
    plugin, in_one_go = NodeAffinity(None, cluster), NodeAffinity()
    view, slices = NodeView(cluster.nodes), 0
    while True:
        cluster.budget.open(1)
        try:
            found = getattr(plugin, point)(pod, view, None)
            break
        except OutOfTurn:
            slices += 1
        finally:
            cluster.budget.close()
    compiled = 5 * PARTS_FEW // gradual.CHUNK
    assert slices == compiled + 5 * PARTS_FEW // CHUNK - 1
    assert found.tolist() == getattr(in_one_go, point)(pod, view, None).tolist()
    assert len(set(found.tolist())) == 2
