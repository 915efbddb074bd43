"""Which rows the selectors of storage objects accept."""

from typing import Any, Final

import numpy as np
import pytest

from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import NodeSelector
from asched.core.model.volume import StorageClass
from asched.core.plugins.volumes.topology import WIDE_MAX, Reach, allowed, reachable, selected
from asched.core.state.budget import OutOfTurn
from asched.core.state.gradual import FEW
from asched.core.state.view import NodeView
from tests.volume_builders import HOST, ZONE, a_class, a_cluster, a_node, lose

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


@pytest.mark.parametrize(("terms", "rows"), TERMS)
def test_ten_thousand_terms_are_judged_as_far_as_the_budget_goes(
    terms: list[dict[str, Any]], rows: list[int]
) -> None:
    cluster = a_cluster(a_node("n1", "a"), a_node("n2", "b"), a_node("n3"))
    many = [{}, term(ZONE, "In", "nowhere"), term("disk", "Gt", "x")] * 100
    required = decode(NodeSelector, {"nodeSelectorTerms": [*many, *terms]})
    two = np.array((2, 0), dtype=np.int32)
    slices = 0
    while True:
        cluster.budget.open(20)
        slices += 1
        try:  # an attempt that asks twice begins with the first each time
            found = [
                cluster.singleton(Reach).of(view, required).tolist()
                for view in (cluster.view(), NodeView(cluster.nodes, two))
            ]
        except OutOfTurn:
            assert slices < 1000
            continue
        break

    assert slices > 10
    assert found == [rows, [rows[2], rows[0]]]


@pytest.mark.parametrize(("terms", "rows"), TERMS)
def test_many_terms_are_judged_at_once_for_one_row(
    terms: list[dict[str, Any]], rows: list[int]
) -> None:
    required = decode(NodeSelector, {"nodeSelectorTerms": [{}] * 300 + terms})
    views = [NodeView(CLUSTER.nodes, np.array((row,), dtype=np.int32)) for row in range(3)]

    found = [CLUSTER.singleton(Reach).of(view, required).tolist() for view in views]

    assert found == [[row] for row in rows]


def many_terms(count: int) -> NodeSelector:
    terms = [term(ZONE, "In", "nowhere")] * (count - 1) + [term(ZONE, "In", "a")]
    return decode(NodeSelector, {"nodeSelectorTerms": terms})


def test_terms_are_few_up_to_some_number_and_then_cost_steps() -> None:
    cluster = a_cluster(a_node("n1", "a"), a_node("n2", "b"))
    reach, few, more = cluster.singleton(Reach), many_terms(FEW), many_terms(FEW + 1)
    cluster.budget.open(0)
    assert reach.of(cluster.view(), few).tolist() == [True, False]
    assert reach.of(cluster.view(), None).all()
    assert not reach.of(cluster.view(), NodeSelector(node_selector_terms=None)).any()
    with pytest.raises(OutOfTurn):
        reach.of(cluster.view(), more)
    cluster.budget.close()
    assert reach.of(cluster.view(), more).tolist() == [True, False]


def test_compiled_terms_judge_one_row_for_nothing_and_a_row_without_a_node_at_all() -> None:
    cluster = a_cluster(a_node("n1", "a"), a_node("n2", "b"))
    reach, required = cluster.singleton(Reach), many_terms(FEW + 1)
    one = [NodeView(cluster.nodes, np.array((row,), dtype=np.int32)) for row in range(2)]
    reach.of(one[0], required)

    cluster.budget.open(0)
    assert [reach.of(view, required).tolist() for view in one] == [[True], [False]]
    cluster.budget.close()
    lose(cluster, a_node("n1", "a"))
    assert [len(reach.of(view, required)) for view in one] == [1, 1]


def test_all_rows_of_a_cluster_with_one_node() -> None:
    cluster = a_cluster(a_node("n1", "a"))

    assert cluster.singleton(Reach).of(cluster.view(), many_terms(FEW + 1)).tolist() == [True]


def test_of_wide_selectors_those_that_were_asked_about_last_stay_compiled() -> None:
    cluster = a_cluster(a_node("n1", "a"))
    reach = cluster.singleton(Reach)
    view = NodeView(cluster.nodes, np.array((0,), dtype=np.int32))
    selectors = [many_terms(FEW + 1 + number) for number in range(WIDE_MAX + 1)]
    for required in selectors[:WIDE_MAX]:
        reach.of(view, required)
    reach.of(view, selectors[0])
    reach.of(view, selectors[WIDE_MAX])

    cluster.budget.open(0)
    for required in (selectors[0], *selectors[2:]):
        assert reach.of(view, required).tolist() == [True]
    with pytest.raises(OutOfTurn):
        reach.of(view, selectors[1])


def test_no_affinity_is_reachable_from_everywhere() -> None:
    assert reachable(CLUSTER.view(), None).all()


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


@pytest.mark.parametrize("term", [{}, {"matchLabelExpressions": [{"key": ZONE}]}])
def test_an_allowed_topology_that_says_nothing_allows_nothing(term: Any) -> None:
    terms = decode(StorageClass, {"metadata": {"name": "s"}, "allowedTopologies": [term]})

    assert not allowed(CLUSTER.view(), terms.allowed_topologies).any()


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
