"""Pods, profiles and queues for the tests of this room."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from asched.core.cluster.changes import Action, Change, Trigger
from asched.core.cluster.nominated import Nominator
from asched.core.framework.points import PreEnqueuePlugin
from asched.core.framework.registrations import Hint, HintFunction, Registration
from asched.core.framework.status import SUCCESS, Status, unresolvable
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Pod, PodSpec, PodStatus, SchedulingGate, SchedulingGroup
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.profile import QueueObserver, QueueProfile
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod

PROFILE = "our-scheduler"
NODE_LABEL = Trigger("Node", Action.UPDATE_NODE_LABEL)
NODE_ADDED = Trigger("Node", Action.ADD)
POD_RELABELLED = Trigger("Pod", Action.UPDATE_POD_LABEL)
VOLUME_ADDED = Trigger("PersistentVolume", Action.ADD)


def a_pod(name: str, **fields: Any) -> Pod:
    """Fields: uid, version, labels, priority, node, nominated, gates, group, scheduler, deleted."""
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=fields.get("uid", f"uid-{name}"),
            resource_version=str(fields.get("version", 1)),
            labels=fields.get("labels"),
            deletion_timestamp=fields.get("deleted"),
        ),
        spec=PodSpec(
            priority=fields.get("priority"),
            node_name=fields.get("node", ""),
            scheduler_name=fields.get("scheduler", PROFILE),
            scheduling_group=SchedulingGroup(fields["group"]) if "group" in fields else None,
            scheduling_gates=tuple(SchedulingGate(g) for g in fields.get("gates", ())) or None,
        ),
        status=PodStatus(nominated_node_name=fields.get("nominated", "")),
    )


def a_node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def by_priority(pod: Pod, timestamp_s: float) -> tuple[int, float]:
    return -pod.priority, timestamp_s


def always(answer: Hint) -> HintFunction:
    return lambda pod, old, new: answer


class Gate(PreEnqueuePlugin):
    """Holds pods that have a gate of its name."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]
        self.asked: list[str] = []

    def pre_enqueue(self, pod: Pod) -> Status:
        self.asked.append(pod.key)
        held = any(gate.name == self.name for gate in pod.spec.scheduling_gates or ())
        return unresolvable("held") if held else SUCCESS


class Witness(QueueObserver):
    """Counts what a queue tells of itself."""

    def __init__(self) -> None:
        self.entered: Counter[tuple[str, str]] = Counter()
        self.waiting_for: Counter[str] = Counter()
        self.answers: list[tuple[str, str, str, float]] = []
        self.complaints: list[str] = []
        self.raised: list[tuple[str, str, str]] = []
        self.notes: list[str] = []

    def incoming(self, queue: str, label: str, queued: QueuedPod | None = None) -> None:
        self.entered[queue, label] += 1

    def unschedulable(self, plugin: str, profile: str, by: int) -> None:
        self.waiting_for[plugin] += by

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        self.answers.append((plugin, label, hint, duration_s))

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        self.raised.append((plugin, point, repr(error)))
        self.notes += getattr(error, "__notes__", ())

    def complaint(self, message: str) -> None:
        self.complaints.append(message)


class Scene:
    """A queue with the pods the API knows; `fail` and friends spare the tests the lookups."""

    def __init__(
        self,
        registrations: Mapping[str, Sequence[Registration]] | None = None,
        *,
        gates: Sequence[PreEnqueuePlugin] = (),
        backoff: BackoffTimes = BackoffTimes(1, 10),  # noqa: B008 - immutable
        class_key_of: Callable[[Pod], Hashable | None] = lambda _: None,
        **more: Any,
    ) -> None:
        """`more`: `dry_runner`, `gangs` of the queue; `extra_events` of the profile."""
        own = {key: more.pop(key) for key in ("extra_events",) if key in more}
        self.api: dict[str, Pod] = {}
        self.witness = Witness()
        self.queue = SchedulingQueue(
            {PROFILE: QueueProfile(by_priority, registrations or {}, gates, **own)},
            Nominator(self.api.get),
            backoff=backoff,
            observer=self.witness,
            class_key_of=class_key_of,
            **more,
        )

    def add(self, *pods: Pod, now_s: float = 0.0) -> None:
        for number, pod in enumerate(pods):
            self.api[pod.key] = pod
            self.queue.add(pod, now_s + number / 1000)

    def update(self, new: Pod, now_s: float = 0.0) -> None:
        old = self.api[new.key]
        self.api[new.key] = new
        self.queue.update(old, new, now_s)

    def pop(self, now_s: float = 0.0) -> QueuedPod:
        queued = self.queue.pop(now_s)
        assert queued is not None, "nothing to take"
        return queued

    def fail(
        self, queued: QueuedPod, *plugins: str, pending: Sequence[str] = (), now_s: float = 0.0
    ) -> None:
        self.queue.return_failed(queued, self.api[queued.key], plugins, pending, now_s)

    def reject(self, *plugins: str, pending: Sequence[str] = (), now_s: float = 0.0) -> QueuedPod:
        """Pop the next pod and reject it."""
        queued = self.pop(now_s)
        self.fail(queued, *plugins, pending=pending, now_s=now_s)
        return queued

    def move(self, trigger: Trigger, now_s: float = 0.0, **limits: Any) -> int:
        """Deliver a change of a node; returns how many unschedulable pods it woke."""
        change = Change(trigger, None, a_node("n"), limits.get("priority_at_most"))
        before = self.queue.places.pending().unschedulable
        self.queue.move(change, now_s, except_uid=limits.get("except_uid", ""))
        return before - self.queue.places.pending().unschedulable

    def names(self) -> dict[str, list[str]]:
        """Pods by place, empty places left out."""
        listing = self.queue.places.listing()._asdict()
        return {
            place: [queued.pod.metadata.name for queued in pods]
            for place, pods in listing.items()
            if pods
        }
