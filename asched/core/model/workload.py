"""Namespaces, owners of pods, disruption budgets and pod groups."""

from typing import Any, Final

from asched.core.model.meta import ApiObject, LabelSelector, Record
from asched.core.model.pod import ResourceList


class Namespace(ApiObject, frozen=True, gc=False):
    """Only its labels are read."""


class ServiceSpec(Record, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class Service(ApiObject, frozen=True, gc=False):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(ServiceSpec, frozen=True, gc=False):
    replicas: int = 1


class ReplicationController(ApiObject, frozen=True, gc=False):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectorSpec(Record, frozen=True, gc=False):
    """The part of a spec that names pods by their labels."""

    selector: LabelSelector | None = None


class ReplicasSpec(SelectorSpec, frozen=True, gc=False):
    replicas: int = 1


class ReplicaSet(ApiObject, frozen=True, gc=False):
    spec: ReplicasSpec = ReplicasSpec()


class StatefulSet(ApiObject, frozen=True, gc=False):
    spec: ReplicasSpec = ReplicasSpec()


class OnPodCondition(Record, frozen=True, gc=False):
    type: str = ""
    status: str = "True"


class PodFailureRule(Record, frozen=True, gc=False):
    action: str = ""
    on_pod_conditions: tuple[OnPodCondition, ...] | None = None


class PodFailurePolicy(Record, frozen=True, gc=False):
    rules: tuple[PodFailureRule, ...] = ()


class JobSpec(Record, frozen=True, gc=False):
    active_deadline_seconds: int | None = None
    managed_by: str | None = None
    pod_failure_policy: PodFailurePolicy | None = None


class JobStatus(Record, frozen=True, gc=False):
    start_time: str | None = None


class Job(ApiObject, frozen=True, gc=False):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class PodDisruptionBudgetStatus(Record, frozen=True, gc=False):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(ApiObject, frozen=True, gc=False):
    spec: SelectorSpec = SelectorSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Condition(Record, frozen=True, gc=False):
    """metav1.Condition, of newer kinds; pods have their own type."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class GangPolicy(Record, frozen=True, gc=False):
    """`min_count` pods of a PodGroup, or `min_group_count` children of a CompositePodGroup."""

    min_count: int = 0
    min_group_count: int = 0


class PodGroupPolicy(Record, frozen=True, gc=False):
    gang: GangPolicy | None = None


class TopologyConstraint(Record, frozen=True, gc=False):
    key: str = ""


class PodGroupConstraints(Record, frozen=True, gc=False):
    topology: tuple[TopologyConstraint, ...] | None = None


class DisruptionMode(Record, frozen=True, gc=False):
    """Since v1alpha3: exactly one of the two is present, and empty."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class WorkloadReference(Record, frozen=True, gc=False):
    workload_name: str = ""


class PodGroupSpec(Record, frozen=True, gc=False):
    """`preemption_policy` is set where the API server's gate PodGroupPreemptionPolicy is on."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: PodGroupPolicy = PodGroupPolicy()
    scheduling_constraints: PodGroupConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None


class CoschedulingSpec(Record, frozen=True, gc=False):
    """`min_resources`: of the whole group, the sum of its pods' requests."""

    min_member: int = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class CoschedulingStatus(Record, frozen=True, gc=False):
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoschedulingGroup(ApiObject, frozen=True, gc=False):
    """A PodGroup of scheduling.x-k8s.io, as kubernetes-sigs/scheduler-plugins defines it."""

    spec: CoschedulingSpec = CoschedulingSpec()
    status: CoschedulingStatus = CoschedulingStatus()


class PodGroupStatus(Record, frozen=True, gc=False):
    conditions: tuple[Condition, ...] | None = None


#: The `disruptionMode` of a group that is evicted as a whole.
WHOLE_GROUP: Final = "PodGroup"


class PodGroup(ApiObject, frozen=True, gc=False):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def priority(self) -> int:
        """Priority of the group, whatever its pods have; 0 unless the API server has set it."""
        return self.spec.priority or 0

    @property
    def workload_name(self) -> str:
        """The Workload that it was made for; empty if it names none."""
        return self.spec.workload_ref.workload_name if self.spec.workload_ref is not None else ""

    @property
    def goes_whole(self) -> bool:
        """Whether its pods can only be evicted together."""
        mode = self.spec.disruption_mode
        return mode == WHOLE_GROUP or (isinstance(mode, DisruptionMode) and mode.all is not None)

    @property
    def topology_key(self) -> str:
        """The label whose values divide the nodes into placements for the group; empty for none.
        The API allows one such constraint.
        """
        constraints = self.spec.scheduling_constraints
        topology = constraints.topology if constraints is not None else None
        return topology[0].key if topology else ""


class CompositePodGroup(PodGroup, frozen=True, gc=False):
    """A group of PodGroups and of other composites, which name it as their parent."""
