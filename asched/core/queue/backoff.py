"""Backoff: the pause of a pod after a failed attempt.

The pause doubles with each failure up to a limit. Consecutive errors are counted apart from
rejections, so that errors of the API server start with a short pause. Its end is cut to the whole
second: pods of one second return together, in queue order.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/backoff_queue.go
"""

from math import floor
from typing import Final, NamedTuple

from asched.core.queue.queued import QueuedPod

#: podInitialBackoffSeconds and podMaxBackoffSeconds unless configured.
INITIAL_BACKOFF_S: Final = 1.0
MAX_BACKOFF_S: Final = 10.0
#: 2 ** 62 initial pauses exceed any limit; beyond it only floats would overflow.
DOUBLINGS_MAX: Final = 62


class BackoffTimes(NamedTuple):
    initial_s: float = INITIAL_BACKOFF_S
    max_s: float = MAX_BACKOFF_S

    def duration_s(self, failures: int) -> float:
        """The pause after this number of failures. A limit of 0 switches backoff off."""
        if failures <= 0:
            return 0.0
        return min(self.initial_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), self.max_s)

    def until_s(self, queued: QueuedPod) -> float | None:
        """The whole second up to which the pod backs off; None without backoff."""
        pause_s = self.duration_s(queued.consecutive_errors or queued.unschedulable_count)
        pause_s = max(pause_s, queued.pause_s)
        return float(floor(queued.timestamp_s + pause_s)) if pause_s > 0 else None


def is_backing_off(queued: QueuedPod, now_s: float) -> bool:
    """Whether the pod backs off, up to the end of the second in which its pause ends."""
    return queued.backoff_until_s is not None and queued.backoff_until_s >= floor(now_s)
