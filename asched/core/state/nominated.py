"""Nominations: nodes on which waiting pods have been promised room.

Preemption, or somebody outside, says on which node a pod is about to fit. Until it is placed there,
pods of lower or equal priority must leave that room alone. A nomination made here goes ahead of the
API: an update of the pod that does not know of it yet leaves it in place.

What other schedulers promised to their pods is respected by the same rule, as far as the pods' own
status tells of it; nothing of it is ours to take back.

Bounds  one node per waiting pod.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/nominator.go
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from asched.core.model.kinds import NODE
from asched.core.model.pod import Pod
from asched.core.state.change_log import ObjectLog

if TYPE_CHECKING:
    from asched.core.state.cluster import Cluster


class Nominator:
    """`pod_now` looks a pod up by its key, as the API last showed it; None if it is gone."""

    def __init__(self, pod_now: Callable[[str], Pod | None]) -> None:
        self._pod_now = pod_now
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}
        self._of_others: set[str] = set()
        #: Grows with every change, so that readers can tell whether their copy still holds.
        self.generation = 0
        #: ... and which node it was about.
        self.log = ObjectLog()

    @classmethod
    def of(cls, cluster: "Cluster") -> "Nominator":
        """For `Cluster.singleton`: cycles and plugins meet at the same one."""
        return cls(cluster.pods_seen.get)

    def __len__(self) -> int:
        return len(self._node_of)

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def on(self, node: str) -> Mapping[str, Pod]:
        """Pods nominated to a node by uid, in the order in which they were nominated."""
        return self._pods_on.get(node, {})

    def of_others(self, uid: str) -> bool:
        """Whether the promise to a pod is another scheduler's."""
        return uid in self._of_others

    def nodes(self) -> Mapping[str, Mapping[str, Pod]]:
        """Every node with nominated pods. Not to be kept: it changes."""
        return self._pods_on

    def add(self, pod: Pod, node: str | None = None) -> None:
        """Nominate anew: None means what the pod says, "" takes the nomination back."""
        if pod.metadata.uid in self._node_of:
            self.delete(pod.metadata.uid)
        nominated = pod.status.nominated_node_name if node is None else node
        if not nominated:
            return
        now = self._pod_now(pod.key)
        if now is None or now.uid != pod.uid or now.spec.node_name:
            return  # gone, made anew, or placed: nobody would take the nomination back
        self._node_of[pod.uid] = nominated
        self._pods_on.setdefault(nominated, {})[pod.uid] = pod
        self._touch(nominated)

    def add_of_others(self, pod: Pod) -> None:
        """Take over what the status of another scheduler's pod says now."""
        self.add(pod)
        if pod.uid in self._node_of:
            self._of_others.add(pod.uid)

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has a new version; a nomination that neither version knows of stays."""
        kept = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.add(new, kept)

    def delete(self, uid: str) -> None:
        """The pod is assumed, bound or gone. Unknown pods are ignored."""
        node = self._node_of.pop(uid, None)
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
