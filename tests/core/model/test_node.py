"""Nodes: what is broken in one is found while it is decoded."""

from typing import Any

import pytest

from asched.core.model.decode import MalformedObjectError, decode
from asched.core.model.node import Node
from asched.core.model.pod import NO_LABELS


def a_node(**status: Any) -> Node:
    return decode(Node, {"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": status})


@pytest.mark.parametrize(
    "status", [{"allocatable": {"cpu": "1", "memory": "lots"}}, {"capacity": {"cpu": "many"}}]
)
def test_an_amount_that_is_none_makes_a_node_malformed(status: Any) -> None:
    with pytest.raises(MalformedObjectError, match="is not a number"):
        a_node(**status)


def test_a_node_is_known_by_its_name() -> None:
    node = a_node(allocatable={"cpu": "1"}, capacity={})
    assert (node.key, node.name, node.labels) == ("n1", "n1", {"a": "b"})
    assert decode(Node, {"metadata": {"name": "bare"}}).labels is NO_LABELS
