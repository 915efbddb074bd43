"""Changes in upstream's words: which aspects differ, and who is interested in them."""

from typing import Any

import pytest

from asched.core.state.changes import (
    ASSIGNED_POD,
    ASSIGNED_POD_ADD,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    Trigger,
    node_actions,
    pod_actions,
)
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod

NODE_UPDATES = (
    Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_CONDITION
    | Action.UPDATE_NODE_ANNOTATION
    | Action.UPDATE_NODE_DECLARED_FEATURE
)


def test_update_is_all_updates_and_all_is_everything() -> None:
    updates = [a for a in Action if a.name is not None and a.name.startswith("UPDATE_")]
    assert sum(updates) == Action.UPDATE
    assert Action.UPDATE | Action.ADD | Action.DELETE == Action.ALL


def conditions(**statuses: str) -> list[dict[str, str]]:
    return [{"type": type_, "status": status} for type_, status in statuses.items()]


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (a_node("n"), a_node("n"), []),
        (a_node("n").cordoned(), a_node("n"), [Action.UPDATE_NODE_TAINT]),
        (a_node("n"), a_node("n").cordoned(), []),
        (a_node("n"), a_node("n").allocatable(cpu="65"), [Action.UPDATE_NODE_ALLOCATABLE]),
        (a_node("n").allocatable(cpu="1"), a_node("n").allocatable(cpu="1000m"), []),
        (a_node("n"), a_node("n").labels(a="b"), [Action.UPDATE_NODE_LABEL]),
        (a_node("n").labels({}), a_node("n"), []),
        (a_node("n").cordoned(), a_node("n").cordoned(), []),
        (a_node("n").labels(a="b"), a_node("n"), [Action.UPDATE_NODE_LABEL]),
        (a_node("n").features("X"), a_node("n"), [Action.UPDATE_NODE_DECLARED_FEATURE]),
        (
            a_node("n").metadata(annotations={"a": "b"}),
            a_node("n"),
            [Action.UPDATE_NODE_ANNOTATION],
        ),
        (a_node("n"), a_node("n").taints("a=b:NoSchedule"), [Action.UPDATE_NODE_TAINT]),
        (a_node("n").taints("a=b:NoSchedule"), a_node("n"), [Action.UPDATE_NODE_TAINT]),
        (
            a_node("n").status(conditions=conditions(Ready="True")),
            a_node("n").status(conditions=conditions(Ready="False")),
            [Action.UPDATE_NODE_CONDITION],
        ),
        (
            a_node("n").status(conditions=[{**conditions(Ready="True")[0], "message": "a"}]),
            a_node("n").status(conditions=[{**conditions(Ready="True")[0], "message": "b"}]),
            [],
        ),
        (
            a_node("n"),
            a_node("n").metadata(annotations={"a": "b"}),
            [Action.UPDATE_NODE_ANNOTATION],
        ),
        (a_node("n"), a_node("n").features("X"), [Action.UPDATE_NODE_DECLARED_FEATURE]),
        (
            a_node("n").cordoned(),
            a_node("n").features("X").taints("a=b:NoSchedule").allocatable(cpu="1").labels(a="b"),
            [
                Action.UPDATE_NODE_TAINT,
                Action.UPDATE_NODE_ALLOCATABLE,
                Action.UPDATE_NODE_LABEL,
                Action.UPDATE_NODE_TAINT,
                Action.UPDATE_NODE_DECLARED_FEATURE,
            ],
        ),
    ],
)
def test_what_differs_between_two_versions_of_a_node(
    old: NodeBuilder, new: NodeBuilder, actions: list[Action]
) -> None:
    assert node_actions(old.build(), new.build()) == actions


CLAIMED = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}


@pytest.mark.parametrize(
    ("old", "new", "scaled_down", "actions"),
    [
        (a_pod(), a_pod(), False, [Action.UPDATE]),
        (a_pod(), a_pod().labels(a="b"), False, [Action.UPDATE_POD_LABEL]),
        (a_pod().labels(a="b"), a_pod(), False, [Action.UPDATE_POD_LABEL]),
        (a_pod().status(**CLAIMED), a_pod(), False, [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM]),
        (a_pod(), a_pod(), True, [Action.UPDATE_POD_SCALE_DOWN]),
        (a_pod().gated("g"), a_pod(), False, [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]),
        (a_pod().gated("g h"), a_pod().gated("g"), False, [Action.UPDATE]),
        (a_pod(), a_pod().gated("g"), False, [Action.UPDATE]),
        (a_pod(), a_pod().tolerates("a"), False, [Action.UPDATE_POD_TOLERATION]),
        (a_pod().tolerates("a"), a_pod().tolerates("b"), False, [Action.UPDATE]),
        (a_pod(), a_pod().status(**CLAIMED), False, [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM]),
        (
            a_pod().gated("g"),
            a_pod().labels(a="b").tolerates("a"),
            True,
            [
                Action.UPDATE_POD_LABEL,
                Action.UPDATE_POD_SCALE_DOWN,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                Action.UPDATE_POD_TOLERATION,
            ],
        ),
    ],
)
def test_what_differs_between_two_versions_of_a_pod(
    old: PodBuilder, new: PodBuilder, scaled_down: bool, actions: list[Action]
) -> None:
    assert pod_actions(old.build(), new.build(), scaled_down) == actions


NODE_UPDATED = Trigger("Node", Action.UPDATE_NODE_LABEL)
EVERYTHING = Trigger(WILDCARD, Action.ALL)


@pytest.mark.parametrize(
    ("registered", "incoming", "is_of_interest"),
    [
        (Trigger("Node", Action.UPDATE_NODE_LABEL), NODE_UPDATED, True),
        (Trigger("Node", NODE_UPDATES), NODE_UPDATED, True),
        (Trigger("Node", Action.UPDATE_NODE_TAINT), NODE_UPDATED, False),
        (Trigger("Node", Action.ADD | Action.DELETE), NODE_UPDATED, False),
        (Trigger("Pod", Action.ALL), NODE_UPDATED, False),
        (EVERYTHING, NODE_UPDATED, True),
        (EVERYTHING, SCHEDULE_ATTEMPT_FAILURE, True),
        (Trigger("Node", Action.ALL), SCHEDULE_ATTEMPT_FAILURE, False),
        (Trigger(WILDCARD, Action.ADD), SCHEDULE_ATTEMPT_FAILURE, False),
        (Trigger(WILDCARD, Action.ADD), ASSIGNED_POD_ADD, True),
        (Trigger("Pod", Action.ADD), ASSIGNED_POD_ADD, True),
        (Trigger("Pod", Action.ADD), Trigger(UNSCHEDULABLE_POD, Action.ADD), True),
        (Trigger(ASSIGNED_POD, Action.ADD), ASSIGNED_POD_ADD, True),
        (Trigger(ASSIGNED_POD, Action.ADD), Trigger(UNSCHEDULABLE_POD, Action.ADD), False),
        # Both bits are asked for; the larger number is not within the smaller one.
        (Trigger("Node", Action.ADD), Trigger("Node", Action.ADD | Action.DELETE), False),
    ],
)
def test_a_registration_is_interested_in_what_it_names(
    registered: Trigger, incoming: Trigger, is_of_interest: bool
) -> None:
    assert registered.matches(incoming) == is_of_interest


def test_labels_are_those_of_upstream_s_metrics() -> None:
    said: list[Any] = [
        NODE_UPDATED.label,
        ASSIGNED_POD_ADD.label,
        SCHEDULE_ATTEMPT_FAILURE.label,
        Trigger("Node", Action.ADD | Action.DELETE).label,
    ]
    assert said == ["NodeUpdateNodeLabel", "AssignedPodAdd", "ScheduleAttemptFailure", "Node"]
    assert EVERYTHING.is_wildcard
    assert not Trigger(WILDCARD, Action.ADD).is_wildcard
    assert not Trigger("Node", Action.ALL).is_wildcard
