"""What the machine reports, turned into metrics and log lines.

One object implements `core.cycle.Observer`; it counts first and logs where an operator of
kube-scheduler would expect a line: a failed attempt and a binding at verbosity 2, errors always.
"""

import logging

from asched import names
from asched.edge.telemetry.component_metrics import OwnMetrics
from asched.edge.telemetry.instruments import Families
from asched.edge.telemetry.log import verbosity
from asched.edge.telemetry.scheduler_metrics import SchedulerMetrics

log = logging.getLogger("asched.scheduler")


class Reports(SchedulerMetrics):
    """The observer of a running scheduler."""

    def __init__(self, families: Families, own: OwnMetrics) -> None:
        super().__init__(families)
        self._own = own

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

    def plugin_raised(self, plugin: str, point: str, error: Exception) -> None:
        self._own.plugin_raised(plugin, point)
        log.error(
            "A plugin raised an exception; its pod is tried again later",
            extra={"plugin": plugin, "point": point},
            exc_info=error,
        )

    def scheduling_failed(self, pod_key: str, reason: str, message: str) -> None:
        if reason == names.REASON_UNSCHEDULABLE:
            if verbosity() >= 2:
                extra = {"v": 2, "pod": pod_key, "err": message}
                log.info("Unable to schedule pod; no fit; waiting", extra=extra)
        else:
            extra = {"pod": pod_key, "err": message}
            log.error("Error scheduling pod; retrying", extra=extra)

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        self._own.binding_failed()
        extra = {"v": 2, "pod": pod_key, "node": node, "err": message}
        log.info("The pod was not bound", extra=extra)

    def complaint(self, message: str) -> None:
        self._own.complained()
        log.error(message)
