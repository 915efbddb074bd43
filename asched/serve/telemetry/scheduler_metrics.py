"""The scheduler_* metrics of kube-scheduler 1.36.

Names, labels and buckets are kube-scheduler's, and so is which of them exist at the start. Families
without a meaning here are missing: equal pods are batched by classes only (`batch_*`,
`get_node_hint_*`, `store_schedule_results_*`, the point `Sign`). Those of the API dispatcher
(`async_api_call_*`) exist behind their gate.

`plugin_evaluation_total` counts calls as upstream does: once per pod at PreFilter and PreScore,
once per node at Filter and Score, including cached results. Durations of single plugins are
measured for one attempt in ten.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/metrics, and recorded pages
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final

from asched.core.cluster.group_trees import COMPOSITE
from asched.core.model.kinds import Kind
from asched.core.model.lru import Lru
from asched.core.queue.queued import QueuedPod
from asched.serve.telemetry.instruments import Families, Family, Histogram, Value, exponential

ATTEMPT_BOUNDS: Final = exponential(0.001, 2, 15)
POINT_BOUNDS: Final = exponential(0.0001, 2, 12)
PLUGIN_BOUNDS: Final = exponential(0.00001, 1.5, 20)
SLI_BOUNDS: Final = exponential(0.01, 2, 20)
TRIES_BOUNDS: Final = exponential(1, 2, 5)
VICTIMS_BOUNDS: Final = exponential(1, 2, 7)
GROUP_VICTIMS_BOUNDS: Final = exponential(1, 2, 11)
PREEMPTION_BOUNDS: Final = exponential(0.001, 2, 16)
HANDLING_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BINDING_WAIT_BOUNDS: Final = exponential(0.1, 2, 14)

#: Pod groups whose queue is remembered, to count their moves once; the oldest are forgotten.
GROUPS_MAX: Final = 10_000

#: Labels of the families of watched kinds.
INFORMER_LABELS: Final = ("name", "group", "version", "resource")

#: `attempts` of the SLI is exact up to here; "15+" beyond.
ATTEMPTS_EXACT: Final = 14


@cache
def informer_of(kind: Kind) -> tuple[str, str, str, str]:
    """The values of INFORMER_LABELS; the name is that of kube-scheduler's informers."""
    group, _, version = kind.group_version.rpartition("/")
    return "kube-scheduler", group, version, kind.plural


def type_of(group: str) -> str:
    """What metrics of the queues call a group, by its key."""
    return "compositepodgroup" if group.startswith(COMPOSITE) else "podgroup"


class GroupMetrics:
    """The families of pod groups; `counts_room`: those of preemption for groups as well."""

    def __init__(self, families: Families, *, counts_room: bool) -> None:
        self.attempts = families.counter(
            "scheduler_podgroup_schedule_attempts_total",
            "[ALPHA] Attempts to schedule a pod group by result: scheduled, unschedulable,"
            " waiting_on_preemption or error (something failed).",
            ("result", "profile"),
        )
        self.attempt_duration = families.histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "[ALPHA] Time of one attempt at a pod group, until its pods are being bound.",
            ATTEMPT_BOUNDS,
            ("result", "profile"),
        )
        self.algorithm_duration = families.histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "[ALPHA] Time to find nodes for the pods of a group, or that there are none.",
            ATTEMPT_BOUNDS,
        ).of()
        self.room_attempts: Family[Value] | None = None
        if not counts_room:
            return
        self.room_attempts = families.counter(
            "scheduler_workload_preemption_attempts_total",
            "[ALPHA] Preemption attempts for a whole group, by their status.",
            ("result",),
        )
        self.room_victims = families.histogram(
            "scheduler_workload_preemption_victims",
            "[ALPHA] Pods evicted for one group.",
            GROUP_VICTIMS_BOUNDS,
        ).of()
        self.room_search = families.histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "[ALPHA] Time to find the victims of preemption for a group, by status.",
            PREEMPTION_BOUNDS,
            ("preemptor", "result"),
        )
        self.evictions = families.histogram(
            "scheduler_preemption_execution_duration_seconds",
            "[ALPHA] Time to evict the victims of one preemption; preemptor: pod or podgroup.",
            PREEMPTION_BOUNDS,
            ("preemptor", "result"),
        )
        self._disruptions = families.histogram(
            "scheduler_preemption_workload_disruptions",
            "[ALPHA] Victims of one preemption that belong to groups; a group that is evicted as a"
            " whole counts once.",
            GROUP_VICTIMS_BOUNDS,
            ("preemptor",),
        )
        self._violations = families.counter(
            "scheduler_preemption_pdb_violations_total",
            "[ALPHA] Evictions of preemption that a disruption budget does not allow.",
            ("preemptor",),
        )

    def evicting(self, preemptor: str, violations: int, disruptions: int) -> None:
        if self.room_attempts is not None:
            if disruptions:
                self._disruptions.of(preemptor).observe(disruptions)
            if violations:
                self._violations.of(preemptor).value += violations


class PlacementMetrics:
    """The families of placements of pod groups, behind TopologyAwareWorkloadScheduling."""

    def __init__(self, families: Families) -> None:
        self.generated = families.counter(
            "scheduler_generated_placements_total",
            "[ALPHA] Placements that pod groups could choose from.",
            ("profile",),
        )
        self.evaluations = families.counter(
            "scheduler_placement_evaluations_total",
            "[ALPHA] Placements found to take a pod group (feasible) or not (infeasible).",
            ("result", "profile"),
        )
        self.durations = families.histogram(
            "scheduler_placement_evaluation_duration_seconds",
            "[ALPHA] Time to find out whether one placement takes a pod group; placements that are"
            " counted in one pass share its time.",
            ATTEMPT_BOUNDS,
            ("result", "profile"),
        )


class SchedulerMetrics:
    """All scheduler_* families; the methods are the measuring half of `core.cycle.Observer`."""

    def __init__(self, families: Families) -> None:
        self._queue_families(families)
        self._attempt_families(families)
        self._point_families(families)
        self._preemption_families(families)
        self._plugin_families(families)
        self._families = families
        self._groups: GroupMetrics | None = None
        #: whether preemption for groups has families of its own, as since 1.37
        self.counts_room = False
        #: moves of pods without a group, and of groups; None before 1.37
        self.incoming_entities: Family[Value] | None = None
        #: whether a tree of groups counts once there, as since 1.38; by the key of its root
        self.counts_trees = False
        self.root_of: Callable[[str], str] = str
        self._placements: PlacementMetrics | None = None
        #: by kind; None before 1.37
        self.handling: Family[Histogram] | None = None
        self._queue_of_group: Lru[str, str] = Lru(GROUPS_MAX)
        #: (point, profile, names of the plugins) -> count; expanded when a page is made, because
        #: one addition per pod is cheaper than thirty.
        self._evaluated: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._known_plugins: tuple[tuple[str, str, str], ...] = ()

    def _attempt_families(self, families: Families) -> None:
        self.attempts = families.counter(
            "scheduler_schedule_attempts_total",
            "[STABLE] Attempts to schedule a pod by result: scheduled, unschedulable (no node fits)"
            " or error (something failed).",
            ("result", "profile"),
        )
        self.attempt_duration = families.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Time of one attempt, from the queue to the end of binding.",
            ATTEMPT_BOUNDS,
            ("result", "profile"),
        )
        self._algorithm_family = families.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "[ALPHA] Time to find a node, without binding.",
            ATTEMPT_BOUNDS,
        )
        self.algorithm_duration = self._algorithm_family.of()
        self.sli_duration = families.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] From a pod's first entry into the active queue until it is bound, all attempts"
            " included.",
            SLI_BOUNDS,
            ("attempts",),
        )
        self.tries = families.histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Attempts needed to schedule a pod.",
            TRIES_BOUNDS,
        ).of()
        self.after_flush = families.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "[ALPHA] Pods scheduled after only a timer requeued them: a hint may be missing.",
        ).of()

    def _queue_families(self, families: Families) -> None:
        self.incoming_pods = families.counter(
            "scheduler_queue_incoming_pods_total",
            "[STABLE] Pods that entered a queue, by queue and by what moved them.",
            ("queue", "event"),
        )
        self.unschedulable_pods = families.gauge(
            "scheduler_unschedulable_pods",
            "[BETA] Pods that wait because of a plugin; a pod counts for each plugin that rejected"
            " it.",
            ("plugin", "profile"),
        )
        self.hint_duration = families.histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] Time of a queueing hint of a plugin.",
            PLUGIN_BOUNDS,
            ("plugin", "event", "hint"),
        )
        self.event_duration = families.histogram(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] Time to process a watched change, including requeued pods.",
            POINT_BOUNDS,
            ("event",),
        )

    def _point_families(self, families: Families) -> None:
        self.point_duration = families.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Time of all plugins of an extension point in one attempt.",
            POINT_BOUNDS,
            ("extension_point", "status", "profile"),
        )
        self.plugin_duration = families.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "[ALPHA] Time of one call of a plugin at an extension point, from sampled attempts.",
            PLUGIN_BOUNDS,
            ("plugin", "extension_point", "status"),
        )
        families.pulled(
            "scheduler_plugin_evaluation_total",
            "counter",
            "[BETA] Calls of a plugin by extension point (PreFilter, Filter, PreScore and Score).",
            ("plugin", "extension_point", "profile"),
            self._evaluations,
        )
        self.permit_wait = families.histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Time a pod waited on Permit.",
            ATTEMPT_BOUNDS,
            ("result",),
        )

    def _preemption_families(self, families: Families) -> None:
        self.preemption_victims = families.histogram(
            "scheduler_preemption_victims",
            "[STABLE] Pods evicted for one preemption.",
            VICTIMS_BOUNDS,
        ).of()
        self.preemption_attempts = families.counter(
            "scheduler_preemption_attempts_total",
            "[STABLE] Preemption attempts.",
        ).of()
        self.preemption_duration = families.histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] Time to evict the victims of one preemption.",
            SLI_BOUNDS,
            ("result",),
        )
        self.preemption_ended = families.counter(
            "scheduler_preemption_goroutines_execution_total",
            "[ALPHA] Completed preemptions.",
            ("result",),
        )

    def _plugin_families(self, families: Families) -> None:
        self.device_bindings = families.counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "[ALPHA] Allocated devices with binding conditions, once per attempt, by the result of"
            " the wait: success, failure, timeout or error.",
            ("profile", "driver", "status"),
        )
        self.device_wait = families.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "[ALPHA] Time PreBind waited for binding conditions, once per device of the pod.",
            BINDING_WAIT_BOUNDS,
            ("profile", "driver", "status"),
        )
        self.volume_failures = families.counter(
            "scheduler_volume_scheduling_stage_error_total",
            "[ALPHA] Errors about a pod's volumes, by step: predicate (choice) or bind.",
            ("operation",),
        )

    def show_entities(self) -> None:
        """Add the families that count a pod group once, whatever its size."""
        self.incoming_entities = self._families.counter(
            "scheduler_queue_incoming_entities_total",
            "[ALPHA] Pods without a group, and pod groups, that entered a queue, by queue, by what"
            " moved them and by type: pod, podgroup, or, since Kubernetes 1.38, compositepodgroup.",
            ("queue", "event", "type"),
        )

    def show_placements(self) -> None:
        self._placements = PlacementMetrics(self._families)

    def show_informers(self) -> None:
        """Add the time to process a change, by kind; `Figures` has the other two families."""
        self.handling = self._families.histogram(
            "informer_processing_latency_seconds",
            "[ALPHA] Time to process a watched change, including requeued pods; without lists.",
            HANDLING_BOUNDS,
            INFORMER_LABELS,
        )

    def promote(self) -> None:
        """Show families of 1.36's alpha stage as those of the beta stage."""
        for family in (self.plugin_duration, self._algorithm_family):
            family.text = family.text.replace("[ALPHA]", "[BETA]")

    # --- reports of the machine ------------------------------------------------------------------

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        self.attempts.of(result, profile).value += 1
        self.attempt_duration.of(result, profile).observe(duration_s)

    def know_groups(self) -> None:
        """Show the families of pod groups, which upstream has only behind GenericWorkload."""
        if self._groups is None:
            self._groups = GroupMetrics(self._families, counts_room=self.counts_room)

    def group_attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        if self._groups is not None:
            self._groups.attempts.of(result, profile).value += 1
            self._groups.attempt_duration.of(result, profile).observe(duration_s)

    def group_algorithm_ran(self, duration_s: float) -> None:
        if self._groups is not None:
            self._groups.algorithm_duration.observe(duration_s)

    def algorithm_ran(self, duration_s: float) -> None:
        self.algorithm_duration.observe(duration_s)

    def pod_scheduled(
        self,
        profile: str,  # noqa: ARG002 - part of the report
        attempts: int,
        since_first_attempt_s: float,
        *,
        was_flushed: bool,
    ) -> None:
        label = str(attempts) if attempts <= ATTEMPTS_EXACT else "15+"
        self.sli_duration.of(label).observe(since_first_attempt_s)
        self.tries.observe(attempts)
        if was_flushed:
            self.after_flush.value += 1

    def point_ran(self, point: str, profile: str, status: str, duration_s: float) -> None:
        self.point_duration.of(point, status, profile).observe(duration_s)

    def points_passed(self, point: str, profile: str, status: str, times: int) -> None:
        self.point_duration.of(point, status, profile).observe(0.0, times)

    def plugin_ran(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        self.plugin_duration.of(plugin, point, status).observe(duration_s)

    def evaluated(self, point: str, profile: str, plugins: tuple[str, ...], times: int) -> None:
        key = (point, profile, plugins)
        self._evaluated[key] = self._evaluated.get(key, 0) + times

    def permit_waited(self, result: str, duration_s: float) -> None:
        self.permit_wait.of(result).observe(duration_s)

    def fact_handled(self, label: str, duration_s: float, kind: Kind | None) -> None:
        self.event_duration.of(label).observe(duration_s)
        if self.handling is not None and kind is not None:
            self.handling.of(*informer_of(kind)).observe(duration_s)

    def preemption_tried(self) -> None:
        self.preemption_attempts.value += 1

    def preempting(self, victims: int, violations: int, disruptions: int) -> None:
        self.preemption_victims.observe(victims)
        if self._groups is not None:
            self._groups.evicting("pod", violations, disruptions)

    def placements_generated(self, profile: str, count: int) -> None:
        if self._placements is not None:
            self._placements.generated.of(profile).value += count

    def placements_evaluated(
        self, profile: str, *, is_feasible: bool, duration_s: float, times: int = 1
    ) -> None:
        if self._placements is not None and times:
            result = "feasible" if is_feasible else "infeasible"
            self._placements.evaluations.of(result, profile).value += times
            self._placements.durations.of(result, profile).observe(duration_s, times)

    def group_preempting(
        self, code: str, victims: int, duration_s: float, violations: int, disruptions: int
    ) -> None:
        groups, histogram = self._groups, self.preemption_victims
        if groups is not None and groups.room_attempts is not None:
            groups.room_attempts.of(code).value += 1
            groups.room_search.of("podgroup", code).observe(duration_s)
            groups.evicting("podgroup", violations, disruptions)
            histogram = groups.room_victims
        if victims:
            histogram.observe(victims)

    def preempted(self, result: str, duration_s: float, preemptor: str) -> None:
        groups = self._groups
        if groups is not None and groups.room_attempts is not None:
            groups.evictions.of(preemptor, result).observe(duration_s)
        self.preemption_duration.of(result).observe(duration_s)
        self.preemption_ended.of(result).value += 1

    def incoming(self, queue: str, label: str, queued: QueuedPod | None = None) -> None:
        self.incoming_pods.of(queue, label).value += 1
        if self.incoming_entities is None:
            return
        gang = queued.gang if queued is not None else ""
        if gang and self.counts_trees:
            gang = self.root_of(gang) or gang
        if not gang:
            self.incoming_entities.of(queue, label, "pod").value += 1
        elif self._queue_of_group.get(gang) != queue:  # its further pods follow the first one
            self._queue_of_group.put(gang, queue)
            self.incoming_entities.of(queue, label, type_of(gang)).value += 1

    def unschedulable(self, plugin: str, profile: str, by: int) -> None:
        self.unschedulable_pods.of(plugin, profile).value += by

    def gates_ran(self, profile: str, duration_s: float) -> None:
        # Upstream reports this point as a success whatever its plugins say.
        self.point_duration.of("PreEnqueue", "Success", profile).observe(duration_s)

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        self.hint_duration.of(plugin, label, hint).observe(duration_s)

    def device_awaited(self, profile: str, driver: str, status: str, waited_s: float) -> None:
        self.device_wait.of(profile, driver, status).observe(waited_s)

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        self.device_bindings.of(profile, driver, status).value += 1

    def volumes_failed(self, operation: str) -> None:
        self.volume_failures.of(operation).value += 1

    # --- evaluations ------------------------------------------------------------------------------

    def know_plugins(self, known: Iterable[tuple[str, str, str]]) -> None:
        """Show these (plugin, point, profile) with a zero from the start."""
        self._known_plugins = tuple(known)

    def _evaluations(self) -> Mapping[tuple[str, ...], float]:
        counts: dict[tuple[str, ...], float] = dict.fromkeys(self._known_plugins, 0.0)
        for (point, profile, plugins), times in self._evaluated.copy().items():
            for plugin in plugins:
                key = (plugin, point, profile)
                counts[key] = counts.get(key, 0) + times
        return counts
