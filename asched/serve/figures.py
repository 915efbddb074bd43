"""Metrics whose values are read when a page is made, from counts that exist anyway.

They are read in the thread that renders the page; each reader copies what it iterates over.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from asched import names
from asched.batch.backfill.reservations import Reservations, StartTimes
from asched.batch.backfill.starts import CAUSES as START_CAUSES
from asched.batch.backfill.starts import CHANGES as START_CHANGES
from asched.batch.provisioning.book import Bookings
from asched.batch.provisioning.cycle import ProvisioningRequests
from asched.batch.rebalance.units import OUTCOMES as MOVE_OUTCOMES
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.changes import UNSCHEDULABLE_TIMEOUT
from asched.core.cluster.holds import HeldAmounts
from asched.core.cluster.pod_groups import is_coscheduled
from asched.core.framework.effects import Lane
from asched.core.framework.runner import Runner
from asched.core.model.requests import CPU
from asched.core.queue.queued import QueuedPod
from asched.kube.running import Running
from asched.serve.telemetry.instruments import Families
from asched.serve.telemetry.measured import LANE_NAMES, MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from asched.serve.telemetry.scheduler_metrics import INFORMER_LABELS, informer_of, type_of

Values = Mapping[tuple[str, ...], float]


class Figures:
    """Readers of metrics of a running scheduler."""

    def __init__(self, scheduler: Running, metrics: Metrics) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._context = scheduler.machine.context

    def show(self) -> None:
        self._show_upstream(self._metrics.families)
        self._show_lanes(self._metrics.families)
        self._show_work(self._metrics.families)
        self._show_watches(self._metrics.families)

    def _show_upstream(self, families: Families) -> None:
        text = "[STABLE] Pending pods, by queue."
        families.pulled("scheduler_pending_pods", "gauge", text, ("queue",), self.pending)
        if self._metrics.scheduler.incoming_entities is not None:
            text = (
                "[ALPHA] Pods without a group, and pod groups, by queue; type: pod, podgroup, or,"
                " since Kubernetes 1.38, compositepodgroup."
            )
            labels = ("queue", "type")
            families.pulled("scheduler_queued_entities", "gauge", text, labels, self.entities)
            self._metrics.scheduler.root_of = self._context.cluster.pod_groups.root_of
        text = "[ALPHA] Cached nodes, pods and assumed pods."
        families.pulled("scheduler_cache_size", "gauge", text, ("type",), self.sizes)
        text = "[ALPHA] Changes stored for attempts in progress."
        families.pulled("scheduler_inflight_events", "gauge", text, ("event",), self.in_flight)
        text = "[BETA] Concurrent activities, by operation."
        families.pulled("scheduler_goroutines", "gauge", text, ("operation",), self.routines)

    def _show_lanes(self, families: Families) -> None:
        dispatcher = self._scheduler.dispatcher
        text = "[BETA] Queued writes, by lane."
        read = self._by_lane(dispatcher.queued_count)
        families.pulled("workqueue_depth", "gauge", text, ("name",), read)
        if isinstance(dispatcher, MeasuredDispatcher):
            text = "[BETA] Seconds spent on writes in flight, by lane; grows while one is stuck."
            read_s = self._by_lane(dispatcher.unfinished_s)
            families.pulled("workqueue_unfinished_work_seconds", "gauge", text, ("name",), read_s)
            text = "[BETA] Seconds spent on the oldest write in flight, by lane."
            name = "workqueue_longest_running_processor_seconds"
            read_s = self._by_lane(dispatcher.longest_s)
            families.pulled(name, "gauge", text, ("name",), read_s)
            if self._metrics.client.calls is not None:
                text, read_calls = "[ALPHA] Queued calls, by type.", dispatcher.pending_calls
                name = "scheduler_pending_async_api_calls"
                families.pulled(name, "gauge", text, ("call_type",), read_calls)
        text = "[ALPHA] Queued writes, by lane."
        families.pulled("asched_lane_queued", "gauge", text, ("lane",), read)
        text = "[ALPHA] Requests in flight, by lane."
        read = self._by_lane(dispatcher.in_flight_count)
        families.pulled("asched_lane_requests_in_flight", "gauge", text, ("lane",), read)
        text = "[ALPHA] Writes dropped because a lane was full, by lane."
        read = self._by_lane(dispatcher.dropped_count)
        families.pulled("asched_lane_dropped_total", "counter", text, ("lane",), read)

    def _show_work(self, families: Families) -> None:
        machine, inbox = self._scheduler.machine, self._scheduler.inbox
        text = "[ALPHA] Nodes that no pool uses, because several pools select them."
        families.pulled("asched_nodes_in_several_pools", "gauge", text, (), self.in_several_pools)
        text = "[ALPHA] Facts queued for the scheduling loop."
        families.pulled("asched_inbox_depth", "gauge", text, (), lambda: {(): len(inbox)})
        text = "[ALPHA] Pods being bound."
        families.pulled(
            "asched_bindings_under_way", "gauge", text, (), lambda: {(): machine.bindings}
        )
        text = "[ALPHA] Pods requeued only by a timer."
        families.pulled("asched_sweep_rescues_total", "counter", text, (), self.rescues)
        text = "[ALPHA] Dry runs of requeued pods, by whether an attempt follows."
        families.pulled("asched_queue_dry_runs_total", "counter", text, ("result",), self.dry_runs)
        text = "[ALPHA] Node rows filtered or scored by plugins."
        read = self._by_runner(lambda runner: runner.cache.work.rows)
        families.pulled("asched_rows_computed_total", "counter", text, ("profile",), read)
        text = "[ALPHA] Results of a plugin recomputed for all rows."
        read = self._by_runner(lambda runner: runner.cache.work.full_passes)
        families.pulled("asched_full_passes_total", "counter", text, ("profile",), read)
        text = "[ALPHA] Classes of equal pods with cached results."
        read = self._by_runner(lambda runner: runner.cache.size)
        families.pulled("asched_class_states", "gauge", text, ("profile",), read)

        text = "[ALPHA] Reserved slots of ProvisioningRequests."
        holds = self._context.cluster.holds
        families.pulled("asched_holds", "gauge", text, (), lambda: {(): len(holds)})
        text = "[ALPHA] Resources reserved for pods to come, in each resource's unit; cpu in cores."
        families.pulled("asched_held_room", "gauge", text, ("resource",), self.held)

        text = "[ALPHA] Promised starts, by certainty."
        families.pulled("asched_promised_starts", "gauge", text, ("certainty",), self.starts)
        text = "[ALPHA] Outcomes of promised starts."
        families.pulled(
            "asched_promised_start_changes_total", "counter", text, ("change",), self.start_changes
        )
        text = "[ALPHA] Postponed promised starts, by cause."
        families.pulled("asched_start_delays_total", "counter", text, ("cause",), self.delays)

        units = self._context.cluster.singleton(RebalanceUnits)
        text, name = "[ALPHA] Pods evicted to make room.", "asched_rebalance_moves_total"
        families.pulled(name, "counter", text, (), lambda: {(): units.moves})
        text = "[ALPHA] Gangs and pods placed on room that moved pods made."
        name = "asched_rebalance_units_placed_total"
        families.pulled(name, "counter", text, (), lambda: {(): units.placed})
        text, name = "[ALPHA] Plans of moves, by outcome.", "asched_rebalance_plans_total"
        families.pulled(name, "counter", text, ("outcome",), self.move_plans)
        text = "[ALPHA] Time between evictions and the placement of successors, for all pods."
        name = "asched_rebalance_pod_seconds_lost_total"
        families.pulled(name, "counter", text, (), lambda: {(): units.lost_s})

        text = "[ALPHA] ProvisioningRequests in progress, by whether slots are reserved for them."
        read = self.requests
        families.pulled("asched_provisioning_requests", "gauge", text, ("state",), read)

    def _show_watches(self, families: Families) -> None:
        text = "[ALPHA] Time since a watch was last known to be complete."
        silent_s = self._scheduler.watchdog.silent_s
        read = self._by_kind(lambda reflector: silent_s(reflector.kind))
        families.pulled("asched_watch_staleness_seconds", "gauge", text, ("resource",), read)
        text = "[ALPHA] Watches found to deliver nothing."
        read = self._by_kind(lambda reflector: reflector.doubt.silent_count)
        families.pulled("asched_watch_silences_total", "counter", text, ("resource",), read)
        text = "[ALPHA] Complete lists processed."
        read = self._by_kind(lambda reflector: reflector.list_count)
        families.pulled("asched_watch_lists_total", "counter", text, ("resource",), read)
        text = "[ALPHA] Malformed objects."
        read = self._by_kind(lambda reflector: reflector.malformed_count)
        families.pulled("asched_malformed_objects_total", "counter", text, ("resource",), read)
        if self._metrics.scheduler.handling is not None:
            text = "[ALPHA] Changes queued for the scheduling loop, by kind."
            name = "informer_queued_items"
            families.pulled(name, "gauge", text, INFORMER_LABELS, self.queued_changes)
            text = "[ALPHA] The last 15 digits of the resource version up to which a kind is known."
            name = "informer_store_resource_version"
            families.pulled(name, "gauge", text, INFORMER_LABELS, self.versions)

    # --- readers ---------------------------------------------------------------------------------

    def pending(self) -> Values:
        """Pods by queue; since 1.37 pods whose PodGroup does not exist have one of their own."""
        pending = self._context.queue.places.pending()._asdict()
        if self._metrics.scheduler.incoming_entities is not None:
            incomplete = sum([not self._root_of(queued) for queued in self._of_groups()])
            pending |= {"gated": pending["gated"] - incomplete, "incomplete": incomplete}
        return {(name,): count for name, count in pending.items()}

    def _of_groups(self) -> list[QueuedPod]:
        if not self._context.gangs.are_tried:
            return []
        return [queued for queued in self._context.queue.places.all() if queued.gang]

    def _root_of(self, queued: QueuedPod) -> str:
        """The key of a pod's group, or of its tree; empty while the pod waits for the object."""
        if is_coscheduled(queued.gang):
            return queued.gang
        root = self._context.cluster.pod_groups.root_of(queued.gang)
        return root or ("" if queued.is_gated else queued.gang)

    def entities(self) -> Values:
        """Pods without a group, and groups, by queue; a group is where its foremost pod is. Since
        1.38 a tree of groups counts once.
        """
        places = self._context.queue.places
        pods = Counter(places.pending()._asdict())
        foremost: dict[str, int] = {}
        order = tuple(pods)
        counts_trees = self._metrics.scheduler.counts_trees
        kinds = ("podgroup", "compositepodgroup")[: 1 + counts_trees]
        for queued in self._of_groups():
            name = "gated" if queued.is_gated else places.name_of(queued)
            pods[name] -= 1
            if root := self._root_of(queued):
                at, key = order.index(name), root if counts_trees else queued.gang
                foremost[key] = min(at, foremost.get(key, at))
        found: dict[tuple[str, ...], float] = {(name, kind): 0 for kind in kinds for name in order}
        found |= {(name, "pod"): count for name, count in pods.items()}
        for key, at in foremost.items():
            found[order[at], type_of(key)] += 1
        return found

    def queued_changes(self) -> Values:
        queued = self._scheduler.inbox.by_kind()
        watched = [reflector.served_kind for reflector in self._scheduler.reflectors.values()]
        return {informer_of(kind): queued[kind] for kind in watched}

    def versions(self) -> Values:
        """The resource version by watched kind, once it was listed."""
        return {
            informer_of(reflector.served_kind): int(reflector.version[-15:])
            for reflector in self._scheduler.reflectors.values()
            if reflector.version.isdecimal()
        }

    def sizes(self) -> Values:
        placed = list(self._context.cluster.placed.values())
        return {
            ("assumed_pods",): sum(info.assumed for info in placed),
            ("nodes",): self._context.cluster.nodes.count,
            ("pods",): len(placed),
        }

    def held(self) -> Values:
        """Resources that holds reserve, by name."""
        found = Counter[str]()
        for hold in self._context.cluster.holds.all():
            for place in hold.places:
                what = place.what
                found.update(
                    what.accounted if isinstance(what, HeldAmounts) else what.cls.accounted
                )
        return {(name,): amount / 1000 if name == CPU else amount for name, amount in found.items()}

    def starts(self) -> Values:
        promised = self._context.cluster.singleton(Reservations).all()
        hard = sum(promise.is_hard for promise in promised)
        return {("hard",): hard, ("soft",): len(promised) - hard}

    def start_changes(self) -> Values:
        outcomes = self._context.cluster.singleton(StartTimes).outcomes
        return {(change,): outcomes[change] for change in START_CHANGES}

    def move_plans(self) -> Values:
        outcomes = self._context.cluster.singleton(RebalanceUnits).outcomes
        return {(outcome,): outcomes[outcome] for outcome in MOVE_OUTCOMES}

    def delays(self) -> Values:
        causes = self._context.cluster.singleton(StartTimes).causes
        return {(cause,): causes[cause] for cause in START_CAUSES}

    def requests(self) -> Values:
        """The numbers of requests with and without slots."""
        cluster = self._context.cluster
        booked = len(cluster.singleton(Bookings))
        waiting = max(len(cluster.singleton(ProvisioningRequests).tracked) - booked, 0)
        return {("held",): booked, ("waiting",): waiting}

    def dry_runs(self) -> Values:
        due_filter = self._context.queue.due_filter
        return {("tried",): due_filter.tried, ("waiting",): due_filter.not_tried}

    def in_flight(self) -> Values:
        """Markers and changes by label."""
        counts = self._context.queue.in_flight.counts.copy()
        return {(label,): count for label, count in counts.items()}

    def routines(self) -> Values:
        """Concurrent activities, each shown once it has occurred."""
        counts: dict[str, int | None] = {}
        if self._metrics.scheduler.attempts.children:
            counts["binding"] = self._scheduler.machine.bindings
        dispatcher = self._scheduler.dispatcher
        if isinstance(dispatcher, MeasuredDispatcher):
            counts[names.DEFAULT_PREEMPTION] = dispatcher.evicting
            counts["prioritizing_extender"] = dispatcher.prioritizing
        return {(operation,): n for operation, n in counts.items() if n is not None}

    def rescues(self) -> Values:
        incoming = self._metrics.scheduler.incoming_pods.children.copy()
        label = UNSCHEDULABLE_TIMEOUT.label
        return {(): sum(child.value for (_, event), child in incoming.items() if event == label)}

    def in_several_pools(self) -> Values:
        """Of the profiles, which all have the same pools."""
        runners = iter(self._scheduler.machine.context.runners.values())
        pools = next(runners).profile.pools
        return {(): 0 if pools is None else len(pools.nodes_in_several())}

    def _by_lane(self, read: Callable[[Lane], float]) -> Callable[[], Values]:
        return lambda: {(LANE_NAMES[lane],): read(lane) for lane in Lane}

    def _by_kind(self, read: Callable[[Any], float]) -> Callable[[], Values]:
        reflectors = self._scheduler.reflectors
        return lambda: {(kind.plural,): read(reflector) for kind, reflector in reflectors.items()}

    def _by_runner(self, read: Callable[[Runner], float]) -> Callable[[], Values]:
        return lambda: {(name,): read(runner) for name, runner in self._context.runners.items()}
