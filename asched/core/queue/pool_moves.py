"""Let another profile decide for pods that came to another pool: their namespace, or the node that
they are pinned to, has changed its labels.

Unschedulable and gated pods are tried again here, since the plugins that rejected them may not be
those of the new profile. Pods that are ready or back off are compared with their pool when they are
popped, pods in flight when they return (`queue.py`).
"""

from collections.abc import Iterator
from typing import Final

from asched.core.cluster.changes import Action, Change
from asched.core.cluster.pools import labels_of
from asched.core.framework.pool_profiles import PoolProfiles
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.node import Node
from asched.core.model.workload import Namespace
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.heap import CHECK_STEPS
from asched.core.queue.queue import SchedulingQueue

#: The kinds of objects whose labels say which pool a pod belongs to.
SELECTED: Final = frozenset((NAMESPACE.resource, NODE.resource))


def follow_pools(queue: SchedulingQueue, change: Change, now_s: float) -> None:
    """Find the unschedulable pods for which another profile decides since this change of a
    namespace or a node.
    """
    profiles = queue.gangs.profile_of
    if isinstance(profiles, PoolProfiles) and _may_move_pods(profiles, change):
        queue.sliced_work.do(_following(queue, profiles, now_s))


def _may_move_pods(profiles: PoolProfiles, change: Change) -> bool:
    action, old, new, pools = change.trigger.action, change.old, change.new, profiles.pools
    if change.trigger.resource == NAMESPACE.resource:
        either = old if new is None else new
        assert isinstance(either, Namespace)
        before, now = labels_of(old), labels_of(new)
        of_namespace, name = pools.rules.of_namespace, either.metadata.name
        return of_namespace(name, before) != of_namespace(name, now)
    if action is Action.ADD and isinstance(new, Node):
        is_awaited = new.name in profiles.awaited
        profiles.awaited.discard(new.name)
        return is_awaited
    if action is not Action.UPDATE_NODE_LABEL:
        return False
    assert isinstance(old, Node)
    assert isinstance(new, Node)
    return pools.with_labels(old.labels) != pools.with_labels(new.labels)


def _following(queue: SchedulingQueue, profiles: PoolProfiles, now_s: float) -> Iterator[None]:
    note = queue.sliced_work.budget.note
    for queued in tuple(queue.places.unschedulable):
        note(CHECK_STEPS)
        if queued.rejector_group is not None and profiles(queued.pod) != queued.profile:
            queue.change_profile(queued, now_s)
            note(WAKE_STEPS)
        yield
