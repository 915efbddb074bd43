"""Args of the in-tree plugins: one frozen record for each `<Plugin>Args` kind of the v1 API.

Rules   a record's own defaults are kube-scheduler 1.36's, with its default feature gates; what a
        field declares is said in `fields.py`; checks that a range cannot express are in
        `validate_args.py`; durations are whole nanoseconds. A record's docstring has a line
        `field: meaning` for each field, which the configuration reference prints.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go,
        k8s.io/api/core/v1
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

from asched.core.config.fields import (
    ConfigDocument,
    ConfigRecord,
    FieldMark,
    Int32,
    Int64,
    MapOf,
    NeededGates,
    OptionalDuration,
    Scalar,
    ValueRange,
)
from asched.core.model.timestamp import NS_PER_SECOND
from asched.names import PREFIX

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"

PERCENT_MAX: Final = 100
#: A day.
HOLD_S_MAX: Final = 86_400
#: Each reservation costs one pass over its nodes for every attempt that it affects.
RESERVATIONS_MAX: Final = 64
HORIZON_S_MAX: Final = 31 * 86_400
NEW_NODES_MAX: Final = 1_000
#: Most pods that may be moved at a time, in a minute, or for a unit.
MOVES_MAX: Final = 1_000
SHAPES_MAX: Final = 16
SHAPE_SCORE_MAX: Final = 10
_PERCENT: Final = ValueRange(0, PERCENT_MAX)
_SHARE: Final = ValueRange(1, PERCENT_MAX)
_NOT_NEGATIVE: Final = ValueRange(0, math.inf, "must not be negative")
_BINDING_GATES: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")


class ResourceSpec(ConfigRecord, frozen=True):
    """A resource that counts in a score, and its weight."""

    name: str = ""
    weight: Annotated[Int64, FieldMark.ZERO_IS_ABSENT] = 1


class UtilizationShapePoint(ConfigRecord, frozen=True):
    """One corner of a piecewise linear function: utilization 0..100 in per cent, score 0..10."""

    utilization: Annotated[Int32, _PERCENT] = 0
    score: Annotated[Int32, ValueRange(0, SHAPE_SCORE_MAX)] = 0


CPU_AND_MEMORY: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
_Resources = Annotated[tuple[ResourceSpec, ...], FieldMark.ZERO_IS_ABSENT]


class RequestedToCapacityRatio(ConfigRecord, frozen=True):
    """The function used by the strategy of that name."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigRecord, frozen=True):
    """How NodeResourcesFit scores; a strategy without a type is rejected.

    type: `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`
    resources: Resources that are scored, with weights
    requested_to_capacity_ratio: Shape: score by utilization, for the strategy of that name
    """

    type: Annotated[str, FieldMark.OMIT_EMPTY] = ""
    resources: _Resources = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class MatchExpression(ConfigRecord, frozen=True):
    """One expression of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class AddedTerm(ConfigRecord, frozen=True):
    """Expressions that must all match."""

    match_expressions: tuple[MatchExpression, ...] = ()
    match_fields: tuple[MatchExpression, ...] = ()


class AddedSelector(ConfigRecord, frozen=True):
    """Terms, one of which must match."""

    node_selector_terms: Annotated[tuple[AddedTerm, ...] | None, FieldMark.PRINTED] = None


class AddedPreference(ConfigRecord, frozen=True):
    """A term that adds its weight to a node's score."""

    weight: Int32 = 0
    preference: AddedTerm = AddedTerm()


class AddedAffinity(ConfigRecord, frozen=True):
    """The node affinity of a pod."""

    required_during_scheduling_ignored_during_execution: AddedSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[AddedPreference, ...] = ()


class ConstraintSelector(ConfigRecord, frozen=True):
    """A label selector."""

    match_labels: Annotated[Mapping[str, str] | None, MapOf(Scalar.STRING)] = None
    match_expressions: tuple[MatchExpression, ...] = ()


class DefaultSpreadConstraint(ConfigRecord, frozen=True):
    """A default constraint; `label_selector` must stay None, it is derived for each pod."""

    max_skew: Annotated[Int32, ValueRange(1, math.inf, "not in valid range (0, inf)")] = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: Annotated[Mapping[str, Any] | None, ConstraintSelector, FieldMark.RAW] = None
    min_domains: Annotated[int | None, Scalar.INT32] = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PluginArgs(ConfigDocument, frozen=True):
    """Args of an in-tree plugin; the kind is called `<plugin>Args`."""


class BackfillArgs(PluginArgs, frozen=True):
    """Our own. The largest number of reservations of all profiles counts.

    reservations: Gangs and pods with a promised start at a time, 1 to 64
    horizon_s: How far away a promised start may be
    max_namespace_percentage: Share of each resource, and of the nodes, that the promises of one
        namespace may reserve; 100 is no limit
    soft_ends: Count ends that no controller enforces
    learn_durations: Count how long equal pods took; needs `softEnds`
    """

    reservations: Annotated[Int32, ValueRange(1, RESERVATIONS_MAX)] = 1
    horizon_s: Annotated[Int64, ValueRange(1, HORIZON_S_MAX)] = 86_400
    max_namespace_percentage: Annotated[Int64, _SHARE] = 10
    soft_ends: bool = False
    learn_durations: bool = False


class CapacitySchedulingArgs(PluginArgs, frozen=True):
    """Our own: scheduler-plugins rejects a pod within its min when other namespaces have borrowed
    the rest, and has a controller of its own for the status.

    guarantees_min: A namespace within its `min` is not refused because another namespace borrows
    status_controller: Write the status of ElasticQuotas, with `--status-controllers`
    """

    guarantees_min: bool = False
    status_controller: bool = True


class CheckAndHoldArgs(PluginArgs, frozen=True):
    """Our own.

    provisioning_class_name: The ProvisioningRequests that this scheduler answers
    hold_s: How long the places of an accepted request are reserved, at most
    max_namespace_percentage: Share of each resource, and of the nodes, that the requests of one
        namespace may reserve
    priority: Pods above this priority may take reserved places
    keep_nodes: Autoscalers are kept from removing nodes with reserved places
        ([Autoscalers](autoscalers.md))
    """

    provisioning_class_name: str = f"check-and-hold.{PREFIX}"
    hold_s: Annotated[Int64, ValueRange(1, HOLD_S_MAX)] = 600
    max_namespace_percentage: Annotated[Int32, _SHARE] = 10
    priority: Int32 = 0
    keep_nodes: bool = False


class CoschedulingArgs(PluginArgs, frozen=True):
    """The args of kubernetes-sigs/scheduler-plugins, and `status_controller`, our own.

    permit_waiting_time_s: Schedule timeout of groups that set none
    pod_group_backoff_s: Backoff of a group after a failed attempt
    pod_group_reject_percentage: No effect: no pod waits at Permit
    status_controller: Write the status of PodGroups, with `--status-controllers`
    """

    permit_waiting_time_s: Annotated[Int64, _NOT_NEGATIVE] = 60
    pod_group_backoff_s: Annotated[Int64, _NOT_NEGATIVE] = 0
    pod_group_reject_percentage: Annotated[Int32, _PERCENT] = 10
    status_controller: bool = True


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many candidate nodes a dry run covers, and `other_schedulers`, our own.

    min_candidate_nodes_percentage: Share of the nodes tried for preemption (kube-scheduler: 10,
        which also applies if only the number is given)
    min_candidate_nodes_absolute: Number of nodes tried for preemption; the larger of both counts
    other_schedulers: Schedulers that bind pods on the same nodes: where one took the room of
        evicted pods for a pod that is not less important, no pod is evicted for a minute
    """

    min_candidate_nodes_percentage: Annotated[Int32, _PERCENT] = 100
    min_candidate_nodes_absolute: Annotated[Int32, ValueRange(0, math.inf)] = 100
    other_schedulers: tuple[str, ...] = ()


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """Timeouts; None where the feature gate is off.

    filter_timeout_ns: Bound of the search for devices on a node: 100,000 devices for each second; 0
        is no bound
    binding_timeout_ns: Time to wait for binding conditions of devices
    """

    filter_timeout_ns: Annotated[
        OptionalDuration,
        FieldMark.PRINTED,
        NeededGates(("DRASchedulerFilterTimeout",)),
        ValueRange(0, math.inf, "must be zero or positive"),
    ] = 10 * NS_PER_SECOND
    binding_timeout_ns: Annotated[
        OptionalDuration,
        NeededGates(_BINDING_GATES),
        ValueRange(NS_PER_SECOND, math.inf, "must be at least 1 second"),
    ] = 600 * NS_PER_SECOND


class ShapeTaint(ConfigRecord, frozen=True):
    """A taint of the nodes of a shape."""

    key: str = ""
    value: Annotated[str, FieldMark.OMIT_EMPTY] = ""
    effect: str = ""


class NodeShape(ConfigRecord, frozen=True):
    """The nodes of an autoscaler's node group: what pods find on a new one, and how many more there
    may be.
    """

    name: str = ""
    labels: Annotated[Mapping[str, str] | None, MapOf(Scalar.STRING)] = None
    taints: tuple[ShapeTaint, ...] = ()
    allocatable: Annotated[Mapping[str, str] | None, MapOf(Scalar.STRING)] = None
    max_nodes: Annotated[Int32, ValueRange(1, NEW_NODES_MAX)] = 100


class GroupScaleUpArgs(PluginArgs, frozen=True):
    """Our own.

    node_shapes: The kinds of node that the autoscaler can add, preferred ones first
        ([Autoscalers](autoscalers.md))
    time_limit_s: How long a request for new nodes stays open
    backoff_s: Time until another request for the same gang
    max_requests_per_namespace: Open requests of a namespace
    max_nodes_per_namespace: New nodes in all open requests of a namespace
    """

    node_shapes: tuple[NodeShape, ...] = ()
    time_limit_s: Annotated[Int64, ValueRange(1, HOLD_S_MAX)] = 900
    backoff_s: Annotated[Int64, ValueRange(1, HOLD_S_MAX)] = 1800
    max_requests_per_namespace: Annotated[Int32, ValueRange(1, PERCENT_MAX)] = 4
    max_nodes_per_namespace: Annotated[Int32, ValueRange(1, NEW_NODES_MAX)] = 100


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """A weight of 0 is kept.

    hard_pod_affinity_weight: Score for nodes whose pods require affinity to the pod, 0 to 100
    ignore_preferred_terms_of_existing_pods: Do not score preferred terms of placed pods
    """

    hard_pod_affinity_weight: Annotated[Int32, _PERCENT] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArgs, frozen=True):
    """`added_affinity` is the v1.NodeAffinity as written, validated, or None.

    added_affinity: Node affinity that every pod of the profile has in addition
    """

    added_affinity: Annotated[Mapping[str, Any] | None, AddedAffinity, FieldMark.RAW] = None


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """The resources whose utilization should be balanced.

    resources: Resources to balance; each weight is 1
    """

    resources: _Resources = CPU_AND_MEMORY


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    """Which resources count, and how nodes are scored.

    ignored_resources: Extended resources that are not checked
    ignored_resource_groups: Prefixes of extended resources not checked
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """`System` means upstream's two built-in constraints, `List` those in `default_constraints`.

    default_constraints: Constraints of pods that have none; type `List`
    defaulting_type: `System` (the built-in constraints) or `List`
    """

    default_constraints: tuple[DefaultSpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, FieldMark.ZERO_IS_ABSENT, FieldMark.OMIT_EMPTY] = (
        SYSTEM_DEFAULTING
    )


class RebalanceArgs(PluginArgs, frozen=True):
    """Our own. A unit is a gang, or a pod by itself.

    priority: Units of this priority or a higher one have pods moved for them
    waiting_s: How long a unit waits before a plan is searched for it
    namespaces: Pods of these namespaces may be moved ...
    priority_classes: ... and pods of these PriorityClasses
    pause_s: A pod that is younger, such as the successor of a moved pod, is not moved
    backoff_s: Time until the next search for the same unit
    time_limit_s: A plan that is not carried out by then is abandoned
    max_moves_per_minute: Pods moved in a minute, for all units
    max_moves_at_once_per_namespace: Moved pods of a namespace whose successors have no node yet
    max_moves_at_once_per_controller: The same for a controller; 1 for a StatefulSet
    max_moves_per_unit: Pods moved for a unit, in all of its plans
    max_moves_per_pod: What a plan may cost: moved pods for each pod of the unit
    before_preemption: Pods are moved first, and evicted for good only if that does not help
    dry_run: Plans are reported; no pod is moved
    """

    priority: Int32 = 0
    waiting_s: Annotated[Int64, ValueRange(0, HOLD_S_MAX)] = 60
    namespaces: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    pause_s: Annotated[Int64, ValueRange(60, HOLD_S_MAX)] = 1800
    backoff_s: Annotated[Int64, ValueRange(1, HOLD_S_MAX)] = 600
    time_limit_s: Annotated[Int64, ValueRange(10, HOLD_S_MAX)] = 300
    max_moves_per_minute: Annotated[Int32, ValueRange(1, MOVES_MAX)] = 10
    max_moves_at_once_per_namespace: Annotated[Int32, ValueRange(1, MOVES_MAX)] = 2
    max_moves_at_once_per_controller: Annotated[Int32, ValueRange(1, MOVES_MAX)] = 1
    max_moves_per_unit: Annotated[Int32, ValueRange(1, MOVES_MAX)] = 8
    max_moves_per_pod: Annotated[Int32, ValueRange(1, MOVES_MAX)] = 2
    before_preemption: bool = False
    dry_run: bool = False


class VolumeBindingArgs(PluginArgs, frozen=True):
    """`shape` None: not set.

    bind_timeout_s: Time to wait for volumes to be bound
    shape: Score by used capacity; needs the gate StorageCapacityScoring
    """

    bind_timeout_s: Annotated[Int64, _NOT_NEGATIVE] = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


def kind_of_args(plugin: str) -> str:
    """The kind of an args document of this plugin."""
    return f"{plugin}Args"


#: The in-tree plugins that have args.
ARGS_TYPES: Final[Mapping[str, type[PluginArgs]]] = {
    args.__name__.removesuffix("Args"): args for args in PluginArgs.__subclasses__()
}
