"""Compiling constraints: defaults of fields, label keys, what counts."""

from typing import Any

import pytest

from asched.core.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SpreadConstraint,
    own_constraints,
)
from tests.topology_builders import a_pod, spread


def one(labels: str = "app=web tier=x", **more: Any) -> SpreadConstraint:
    pod = a_pod("p", labels, topologySpreadConstraints=[spread("zone", **more)])
    (constraint,) = own_constraints(pod, DO_NOT_SCHEDULE)
    return constraint


def test_what_is_counted() -> None:
    key = one().counter_key("default")
    everything = one(on="").counter_key("default")

    assert one(on=None).counter_key("default") is None
    assert key is not None
    assert key.predicates[0].namespaces == frozenset({"default"})
    assert (key.counts_terminating, key.on_trial_only) == (False, False)
    assert everything is not None
    assert everything.on_trial_only


def test_a_senseless_operator_is_told() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    pod = a_pod("p", topologySpreadConstraints=[{**spread("zone"), "labelSelector": bad}])

    with pytest.raises(ValueError, match='"Like" is not a valid label selector operator'):
        own_constraints(pod, DO_NOT_SCHEDULE)
