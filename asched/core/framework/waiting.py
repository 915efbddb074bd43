"""Pods between Reserve and Bind that can still be delayed, allowed or rejected.

A pod whose Permit plugins returned WAIT is here until all of them allow it, one rejects it, its
time is up, or a preemptor takes its place. A pod in PreBind is here, too: its binding can be
cancelled until PreBind is finished. The first decision counts, later ones are ignored.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Topic
from asched.core.framework.status import Status, failure, unschedulable
from asched.core.model.kinds import POD

#: The longest wait of a Permit plugin (upstream's maxTimeout).
PERMIT_TIMEOUT_S_MAX: Final = 15 * 60.0


class Stage(Enum):
    """The stage of a pod being bound."""

    PERMIT = "waiting on permit"
    PRE_BIND = "in PreBind"
    BINDING = "past the point of return"


class WaitingPod:
    """One pod being bound. `decision` is None while it is open. `plugin`: the PreBind plugin at
    work, "" without one; `why` returns what it awaits.
    """

    __slots__ = (
        "_decision",
        "deadlines",
        "info",
        "moved",
        "node",
        "plugin",
        "profile",
        "stage",
        "why",
    )

    def __init__(self, info: PodInfo, node: str, profile: str) -> None:
        self.info = info
        self.node = node
        self.profile = profile
        self.stage = Stage.BINDING
        self.plugin = ""
        self.why: Callable[[], str] | None = None
        #: Permit plugin -> (deadline, duration of the wait); empty once all allow.
        self.deadlines: dict[str, tuple[float, float]] = {}
        self._decision: Status | None = None
        #: to this list decisions append the topic of the pod
        self.moved: list[Topic] = []

    @property
    def topic(self) -> Topic:
        """The topic that changes with every decision about the pod."""
        return POD.resource, self.info.pod.key

    @property
    def decision(self) -> Status | None:
        return self._decision

    @decision.setter
    def decision(self, status: Status) -> None:
        self._decision = status
        self.moved.append(self.topic)

    def allow(self, plugin: str) -> None:
        """One plugin allows the pod; when the last one does, the pod continues."""
        self.deadlines.pop(plugin, None)
        self.moved.append(self.topic)

    def withdraw(self) -> None:
        """The pod is gone: its remaining work is cancelled."""
        if self.decision is None and self.stage is not Stage.BINDING:
            self.decision = unschedulable("removed")

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod; `plugin` is to blame."""
        if self.decision is None and self.stage is Stage.PERMIT:
            self.decision = unschedulable(message).by(plugin)

    def preempt(self, plugin: str) -> bool:
        """Take its place; nothing has been written yet. False if the binding has begun."""
        if self.stage is Stage.BINDING:
            return False
        if self.decision is None:
            is_at_permit = self.stage is Stage.PERMIT
            self.decision = failure("preempted" if is_at_permit else f"preempted by {plugin}")
        return True

    @property
    def is_settled(self) -> bool:
        return self.decision is not None or not self.deadlines

    @property
    def next_deadline_s(self) -> float:
        return min(until for until, _ in self.deadlines.values())

    def expire(self) -> None:
        """Reject the pod by the first plugin whose time is up."""
        plugin, (_, patience_s) = min(self.deadlines.items(), key=lambda item: item[1][0])
        text = f"rejected due to timeout after waiting {_go_seconds(patience_s)} at plugin {plugin}"
        self.reject(plugin, text)


def _go_seconds(seconds: float) -> str:
    """A duration as Go prints it, to the millisecond: `1m30s`, `1.5s`, `20ms`, `0s`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:g}s"
    if hours:
        return f"{hours:g}h{minutes:g}m{text}"
    return f"{minutes:g}m{text}" if minutes else text


class WaitingPods:
    """All pods being bound, by uid. `held`: how many of them are at Permit."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self.held = 0
        #: topics of pods with decisions since the machine last checked
        self.moved: list[Topic] = []

    @classmethod
    def of(cls, _cluster: Cluster) -> "WaitingPods":
        """For `Cluster.singleton`: shared by plugins and cycles."""
        return cls()

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def add(self, waiting: WaitingPod) -> None:
        self._pods[waiting.info.pod.metadata.uid] = waiting
        waiting.moved = self.moved

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
