"""Pod groups: their priority, whether they go whole, and where they are to stay together."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.workload import PodGroup


def a_group(**spec: Any) -> PodGroup:
    return decode(PodGroup, {"metadata": {"name": "crew"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "goes_whole"),
    [
        ({}, False),
        ({"disruptionMode": "Pod"}, False),
        ({"disruptionMode": "PodGroup"}, True),
        ({"disruptionMode": {"all": {}}}, True),
        ({"disruptionMode": {"single": {}}}, False),
    ],
)
def test_whether_none_of_its_pods_goes_without_the_others(spec: Any, goes_whole: bool) -> None:
    assert a_group(**spec).goes_whole == goes_whole


@pytest.mark.parametrize(
    ("constraints", "key"),
    [
        (None, ""),
        ({}, ""),
        ({"topology": []}, ""),
        ({"topology": [{"key": "zone"}]}, "zone"),
    ],
)
def test_the_label_whose_values_are_places_for_the_group(constraints: Any, key: str) -> None:
    spec = {} if constraints is None else {"schedulingConstraints": constraints}
    assert a_group(**spec).topology_key == key
