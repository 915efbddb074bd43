"""Decoding by the table of types: pruning, unknown fields, canonical values, wrong types."""

import pytest

from asched_lab.apiserver import schema
from asched_lab.apiserver.resources import PODS


def test_unknown_fields_are_named_by_path() -> None:
    _, unknown = schema.decode(
        PODS, {"spec": {"containers": [{"name": "c", "x": 1}], "y": 2}, "z": 3}
    )
    assert unknown == ["spec.containers[0].x", "spec.y", "z"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x"},
        {"containers": [{"name": 1}]},
        {"priority": "high"},
        {"priority": 2**31},
        {"nodeSelector": ["a"]},
        {"overhead": {"cpu": "lots"}},
    ],
)
def test_wrong_types_are_refused(spec: dict) -> None:
    with pytest.raises(schema.DecodeError):
        schema.decode(PODS, {"spec": spec})
