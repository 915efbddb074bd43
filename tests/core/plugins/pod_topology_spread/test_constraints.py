"""Compiling constraints: defaults of fields, label keys, what counts."""

from typing import Any

import pytest

from asched.core.config.args import PodTopologySpreadArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.model.selector import EVERYTHING, equality_selector
from asched.core.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    KEYS_PER_STEP,
    SCHEDULE_ANYWAY,
    SpreadConstraint,
    compiling,
    default_constraints,
    defaults_of,
    own_constraints,
)
from asched.core.state.budget import Budget
from tests.topology_world import HOST, ZONE, a_pod, spread


def one(labels: str = "app=web tier=x", **more: Any) -> SpreadConstraint:
    pod = a_pod("p", labels, topologySpreadConstraints=[spread("zone", **more)])
    (constraint,) = own_constraints(pod, DO_NOT_SCHEDULE)
    return constraint


def test_fields_left_out() -> None:
    constraint = one()

    assert (constraint.min_domains, constraint.honors_affinity, constraint.honors_taints) == (
        1,
        True,
        False,
    )


def test_fields_given() -> None:
    constraint = one(minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")

    assert (constraint.min_domains, constraint.honors_affinity, constraint.honors_taints) == (
        3,
        False,
        True,
    )


def test_label_keys_the_pod_has_are_added_once() -> None:
    assert one(matchLabelKeys=["tier", "gone"]).selector == one(on="app=web tier=x").selector
    assert one(matchLabelKeys=["app"]).selector == one().selector


def test_each_action_has_its_own() -> None:
    written = [spread("zone"), spread("host", soft=True), spread("rack")]
    pod = a_pod("p", topologySpreadConstraints=written)

    hard = own_constraints(pod, DO_NOT_SCHEDULE)

    assert [constraint.topology_key for constraint in hard] == [ZONE, "example.com/rack"]
    assert [c.topology_key for c in own_constraints(pod, SCHEDULE_ANYWAY)] == [HOST]


def test_what_is_counted() -> None:
    key = one().counter_key("default")
    everything = one(on="").counter_key("default")

    assert one(on=None).counter_key("default") is None
    assert key is not None
    assert key.predicates[0].namespaces == frozenset({"default"})
    assert (key.counts_terminating, key.on_trial_only) == (False, False)
    assert everything is not None
    assert everything.on_trial_only


def test_the_system_defaults() -> None:
    selector = equality_selector({"app": "web"})
    soft = default_constraints(defaults_of(PodTopologySpreadArgs()), selector, SCHEDULE_ANYWAY)

    assert [(c.topology_key, c.max_skew, c.selector) for c in soft] == [
        (HOST, 3, selector),
        (ZONE, 5, selector),
    ]
    assert (
        default_constraints(defaults_of(PodTopologySpreadArgs()), selector, DO_NOT_SCHEDULE) == ()
    )


def test_a_senseless_operator_is_told() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    pod = a_pod("p", topologySpreadConstraints=[{**spread("zone"), "labelSelector": bad}])

    with pytest.raises(ValueError, match='"Like" is not a valid label selector operator'):
        own_constraints(pod, DO_NOT_SCHEDULE)


def test_no_selector_matches_no_pod_and_an_empty_one_all() -> None:
    assert not one(on=None).matches({"app": "web"})
    assert one(on="").matches({})
    assert one(on="").selector == EVERYTHING


def test_thousands_of_label_keys_are_noted_and_what_follows_has_to_wait() -> None:
    keys = [f"l{i}" for i in range(20 * KEYS_PER_STEP)]
    written = spread("zone", matchLabelKeys=keys)
    pod = a_pod("p", " ".join(f"{key}=v" for key in keys), topologySpreadConstraints=[written])
    budget = Budget()
    budget.open(10)

    made = compiling(pod, DO_NOT_SCHEDULE, DEFAULT_GATES, budget).all()

    assert made[0].selector is not None
    assert len(made[0].selector.requirements) == len(keys) + 1
    assert budget.is_used_up
