"""All metrics of a process, counted from the machine's reports, which are also logged; and the page
that shows them.

As by kube-scheduler, a failed attempt and a binding are logged at verbosity 2, a pod's moves
between queues at 4, errors always. A page is rendered in a thread and cached for PAGE_AGE_S, so
that many scrapers cost as much as one and do not block the scheduling loop.

Bounds  one page at a time is rendered.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final

from asched import names
from asched.core.config.versions import BASE
from asched.core.cycle.observer import Observer
from asched.core.queue.queued import QueuedPod
from asched.serve.telemetry.client_metrics import AsyncCallMetrics, ClientMetrics
from asched.serve.telemetry.component_metrics import (
    KUBERNETES_VERSION,
    AccessMetrics,
    LeaderMetrics,
    OwnMetrics,
)
from asched.serve.telemetry.instruments import Exposition, Families
from asched.serve.telemetry.log import verbosity
from asched.serve.telemetry.scheduler_metrics import SchedulerMetrics

if TYPE_CHECKING:
    from asched.serve.telemetry.page import MetricsPage

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

    def tried_later(self, pod_key: str, ends: int) -> None:
        extra = {"pod": pod_key, "ends": ends}
        log.warning("Leaders ended one after the other; one pod is tried later", extra=extra)

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


#: A page is reused within this time; Prometheus scrapes every 15 to 60 s.
PAGE_AGE_S: Final = 1.0


class Metrics:
    """Create one per process and pass its parts to the components that report."""

    def __init__(self, exposition: Exposition | None = None) -> None:
        self.families = Families()
        self.own = OwnMetrics(self.families)
        self.scheduler = Reports(self.families, self.own)
        self.client = ClientMetrics(self.families)
        self.leader = LeaderMetrics(self.families)
        self.access = AccessMetrics(self.families)
        self._exposition = exposition or Exposition()
        self._shown: MetricsPage | None = None
        self._page = b""
        self._rendered_s = -PAGE_AGE_S
        self._lock = asyncio.Lock()

    def tell_build(
        self,
        version: Callable[[], str],
        gates: Mapping[str, tuple[str, bool]],
        rules: str = BASE,
    ) -> None:
        """Show versions, and each feature gate's stage and state. Our own version is read when a
        page is made, because that takes a while. `rules`: the minor version whose rules are in
        force.
        """
        followed = KUBERNETES_VERSION if KUBERNETES_VERSION.startswith(rules) else f"{rules}.0"
        major, minor, _ = followed.split(".")
        build = self.families.gauge(
            "kubernetes_build_info",
            "[BETA] Always 1; the labels name the kube-scheduler version that is followed.",
            ("major", "minor", "git_version"),
        )
        build.of(major, minor, f"v{followed}").value = 1
        self.families.pulled(
            "asched_build_info",
            "gauge",
            "[ALPHA] Always 1; the label is asched's version.",
            ("version",),
            lambda: {(version(),): 1.0},
        )
        enabled = self.families.gauge(
            "kubernetes_feature_enabled",
            "[BETA] 1 for a feature gate that is on.",
            ("name", "stage"),
        )
        for name, (stage, is_on) in gates.items():
            enabled.of(name, "" if stage == "GA" else stage).value = float(is_on)

    def show_version(self, minor: str, server: Callable[[], str]) -> None:
        """Show whose rules are in force, and the API server's version as last read."""
        self.families.pulled(
            "asched_kubernetes_info",
            "gauge",
            "[ALPHA] Always 1; the labels are the minor version of Kubernetes whose rules are in"
            " force, and the API server's version as last read.",
            ("rules", "server"),
            lambda: {(minor, server()): 1.0},
        )

    def follow(self, rules: Mapping[str, bool]) -> None:
        """Name families as the minor version does whose rules these are."""
        if rules["claims-metric-of-all-components"]:
            self.client.share_claims_metric(self.families)
        if rules["metrics-count-queued-entities"]:
            self.scheduler.show_entities()
        self.scheduler.counts_trees = rules["metrics-count-trees-once"]
        self.scheduler.counts_room = rules["metrics-of-preemption-for-groups"]
        if rules["metrics-of-placements"] and rules["TopologyAwareWorkloadScheduling"]:
            self.scheduler.show_placements()
        if rules["metrics-of-informers"]:
            self.scheduler.show_informers()
        if rules["metrics-of-plugins-are-beta"]:
            self.scheduler.promote()

    def show_async_calls(self) -> None:
        """Add the families that kube-scheduler has with the gate SchedulerAsyncAPICalls."""
        self.client.calls = AsyncCallMetrics(self.families)

    async def page(self) -> bytes:
        """Prometheus' text format 0.0.4; at most PAGE_AGE_S old."""
        async with self._lock:
            if monotonic() - self._rendered_s >= PAGE_AGE_S:
                self._page = await asyncio.to_thread(self.render)
                self._rendered_s = monotonic()
            return self._page

    def render(self) -> bytes:
        if self._shown is None:
            from asched.serve.telemetry.page import MetricsPage

            self._shown = MetricsPage(self.families, self._exposition)
        return self._shown.text()

    def reset(self) -> None:
        """Drop observations; gauges of states continue, as upstream's do."""
        self.families.reset()
        self._rendered_s = -PAGE_AGE_S
