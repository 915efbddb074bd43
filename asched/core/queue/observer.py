"""The interface for reports of the queue, from which metrics are made.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/metrics (queue_incoming_pods_total,
        unschedulable_pods, queueing_hint_execution_duration_seconds)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asched.core.queue.queued import QueuedPod


class QueueObserver:
    """Ignores all reports."""

    def incoming(self, queue: str, label: str, queued: "QueuedPod | None" = None) -> None:
        """A pod entered "active", "backoff" or "unschedulable" by a change of this label."""

    def unschedulable(self, plugin: str, profile: str, by: int) -> None:
        """One pod more (1) or fewer (-1) is unschedulable because of this plugin."""

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        """A hint function returned "Queue" or "QueueSkip", or raised ("Error")."""

    def gates_asked(self, profile: str, duration_s: float) -> None:
        """The PreEnqueue plugins of a profile ran for a pod."""

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        """A plugin raised an exception, which affects one pod only."""

    def complaint(self, message: str) -> None:
        """An internal invariant was violated and repaired."""
