"""Turn the machine's reports into metrics and log lines.

Implements `core.cycle.Observer`; it counts, and logs where kube-scheduler logs: a failed attempt
and a binding at verbosity 2, a pod's moves between queues at 4, errors always.
"""

import logging
from typing import Final

from asched import names
from asched.core.cycle.observer import Observer
from asched.core.queue.queued import QueuedPod
from asched.serve.telemetry.component_metrics import OwnMetrics
from asched.serve.telemetry.instruments import Families
from asched.serve.telemetry.log import verbosity
from asched.serve.telemetry.scheduler_metrics import SchedulerMetrics

log = logging.getLogger("asched.scheduler")

#: The verbosity from which each move between queues is logged, with its cause.
QUEUE_LINES: Final = 4


class Reports(SchedulerMetrics, Observer):
    """The observer of a running scheduler."""

    def __init__(self, families: Families, own: OwnMetrics) -> None:
        super().__init__(families)
        self._own = own

    def incoming(self, queue: str, label: str, queued: QueuedPod | None = None) -> None:
        super().incoming(queue, label, queued)
        if queued is None or verbosity() < QUEUE_LINES:
            return
        extra = {"v": QUEUE_LINES, "pod": queued.key, "event": label, "queue": queue.capitalize()}
        if queued.rejectors:
            extra["rejectedBy"] = sorted(queued.rejectors)
        if queue == "backoff" and queued.backoff_until_s is not None:
            extra["attempts"] = queued.attempts
            extra["backoffSeconds"] = round(queued.backoff_until_s - queued.timestamp_s, 3)
        log.info("Pod moved to an internal scheduling queue", extra=extra)

    def pod_bound(self, pod_key: str, node: str, evaluated: int, feasible: int) -> None:
        if verbosity() >= 2:
            log.info(
                "Successfully bound pod to node",
                extra={
                    "v": 2,
                    "pod": pod_key,
                    "node": node,
                    "evaluatedNodes": evaluated,
                    "feasibleNodes": feasible,
                },
            )

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        self._own.plugin_exceptions.add(plugin, point)
        log.error(
            "A plugin raised an exception; the pod is retried later",
            extra={"plugin": plugin, "point": point},
            exc_info=error,
        )

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self._own.contained_exceptions.add(part)
        log.error(
            "The scheduler raised an exception; the object concerned is retried later",
            extra={"part": part, "about": about},
            exc_info=error,
        )

    def scheduling_failed(self, pod_key: str, reason: str, message: str) -> None:
        if reason != names.REASON_SCHEDULER_ERROR:
            if verbosity() >= 2:
                extra = {"v": 2, "pod": pod_key, "err": message}
                log.info("Unable to schedule pod; no fit; waiting", extra=extra)
        else:
            extra = {"pod": pod_key, "err": message}
            log.error("Error scheduling pod; retrying", extra=extra)

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        self._own.binding_failures.add()
        extra = {"v": 2, "pod": pod_key, "node": node, "err": message}
        log.info("The pod was not bound", extra=extra)

    def preemption_failed(self, pod_key: str, message: str) -> None:
        extra = {"pod": pod_key, "err": message}
        log.error("Error occurred during async preemption", extra=extra)

    def complaint(self, message: str) -> None:
        self._own.complaints.add()
        log.error(message)
