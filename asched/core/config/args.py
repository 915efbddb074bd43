"""Args of the in-tree plugins: one frozen record for each `<Plugin>Args` kind of the v1 API.

Rules   a record's own defaults are kube-scheduler 1.36's, with its default feature gates;
        a range is checked in `validate.py`, never here; durations are whole nanoseconds.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from asched import names

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


class ResourceSpec(msgspec.Struct, frozen=True):
    """A resource that counts in a score, and its weight."""

    name: str = ""
    weight: int = 1


class UtilizationShapePoint(msgspec.Struct, frozen=True):
    """One corner of a piecewise linear function: utilization 0..100 in per cent, score 0..10."""

    utilization: int = 0
    score: int = 0


CPU_AND_MEMORY: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class RequestedToCapacityRatio(msgspec.Struct, frozen=True):
    """The function used by the strategy of that name."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True):
    """How NodeResourcesFit scores."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


#: The strategy is missing; rejected when the plugin is built.
NO_STRATEGY: Final = ScoringStrategy("", ())


class NodeResourcesFitArgs(msgspec.Struct, frozen=True):
    """`ignored_resources` are full names; `ignored_resource_groups` the part before the slash."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(msgspec.Struct, frozen=True):
    """The resources whose utilization should be balanced; every weight must be 1."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeAffinityArgs(msgspec.Struct, frozen=True):
    """`added_affinity` is the v1.NodeAffinity as written, validated, or None."""

    added_affinity: Mapping[str, Any] | None = None


class DefaultSpreadConstraint(msgspec.Struct, frozen=True):
    """A default constraint; `label_selector` must stay None, it is derived for each pod."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: Mapping[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodTopologySpreadArgs(msgspec.Struct, frozen=True):
    """`System` means upstream's two built-in constraints, `List` those in `default_constraints`."""

    default_constraints: tuple[DefaultSpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class InterPodAffinityArgs(msgspec.Struct, frozen=True):
    """`hard_pod_affinity_weight` 0..100 scores the symmetry of required affinity; 0 is kept."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class VolumeBindingArgs(msgspec.Struct, frozen=True):
    """`shape` None: not set; it needs the gate StorageCapacityScoring."""

    bind_timeout_s: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DynamicResourcesArgs(msgspec.Struct, frozen=True):
    """Timeouts of allocation and of binding conditions; None where the feature gate is off."""

    filter_timeout_ns: int | None = 10_000_000_000
    binding_timeout_ns: int | None = 600_000_000_000


class DefaultPreemptionArgs(msgspec.Struct, frozen=True):
    """How many candidate nodes a dry run covers: the larger of a share and a number."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class CoschedulingArgs(msgspec.Struct, frozen=True):
    """The args of kubernetes-sigs/scheduler-plugins, and one of our own: whether asched writes the
    status of PodGroups. `pod_group_reject_percentage` has no effect: no pod waits at Permit.
    """

    permit_waiting_time_s: int = 60
    pod_group_backoff_s: int = 0
    pod_group_reject_percentage: int = 10
    status_controller: bool = True


class CheckAndHoldArgs(msgspec.Struct, frozen=True):
    """Our own: the ProvisioningClass to serve, how long the places of an accepted request are
    reserved at most, which share of the cluster the requests of a namespace may reserve, and the
    priority of reserved places: pods above it may preempt them. `keep_nodes`: autoscalers are kept
    from removing nodes with such places.
    """

    provisioning_class_name: str = "check-and-hold.asched.dev"
    hold_s: int = 600
    max_namespace_percentage: int = 10
    priority: int = 0
    keep_nodes: bool = False


class BackfillArgs(msgspec.Struct, frozen=True):
    """Our own: how many waiting gangs and pods get a reserved start, how far ahead it may be, which
    share of the cluster a namespace may reserve, whether a start may rely on ends that are not
    enforced, and on the duration of equal pods. The largest number of reservations of all profiles
    counts.
    """

    reservations: int = 1
    horizon_s: int = 86_400
    max_namespace_percentage: int = 10
    soft_ends: bool = False
    learn_durations: bool = False


class CapacitySchedulingArgs(msgspec.Struct, frozen=True):
    """Our own: whether a namespace within its min is admitted although other namespaces have
    borrowed the rest, and whether asched writes the status of ElasticQuotas. scheduler-plugins has
    no such args: it rejects such a pod, and has a controller of its own for the status.
    """

    guarantees_min: bool = False
    status_controller: bool = True


PluginArgs = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeAffinityArgs
    | PodTopologySpreadArgs
    | InterPodAffinityArgs
    | VolumeBindingArgs
    | DynamicResourcesArgs
    | DefaultPreemptionArgs
    | CoschedulingArgs
    | CheckAndHoldArgs
    | CapacitySchedulingArgs
    | BackfillArgs
)

#: The in-tree plugins that have args; each kind is called `<plugin>Args`.
ARGS_TYPES: Final[Mapping[str, type[PluginArgs]]] = {
    names.BACKFILL: BackfillArgs,
    names.CAPACITY_SCHEDULING: CapacitySchedulingArgs,
    names.CHECK_AND_HOLD: CheckAndHoldArgs,
    names.COSCHEDULING: CoschedulingArgs,
    names.DEFAULT_PREEMPTION: DefaultPreemptionArgs,
    names.DYNAMIC_RESOURCES: DynamicResourcesArgs,
    names.INTER_POD_AFFINITY: InterPodAffinityArgs,
    names.NODE_AFFINITY: NodeAffinityArgs,
    names.NODE_RESOURCES_BALANCED_ALLOCATION: NodeResourcesBalancedAllocationArgs,
    names.NODE_RESOURCES_FIT: NodeResourcesFitArgs,
    names.POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs,
    names.VOLUME_BINDING: VolumeBindingArgs,
}

#: Args of the internal version: Go's zero values, since no defaults are applied.
BARE_ARGS: Final[Mapping[str, PluginArgs]] = {
    names.BACKFILL: BackfillArgs(),
    names.CAPACITY_SCHEDULING: CapacitySchedulingArgs(),
    names.CHECK_AND_HOLD: CheckAndHoldArgs(),
    names.COSCHEDULING: CoschedulingArgs(0, 0, 0),
    names.DEFAULT_PREEMPTION: DefaultPreemptionArgs(0, 0),
    names.DYNAMIC_RESOURCES: DynamicResourcesArgs(None, None),
    names.INTER_POD_AFFINITY: InterPodAffinityArgs(0),
    names.NODE_AFFINITY: NodeAffinityArgs(),
    names.NODE_RESOURCES_BALANCED_ALLOCATION: NodeResourcesBalancedAllocationArgs(()),
    names.NODE_RESOURCES_FIT: NodeResourcesFitArgs(scoring_strategy=NO_STRATEGY),
    names.POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs(defaulting_type=""),
    names.VOLUME_BINDING: VolumeBindingArgs(0),
}


def kind_of_args(plugin: str) -> str:
    """The kind of an args document of this plugin."""
    return f"{plugin}Args"
