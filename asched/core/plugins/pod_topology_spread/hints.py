"""Which changes may make a pod schedulable that its spread constraints rejected.

Rule    of pods: one that is placed (or nominated) in the pod's namespace and comes or goes with
        labels that a hard constraint counts, or whose labels change from counted to not counted or
        back; the pod itself, when its tolerations change and a constraint honours taints.
        Of nodes: one that has all topology keys comes or goes; an update that gains or loses them,
        moves the node to another domain, or changes its taints.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/plugin.go
"""

from collections.abc import Collection, Hashable

from asched.core.framework.points import Hint
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.label_keys import offered_labels, sought_labels
from asched.core.plugins.pod_topology_spread.constraints import Constraints


def hint_of_pod(constraints: Constraints, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """`constraints` are the hard ones of the waiting `pod`."""
    if any(other is not None and not _is_involved(other, pod) for other in (old, new)):
        return Hint.SKIP
    if old is not None and new is not None:
        return _hint_of_update(constraints, pod, old, new)
    changed = old or new
    counts = changed is not None and any(c.matches(changed.labels) for c in constraints)
    return Hint.QUEUE if counts else Hint.SKIP


def hint_of_node(constraints: Constraints, old: Node | None, new: Node | None) -> Hint:
    """`constraints` are the hard ones of the waiting pod."""
    keys = [constraint.topology_key for constraint in constraints]
    had = old is not None and all(key in old.labels for key in keys)
    has = new is not None and all(key in new.labels for key in keys)
    if old is None or new is None:
        return Hint.QUEUE if had or has else Hint.SKIP
    if had != has:
        return Hint.QUEUE
    moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
    changed = moved or (old.spec.taints or ()) != (new.spec.taints or ())
    return Hint.QUEUE if has and changed else Hint.SKIP


def pod_may_help(constraints: Constraints, pod: Pod, old: Pod, new: Pod) -> bool:
    """A change that the hint overlooks: a counted pod that starts to terminate no longer counts;
    without the labels that services selected, the waiting pod has no constraints any more.
    """
    if new.uid == pod.uid:
        return not constraints
    if not _is_involved(new, pod) or old.is_terminating or not new.is_terminating:
        return False
    return any(c.matches(old.labels) for c in constraints)


def node_may_help(constraints: Constraints, old: Node, new: Node) -> bool:
    """A change that the hint overlooks: a node with all keys that the pod's own node affinity
    starts or stops selecting.
    """
    if not any(constraint.honors_affinity for constraint in constraints):
        return False
    keys = [constraint.topology_key for constraint in constraints]
    return any(all(key in node.labels for key in keys) for node in (old, new))


def sought_of_pods(constraints: Constraints, pod: Pod) -> Collection[Hashable] | None:
    """Keys of the pod changes that concern the waiting `pod` with these hard constraints: labels
    that any of them counts.
    """
    near = (pod.metadata.namespace,)
    keys: list[Hashable] = []
    for constraint in constraints:
        sought = sought_labels(near, constraint.selector)
        if sought is None:
            return near
        keys += sought
    return keys


def offered_by_pods(old: Pod | None, new: Pod | None) -> Collection[Hashable]:
    """Keys that a new, deleted or changed pod offers to waiting pods: none for a new pod without a
    node.
    """
    if old is None and new is not None and not _has_place(new):
        return ()
    keys: list[Hashable] = []
    for other in (old, new):
        if other is not None:
            keys.append(other.metadata.namespace)
            if other.metadata.labels:
                keys += offered_labels(other)
    return keys


def _hint_of_update(constraints: Constraints, pod: Pod, old: Pod, new: Pod) -> Hint:
    tolerates_anew = (old.spec.tolerations or ()) != (new.spec.tolerations or ())
    if new.uid == pod.uid and tolerates_anew and any(c.honors_taints for c in constraints):
        return Hint.QUEUE
    flips = any(c.matches(old.labels) != c.matches(new.labels) for c in constraints)
    return Hint.QUEUE if flips else Hint.SKIP


def _is_involved(other: Pod, pod: Pod) -> bool:
    if other.uid == pod.uid:
        return True
    return _has_place(other) and other.metadata.namespace == pod.metadata.namespace


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
