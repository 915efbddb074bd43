"""Figures: metrics whose values are looked up when a page is made; somebody counts them anyway.

They are read in the thread that renders the page; each reader copies what it goes through.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asched.core.framework.effects import Lane
from asched.core.framework.runner import Runner
from asched.core.state.changes import UNSCHEDULABLE_TIMEOUT
from asched.edge.host.clock import monotonic_s
from asched.edge.host.loops import Scheduler
from asched.edge.telemetry.metrics import Metrics

#: (name, kind, help, labels, reader)
Figure = tuple[str, str, str, tuple[str, ...], Callable[[], Mapping[tuple[str, ...], float]]]


def show_figures(scheduler: Scheduler, metrics: Metrics) -> None:
    """Register every value that is looked up rather than counted."""
    for name, kind, text, labels, read in _figures(scheduler, metrics):
        metrics.families.pulled(name, kind, text, labels, read)


def _figures(scheduler: Scheduler, metrics: Metrics) -> Iterable[Figure]:
    machine, desk = scheduler.machine, scheduler.machine.desk
    cluster, queue, dispatcher = desk.cluster, desk.queue, scheduler.dispatcher

    def by_lane(read: Callable[[Lane], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(lane.name.lower(),): read(lane) for lane in Lane}

    def by_kind(read: Callable[[Any], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(k.plural,): read(r) for k, r in scheduler.reflectors.items()}

    def by_runner(
        read: Callable[[Runner], float],
    ) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(name,): read(runner) for name, runner in desk.runners.items()}

    def sizes() -> Mapping[tuple[str, ...], float]:
        placed = list(cluster.placed.values())
        return {
            ("assumed_pods",): sum(info.assumed for info in placed),
            ("nodes",): cluster.nodes.count,
            ("pods",): len(placed),
        }

    def pending() -> Mapping[tuple[str, ...], float]:
        return {(name,): count for name, count in queue.places.pending()._asdict().items()}

    def rescues() -> Mapping[tuple[str, ...], float]:
        incoming = metrics.scheduler.incoming_pods.children.copy()
        label = UNSCHEDULABLE_TIMEOUT.label
        return {(): sum(c.value for (_, event), c in incoming.items() if event == label)}

    def in_flight() -> Mapping[tuple[str, ...], float]:
        return {(label,): count for label, count in queue.in_flight.counts.copy().items()}

    def routines() -> Mapping[tuple[str, ...], float]:
        return {("binding",): machine.bindings} if metrics.scheduler.attempts.children else {}

    return (
        (
            "scheduler_pending_pods",
            "gauge",
            "[STABLE] Pods that wait, by queue.",
            ("queue",),
            pending,
        ),
        (
            "scheduler_cache_size",
            "gauge",
            "[ALPHA] Nodes, pods and assumed pods known.",
            ("type",),
            sizes,
        ),
        (
            "scheduler_inflight_events",
            "gauge",
            "[ALPHA] Changes kept for attempts under way.",
            ("event",),
            in_flight,
        ),
        (
            "scheduler_goroutines",
            "gauge",
            "[BETA] Activities under way, by what they do.",
            ("operation",),
            routines,
        ),
        (
            "workqueue_depth",
            "gauge",
            "[BETA] Writes that wait, by lane.",
            ("name",),
            by_lane(dispatcher.queued_count),
        ),
        (
            "asched_lane_requests_in_flight",
            "gauge",
            "[ALPHA] Requests under way, by lane.",
            ("lane",),
            by_lane(dispatcher.in_flight_count),
        ),
        (
            "asched_lane_dropped_total",
            "counter",
            "[ALPHA] Writes given up under pressure, by lane.",
            ("lane",),
            by_lane(dispatcher.dropped_count),
        ),
        (
            "asched_sweep_rescues_total",
            "counter",
            "[ALPHA] Pods woken by nothing but a timer.",
            (),
            rescues,
        ),
        (
            "asched_inbox_depth",
            "gauge",
            "[ALPHA] Facts that wait for the deciding loop.",
            (),
            lambda: {(): len(scheduler.inbox)},
        ),
        (
            "asched_bindings_under_way",
            "gauge",
            "[ALPHA] Pods on their way to their node.",
            (),
            lambda: {(): machine.bindings},
        ),
        (
            "asched_rows_computed_total",
            "counter",
            "[ALPHA] Node rows that plugins judged or scored.",
            ("profile",),
            by_runner(lambda r: r.cache.work.rows),
        ),
        (
            "asched_full_passes_total",
            "counter",
            "[ALPHA] Answers of a plugin made anew for all rows.",
            ("profile",),
            by_runner(lambda r: r.cache.work.full_passes),
        ),
        (
            "asched_class_states",
            "gauge",
            "[ALPHA] Classes of equal pods whose work is kept.",
            ("profile",),
            by_runner(lambda r: r.cache.size),
        ),
        (
            "asched_watch_staleness_seconds",
            "gauge",
            "[ALPHA] Time since a watch was heard of.",
            ("resource",),
            by_kind(_staleness_s),
        ),
        (
            "asched_watch_lists_total",
            "counter",
            "[ALPHA] Complete lists taken in.",
            ("resource",),
            by_kind(lambda r: r.list_count),
        ),
        (
            "asched_malformed_objects_total",
            "counter",
            "[ALPHA] Objects that could not be read.",
            ("resource",),
            by_kind(lambda r: r.malformed_count),
        ),
    )


def _staleness_s(reflector: Any) -> float:
    heard_s = reflector.heard_s
    return 0.0 if heard_s is None else max(monotonic_s() - heard_s, 0.0)
