"""Which rows the selectors of storage objects accept."""

from typing import Any, Final

import pytest

from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import NodeSelector
from asched.core.plugins.volumes.topology import allowed, reachable, selected
from tests.volume_builders import HOST, ZONE, a_class, a_cluster, a_node

CLUSTER = a_cluster(a_node("n1", "a"), a_node("n2", "b"), a_node("n3"))


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def named(operator: str, *values: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": operator, "values": values}
    return {"matchFields": [field]}


#: Terms, and which of the rows they accept.
TERMS: Final = [
    ([], [0, 0, 0]),
    ([{}], [0, 0, 0]),
    ([term(ZONE, "In", "a")], [1, 0, 0]),
    ([term(ZONE, "NotIn", "a")], [0, 1, 1]),
    ([term(ZONE, "Exists")], [1, 1, 0]),
    ([term(ZONE, "In", "a"), term(ZONE, "DoesNotExist")], [1, 0, 1]),
    ([term(ZONE, "In", "nowhere")], [0, 0, 0]),
    # What makes no sense matches nothing.
    ([term(ZONE, "NotIn")], [0, 0, 0]),
    ([term(ZONE, "Exists", "a"), term(ZONE, "In", "b")], [0, 1, 0]),
    # A volume is compared with a node without a name: its fields say nothing.
    ([named("In", "n1")], [1, 1, 1]),
    ([named("NotIn", "n1")], [1, 1, 1]),
    ([{**term(ZONE, "In", "a"), **named("In", "n2")}], [1, 0, 0]),
]


@pytest.mark.parametrize(("terms", "rows"), TERMS)
def test_reachable(terms: list[dict[str, Any]], rows: list[int]) -> None:
    required = decode(NodeSelector, {"nodeSelectorTerms": terms})

    assert reachable(CLUSTER.view(), required).tolist() == rows


def test_of_more_than_256_terms_the_first_count() -> None:
    terms = [term(ZONE, "In", "nowhere")] * 255 + [term(ZONE, "In", "a"), term(ZONE, "In", "b")]
    required = decode(NodeSelector, {"nodeSelectorTerms": terms})

    assert reachable(CLUSTER.view(), required).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("topologies", "rows"),
    [
        ([], [1, 1, 1]),
        ([{ZONE: ["a", "b"]}], [1, 1, 0]),
        ([{ZONE: ["a"]}, {ZONE: ["b"]}], [1, 1, 0]),
        ([{ZONE: ["a"], "disk": ["x"]}], [0, 0, 0]),
        ([{}], [0, 0, 0]),
        ([{ZONE: []}], [0, 0, 0]),
        ([{ZONE: ["a", "b"], HOST: []}], [0, 0, 0]),
        ([{ZONE: ["a", "b"], HOST: ["n2", "n3"]}], [0, 1, 0]),
    ],
)
def test_allowed_topologies(topologies: Any, rows: list[int]) -> None:
    terms = a_class("s", topologies=topologies).allowed_topologies

    assert allowed(CLUSTER.view(), terms).tolist() == rows


@pytest.mark.parametrize(
    ("selector", "rows"),
    [
        (None, [0, 0, 0]),
        ({}, [1, 1, 1]),
        ({"matchLabels": {ZONE: "a"}}, [1, 0, 0]),
        ({"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}, [0, 1, 1]),
        ({"matchExpressions": [{"key": ZONE, "operator": "Like", "values": ["a"]}]}, [0, 0, 0]),
    ],
)
def test_node_topology_of_capacities(selector: Any, rows: list[int]) -> None:
    found = decode(LabelSelector, selector) if selector is not None else None

    assert selected(CLUSTER.view(), found).tolist() == rows
