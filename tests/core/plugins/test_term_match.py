"""Terms over views: columns and rows say the same as one node at a time."""

from random import Random

import numpy as np
import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.selector import NodeSelectorTerm, compile_term
from asched.core.plugins.term_match import (
    match_any,
    match_labels,
    match_term,
)
from asched.core.state.facts import Seen
from asched.core.state.view import NodeView
from tests.builders import a_cluster, a_node, all_rows, term

REQUIREMENTS = (
    "zone In a,b", "zone NotIn a,c", "zone Exists", "zone DoesNotExist", "size Gt 2", "size Lt -1",
    "zone Gt 1", "none In x", "none NotIn x", "size In", "size Gt 1,2", "zone Likes a",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_a_term_selects_the_rows_of_the_nodes_it_matches(seed: int) -> None:
    random = Random(seed)
    nodes = []
    for number in range(12):
        node = a_node(f"n{number}")
        for key, values in (
            ("zone", ("a", "b", "c", "")),
            ("size", ("-5", "1", "3", "+4", "many")),
        ):
            if random.random() < 0.7:
                node.labels({key: random.choice(values)})
        nodes.append(node)
    cluster = a_cluster(*nodes)
    fields = ["metadata.name In n3"] if seed % 3 == 0 else []
    mapping = term(*random.sample(REQUIREMENTS, random.randint(0, 2)), fields=fields)
    compiled = compile_term(decode(NodeSelectorTerm, mapping))

    whole = match_term(all_rows(cluster), compiled)

    records = [node.build() for node in nodes]
    assert whole.tolist() == [compiled.matches(n.name, n.labels) for n in records]
    rows = np.array([7, 3, 0], dtype=np.int32)
    assert match_term(NodeView(cluster.nodes, rows), compiled).tolist() == whole[rows].tolist()


def test_no_term_selects_nothing_and_no_label_everything() -> None:
    view = all_rows(a_cluster(a_node("n1")))

    assert match_any(view, ()).tolist() == [False]
    assert match_labels(view, ()).tolist() == [True]


def test_a_value_that_appears_later_is_noticed() -> None:
    cluster = a_cluster(a_node("n1").labels(size="1"))
    large = compile_term(decode(NodeSelectorTerm, term("size Gt 5")))
    assert match_term(all_rows(cluster), large).tolist() == [False]

    cluster.apply(Seen(NODE, a_node("n2").labels(size="9").build()))

    assert match_term(all_rows(cluster), large).tolist() == [False, True]
