"""Sums that go on where the budget stopped them."""

from typing import Any

import pytest

from asched.core.cluster import budget
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.view import NodeView
from asched.core.model.kinds import NODE
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.stepwise import CHUNK, PARTS_FEW
from tests.builders import a_node, a_pod


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
    compiled = 5 * PARTS_FEW // budget.CHUNK
    assert slices == compiled + 5 * PARTS_FEW // CHUNK - 1
    assert found.tolist() == getattr(in_one_go, point)(pod, view, None).tolist()
    assert len(set(found.tolist())) == 2
