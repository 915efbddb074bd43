"""The queue's record of a pod.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/types.go
        (QueuedPodInfo)
"""

from collections.abc import Hashable
from enum import IntEnum
from typing import Any

from asched.core.cluster.pod_groups import group_key
from asched.core.model.pod import Pod
from asched.core.queue.heap import Heap

NO_NAMES: frozenset[str] = frozenset()


class Worth(IntEnum):
    """What to do with a pod after a change; the greatest value wins. IF_IT_FITS: a dry run decides,
    and it is tried after its backoff.
    """

    SKIP = 0
    IF_IT_FITS = 1
    AFTER_BACKOFF = 2
    IMMEDIATELY = 3


class QueuedPod:
    """The record of a pod in the queue or in flight. Only the queue writes it, and dry runs write
    `needs`.

    timestamp_s       when it last entered the queue: order, start of backoff and of the wait
    arrival           serial number of its entry: the order among pods with equal timestamps
    initial_attempt_s when it first became active; time behind gates does not count
    backoff_until_s   whole second up to which it backs off; None in flight, and for a pod that has
                      neither failed nor been postponed
    rejected_by       plugins that rejected the last attempt, and the one that gates it
    pending_on        plugins that returned Pending: a change of theirs skips the backoff
    gated_by          the plugin that gates it, or ""
    pause_s           the shortest backoff after its last failure
    is_patient        it had a place and was rejected later: its backoff is never cut short
    is_promised       its last attempt found room that victims have to leave first, or that may be
                      made later: it returns after its backoff
    was_early         the last attempt at its group was made before the end of its backoff
    woken_by          label of the change that woke it last
    was_flushed       it was tried again only because it had waited too long
    profile           the profile that decides for it, as it was when it passed the gates, or was
                      stopped there: its hints and gates are those of this profile
    class_key         equal for pods for which all hints return the same; None shares nothing
    gang              key of the group that it is tried with, or ""
    needs             requirements of its class on a node, with their version; None until computed
    heap, ticket      the heap it waits in, and its entry there: active, in backoff, or that of
                      equal unschedulable pods
    rejector_group    where it is filed while it is unschedulable (`RejectorGroup`), else None
    """

    __slots__ = (
        "arrival",
        "attempts",
        "backoff_until_s",
        "class_key",
        "consecutive_errors",
        "gang",
        "gated_by",
        "heap",
        "initial_attempt_s",
        "is_patient",
        "is_promised",
        "key",
        "needs",
        "pause_s",
        "pending_on",
        "pod",
        "profile",
        "rejected_by",
        "rejector_group",
        "ticket",
        "timestamp_s",
        "unschedulable_count",
        "was_early",
        "was_flushed",
        "woken_by",
    )

    def __init__(self, pod: Pod, now_s: float) -> None:
        self.pod = pod
        self.key = pod.key
        self.profile = pod.spec.scheduler_name
        self.class_key: Hashable | None = None
        self.gang = ""
        self.timestamp_s = now_s
        self.arrival = 0
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.initial_attempt_s: float | None = None
        self.backoff_until_s: float | None = None
        self.rejected_by = NO_NAMES
        self.pending_on = NO_NAMES
        self.gated_by = ""
        self.pause_s = 0.0
        self.is_patient = self.is_promised = False
        self.was_flushed = self.was_early = False
        self.woken_by = ""
        self.needs: tuple[Hashable, Any] | None = None
        self.heap: PodHeap | None = None
        self.ticket = 0
        self.rejector_group: object | None = None

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose hints are called."""
        return self.rejected_by | self.pending_on if self.pending_on else self.rejected_by

    def is_rejected_as_before(self, rejectors: frozenset[str] | None) -> bool:
        """Whether these plugins, which reject the pod now, rejected it before; None: it fits."""
        return rejectors is not None and rejectors <= self.rejectors

    @property
    def may_be_early(self) -> bool:
        """Whether freed room ends the backoff of a rejected pod of a group: once, until its backoff
        has ended, because a dry run of a group does not check all rules.
        """
        is_held = self.is_patient or self.is_promised or self.pause_s > 0
        return bool(self.rejectors) and not (is_held or self.was_early)

    @property
    def stands_apart(self) -> bool:
        """Whether the pod's attempts may differ from those of other pods of its class."""
        pod = self.pod
        return (
            self.is_patient
            or self.is_promised
            or bool(pod.status.nominated_node_name)
            or (not self.gang and bool(group_key(pod)))
        )

    @property
    def is_gated(self) -> bool:
        return bool(self.gated_by)

    def __repr__(self) -> str:
        return f"QueuedPod({self.key}, attempts={self.attempts})"


class PodHeap(Heap[QueuedPod]):
    """A heap of pods."""
