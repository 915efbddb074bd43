"""Nominations: nodes on which waiting pods have been promised room.

Preemption, or an external component, nominates a node for a pod. Until the pod is placed there,
pods of lower or equal priority must leave that room free. A nomination made here precedes the API:
an update of the pod without it does not remove it.

Nominations by other schedulers are respected by the same rule, as far as the statuses of their pods
show them; they are never withdrawn here.

Bounds  one node per waiting pod.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/nominator.go
"""

from collections.abc import Callable, Mapping

from asched.core.cluster.change_logs import ObjectLog
from asched.core.model.kinds import NODE
from asched.core.model.pod import Pod


class Nominator:
    """`pod_now` returns a pod by its key, as last received from the API, or None."""

    def __init__(self, pod_now: Callable[[str], Pod | None]) -> None:
        self._pod_now = pod_now
        #: uid of a nominated pod -> node; read-only
        self.by_uid: dict[str, str] = {}
        #: the node to which the pod with this uid is nominated, or None
        self.node_of: Callable[[str], str | None] = self.by_uid.get
        self._pods_on: dict[str, dict[str, Pod]] = {}
        self._of_others: set[str] = set()
        #: Grows with every change, so that readers can check the validity of copies.
        self.generation = 0
        #: ... and the nodes concerned.
        self.log = ObjectLog()

    def __len__(self) -> int:
        return len(self.by_uid)

    def on(self, node: str) -> Mapping[str, Pod]:
        """Pods nominated to a node by uid, in order of nomination."""
        return self._pods_on.get(node, {})

    def of_others(self, uid: str) -> bool:
        """Whether the pod was nominated by another scheduler."""
        return uid in self._of_others

    def nodes(self) -> Mapping[str, Mapping[str, Pod]]:
        """Every node with nominated pods. Must not be stored: it changes."""
        return self._pods_on

    def add(self, pod: Pod, node: str | None = None) -> None:
        """Replace the nomination: None uses the pod's status, "" withdraws the nomination."""
        if pod.metadata.uid in self.by_uid:
            self.delete(pod.metadata.uid)
        nominated = pod.status.nominated_node_name if node is None else node
        if not nominated:
            return
        now = self._pod_now(pod.key)
        if now is None or now.uid != pod.uid or now.spec.node_name:
            return  # deleted, recreated or placed: the nomination would never be removed
        self.by_uid[pod.uid] = nominated
        self._pods_on.setdefault(nominated, {})[pod.uid] = pod
        self._touch(nominated)

    def add_of_others(self, pod: Pod) -> None:
        """Use the present status of another scheduler's pod."""
        self.add(pod)
        if pod.uid in self.by_uid:
            self._of_others.add(pod.uid)

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has a new version; a nomination in neither version stays."""
        kept = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self.by_uid.get(old.uid)
        self.add(new, kept)

    def delete(self, uid: str) -> None:
        """The pod is assumed, bound or deleted. Unknown pods are ignored."""
        node = self.by_uid.pop(uid, None)
        if node is None:
            return
        self._of_others.discard(uid)
        pods = self._pods_on[node]
        del pods[uid]
        if not pods:
            del self._pods_on[node]
        self._touch(node)

    def _touch(self, node: str) -> None:
        self.generation += 1
        self.log.add(NODE.resource, node)
