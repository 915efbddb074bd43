"""What the queue tells of itself while it works; metrics are made of it outside.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/metrics (queue_incoming_pods_total,
        unschedulable_pods, queueing_hint_execution_duration_seconds)
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asched.core.queue.queued import QueuedPod


class QueueObserver(Protocol):
    def incoming(self, queue: str, label: str, queued: "QueuedPod | None" = None) -> None:
        """A pod entered "active", "backoff" or "unschedulable" by a change of this label."""

    def unschedulable(self, plugin: str, profile: str, by: int) -> None:
        """One pod more (1) or less (-1) waits because of this plugin."""

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        """A hint function said "Queue", "QueueSkip" or "Error"."""

    def gates_asked(self, profile: str, duration_s: float) -> None:
        """The PreEnqueue plugins of a profile looked at a pod."""

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        """A plugin failed by exception; its pod bears it, the queue lives."""

    def complaint(self, message: str) -> None:
        """Something that must not happen did, and was survived."""


class SilentQueue:
    """Listens to nothing."""

    def incoming(self, queue: str, label: str, queued: "QueuedPod | None" = None) -> None: ...

    def unschedulable(self, plugin: str, profile: str, by: int) -> None: ...

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None: ...

    def gates_asked(self, profile: str, duration_s: float) -> None: ...

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None: ...

    def complaint(self, message: str) -> None: ...
