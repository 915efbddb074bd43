"""Changes: what a fact altered, in the terms of the queue (upstream: cluster events).

A change is a resource and an action. One fact can cause several: a node update causes one for each
aspect that differs, in a fixed order, and none for a heartbeat.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/events.go,
        pkg/scheduler/eventhandlers.go
"""

from collections.abc import Mapping
from enum import IntFlag
from typing import Final, NamedTuple

from msgspec import Struct

from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import parse


class Action(IntFlag):
    """Bits of an action; their numeric order is part of matching."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191

    #: An enum's hash is a Python function, and every change is looked up by its action.
    __hash__ = int.__hash__


#: As upstream spells them, in upper camel case.
ACTION_TEXT: Final[Mapping[Action, str]] = {
    action: name.title().replace("_", "") for name, action in Action.__members__.items()
}

#: Resources of changes besides the names of kinds: pods with and without a node, and the wildcard.
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
WILDCARD: Final = "*"


class Trigger(NamedTuple):
    """(resource, action): what happened, or what a plugin registered for; `label` is its name in
    metrics.
    """

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        return self.custom_label or self.resource + ACTION_TEXT.get(self.action, "")

    @property
    def is_wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == Action.ALL

    def matches(self, incoming: "Trigger") -> bool:
        """Whether an incoming trigger matches this registration."""
        same = self.resource in (WILDCARD, incoming.resource) or (
            self.resource == POD.resource and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action


SCHEDULE_ATTEMPT_FAILURE: Final = Trigger(WILDCARD, Action.ALL, "ScheduleAttemptFailure")
BACKOFF_COMPLETE: Final = Trigger(WILDCARD, Action.ALL, "BackoffComplete")
POP_FROM_BACKOFF_Q: Final = Trigger(WILDCARD, Action.ALL, "PopFromBackoffQ")
FORCE_ACTIVATE: Final = Trigger(WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT: Final = Trigger(WILDCARD, Action.ALL, "UnschedulableTimeout")
ASSIGNED_POD_ADD: Final = Trigger(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE: Final = Trigger(ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD: Final = Trigger(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE: Final = Trigger(UNSCHEDULABLE_POD, Action.UPDATE)
NODE_ADD: Final = Trigger(NODE.resource, Action.ADD)
#: A promise to a waiting pod was withdrawn or moved to another time.
RESERVATION_MOVED: Final = Trigger("Reservation", Action.DELETE)


class Change(Struct, frozen=True, gc=False):
    """One trigger with the versions of the object: None where it did not exist, or is not passed
    on.
    """

    trigger: Trigger
    old: Record | None = None
    new: Record | None = None
    #: Only pods of at most this priority are concerned (a withdrawn nomination); None for all.
    priority_at_most: int | None = None
    #: Upstream has no such change: it is treated as an extra event.
    only_if_fits: bool = False
    #: `old` is one of several equal pods that left: other nodes than its own have room, too.
    is_of_many: bool = False


def node_actions(old: Node, new: Node) -> list[Action]:
    """The aspects in which two versions of a node differ, in upstream's order; none for a
    heartbeat.
    """
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _amounts(old.status.allocatable) != _amounts(new.status.allocatable):
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        actions.append(Action.UPDATE_NODE_LABEL)
    if (old.spec.taints or ()) != (new.spec.taints or ()):
        actions.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if (old.status.declared_features or ()) != (new.status.declared_features or ()):
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return actions


def _amounts(resources: Mapping[str, str | int | float] | None) -> dict[str, object]:
    return {name: parse(amount) for name, amount in (resources or {}).items()}


def _conditions(node: Node) -> dict[str, str]:
    return {c.type: c.status for c in node.status.conditions or ()}


def pod_actions(old: Pod, new: Pod, scaled_down: bool) -> list[Action]:
    """The aspects in which two versions of a pod differ; `[UPDATE]` without any.

    `scaled_down` says whether any request of the pod decreased (see `model/requests.py`).
    """
    actions = []
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        actions.append(Action.UPDATE_POD_LABEL)
    if scaled_down:
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (old.status.resource_claim_statuses or ()) != (new.status.resource_claim_statuses or ()):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions or [Action.UPDATE]
