"""From mappings to records; one that is malformed is named."""

import pytest

from asched.core.model.decode import MalformedObjectError, decode
from asched.core.model.node import Node


def test_what_is_malformed_is_named_with_its_place() -> None:
    with pytest.raises(MalformedObjectError, match=r"Node 'n1': .*\$\.spec\.unschedulable"):
        decode(Node, {"metadata": {"name": "n1"}, "spec": {"unschedulable": "yes"}})
    with pytest.raises(MalformedObjectError, match=r"Node '\?'"):
        decode(Node, {"spec": 1})
    with pytest.raises(MalformedObjectError, match=r"Node '\?'"):
        decode(Node, [])  # type: ignore[arg-type]
