"""Nodes: what is broken in one is found while it is decoded."""

from typing import Any

import pytest

from asched.core.model.decode import MalformedObjectError, decode
from asched.core.model.node import Node


def a_node(**status: Any) -> Node:
    return decode(Node, {"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": status})


@pytest.mark.parametrize(
    "status", [{"allocatable": {"cpu": "1", "memory": "lots"}}, {"capacity": {"cpu": "many"}}]
)
def test_an_amount_that_is_none_makes_a_node_malformed(status: Any) -> None:
    with pytest.raises(MalformedObjectError, match="is not a number"):
        a_node(**status)
