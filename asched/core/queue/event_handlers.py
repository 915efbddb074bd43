"""Event handlers: derive the steps of the queue from a change of an object.

Turns (kind, old, new) of a watched object into steps, in order, and changes nothing itself. The
cluster's state is updated before the steps are carried out, so that hints see the new state.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/eventhandlers.go
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from asched.core.cluster.changes import (
    ASSIGNED_POD,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_POD,
    Action,
    Change,
    Trigger,
    node_actions,
    pod_actions,
)
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.requests import is_scaled_down


class Enqueue(Struct, frozen=True, gc=False):
    """A pod of one of our profiles appeared without a node: `queue.add`. `is_announced`:
    unschedulable pods are notified after it is queued.
    """

    pod: Pod
    is_announced: bool = False


class Refresh(Struct, frozen=True, gc=False):
    """A waiting pod has a new version: `queue.update`."""

    old: Pod
    new: Pod


class Withdraw(Struct, frozen=True, gc=False):
    """A waiting pod was deleted or placed: `queue.delete`."""

    pod: Pod


class Release(Struct, frozen=True, gc=False):
    """An assumed pod was deleted before its binding is confirmed.

    If it waits at Permit, it is rejected there, else its place is given back.
    """

    pod: Pod


class Announce(Struct, frozen=True, gc=False):
    """Unschedulable pods are notified of a change: `queue.move`."""

    change: Change


class ForeignNomination(Struct, frozen=True, gc=False):
    """A waiting pod of another scheduler, one version of which has a nominated node: other pods
    must respect its nomination.
    """

    old: Pod | None
    new: Pod


Step = Enqueue | Refresh | Withdraw | Release | ForeignNomination | Announce

NODE_TRIGGERS: Final = {action: Trigger(NODE.resource, action) for action in Action}


def pod_triggers(old: Pod, new: Pod) -> list[Trigger]:
    """One trigger for each aspect in which two versions of a pod differ; at least one."""
    resource = ASSIGNED_POD if new.spec.node_name else UNSCHEDULABLE_POD
    actions = pod_actions(old, new, scaled_down=is_scaled_down(old, new))
    return [Trigger(resource, action) for action in actions]


def steps(
    kind: Kind,
    old: Record | None,
    new: Record | None,
    *,
    owns: Callable[[Pod], bool],
    is_assumed: Callable[[str], bool],
    announces_arrivals: bool = False,
) -> list[Step]:
    """The steps for an object that was added (no old), changed, or deleted (no new).

    An assumed pod is ours, even if its profile was removed.

    `old` is the version known before. `owns`: whether a profile has the pod's scheduler name;
    `is_assumed`: whether the pod with this uid has a place that no watch has confirmed.
    `announces_arrivals`: unschedulable pods are also notified of new pods without a node, which
    upstream does for gangs only.
    """
    if kind is POD:
        assert old is None or isinstance(old, Pod)
        assert new is None or isinstance(new, Pod)
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            steps = _pod_steps(old, None, owns, is_assumed)
            old = None
        else:
            steps = []
        steps += _pod_steps(old, new, owns, is_assumed, announces_arrivals=announces_arrivals)
        return steps
    if kind is NODE and old is not None and new is not None:
        assert isinstance(old, Node)
        assert isinstance(new, Node)
        return [Announce(Change(NODE_TRIGGERS[a], old, new)) for a in node_actions(old, new)]
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    return [Announce(Change(Trigger(kind.resource, action), old, new))]


def _pod_steps(
    old: Pod | None,
    new: Pod | None,
    owns: Callable[[Pod], bool],
    is_assumed: Callable[[str], bool],
    *,
    announces_arrivals: bool = False,
) -> list[Step]:
    if new is None:
        return _gone(old, owns, is_assumed) if old is not None else []
    if old is not None and old.spec.node_name:
        return [Announce(Change(trigger, old, new)) for trigger in pod_triggers(old, new)]
    is_ours = owns(new) or is_assumed(new.uid)
    if new.spec.node_name:
        placed: list[Step] = [Announce(Change(ASSIGNED_POD_ADD, None, new))]
        if old is not None and (is_ours or old.status.nominated_node_name):
            placed.append(Withdraw(old))
        return placed
    if not is_ours:  # upstream ignores nominations by other schedulers
        named = [pod for pod in (old, new) if pod is not None and pod.status.nominated_node_name]
        return [ForeignNomination(old, new)] if named else []
    if old is None:
        return [Enqueue(new, announces_arrivals)]
    return _still_waiting(old, new, is_assumed)


def _still_waiting(old: Pod, new: Pod, is_assumed: Callable[[str], bool]) -> list[Step]:
    if old.metadata.resource_version == new.metadata.resource_version:
        return []
    if is_assumed(new.uid):
        starts_to_end = new.is_terminating and not old.is_terminating
        return _released(new) if starts_to_end else []
    refresh: list[Step] = [Refresh(old, new)]
    was = old.status.nominated_node_name
    if was and was != new.status.nominated_node_name:
        refresh.append(_nomination_ended(old))
    return refresh


def _gone(old: Pod, owns: Callable[[Pod], bool], is_assumed: Callable[[str], bool]) -> list[Step]:
    if old.spec.node_name:
        return [Announce(Change(ASSIGNED_POD_DELETE, old, None))]
    if not owns(old) and not is_assumed(old.uid):
        return [Withdraw(old)] if old.status.nominated_node_name else []
    withdraw: list[Step] = [Withdraw(old)]
    if is_assumed(old.uid):
        return withdraw + _released(old)
    if old.status.nominated_node_name:
        withdraw.append(_nomination_ended(old))
    return withdraw


def _released(pod: Pod) -> list[Step]:
    return [Release(pod), Announce(Change(ASSIGNED_POD_DELETE, pod, None))]


def _nomination_ended(old: Pod) -> Step:
    """Announce that a nominated node is free again for pods that had to respect the nomination."""
    return Announce(Change(ASSIGNED_POD_DELETE, old, None, priority_at_most=old.priority))
