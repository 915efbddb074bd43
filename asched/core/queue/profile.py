"""What the queue is given: the parts of a profile that it uses, and who takes its reports, from
which metrics are made.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/metrics (queue_incoming_pods_total,
        unschedulable_pods, queueing_hint_execution_duration_seconds)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asched.core.framework.points import PreEnqueuePlugin, Registration
from asched.core.model.pod import Pod

if TYPE_CHECKING:
    from asched.core.queue.queued import QueuedPod


class QueueProfile(msgspec.Struct, frozen=True):
    """The parts of a profile that the queue uses; no plugin is known by name.

    The sort key of the first profile is used for all profiles. `extra_events`: further changes,
    which wake a pod only if it fits at that moment: `blame` returns the plugins that reject it
    then, None if it fits.
    """

    sort_key: Callable[[Pod, float], Any]
    registrations: Mapping[str, Sequence[Registration]]
    pre_enqueue: Sequence[PreEnqueuePlugin] = ()
    extra_events: Mapping[str, Sequence[Registration]] = msgspec.field(default_factory=dict)
    blame: Callable[[Pod, str], frozenset[str] | None] = lambda _pod, _left: None


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
