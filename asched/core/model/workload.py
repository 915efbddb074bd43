"""Namespaces, owners of pods, disruption budgets and priority classes."""

from asched.core.model.meta import LabelSelector, ObjectMeta, Record


class Namespace(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()


class ServiceSpec(Record, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class Service(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Record, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class ReplicationController(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Record, frozen=True, gc=False):
    selector: LabelSelector | None = None


class ReplicaSet(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Record, frozen=True, gc=False):
    selector: LabelSelector | None = None


class StatefulSet(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()


class PodDisruptionBudgetSpec(Record, frozen=True, gc=False):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Record, frozen=True, gc=False):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class GangPolicy(Record, frozen=True, gc=False):
    min_count: int = 0


class PodGroupPolicy(Record, frozen=True, gc=False):
    gang: GangPolicy | None = None


class PodGroupSpec(Record, frozen=True, gc=False):
    scheduling_policy: PodGroupPolicy = PodGroupPolicy()


class PodGroup(Record, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
