"""PrioritySort: order the queue by priority, then by waiting time.

Orders    by priority, highest first, then by the time the pod (re-)entered the queue.
Retry     nothing: it rejects no pod.
Cost      two attribute reads for each comparison key.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/queuesort
"""

from collections.abc import Sequence

from asched import names
from asched.core.framework.points import QueueSortPlugin
from asched.core.framework.registrations import Registration
from asched.core.model.pod import Pod


class PrioritySort(QueueSortPlugin):
    name = names.PRIORITY_SORT

    def registrations(self) -> Sequence[Registration]:
        return ()

    def sort_key(self, pod: Pod, timestamp_s: float) -> tuple[int, float]:
        return (-pod.priority, timestamp_s)
