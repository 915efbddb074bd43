"""Which pods may move: those that a controller creates again, and that administrators opened.

Everything that is not known to be harmless excludes a pod. A new place must be held for its
successor, so that what depends on a pod's name, or is allocated anew, excludes it, too.

Source  kubernetes-sigs/cluster-autoscaler pkg/core/scaledown (safe-to-evict, local storage),
        kubernetes-sigs/karpenter (do-not-disrupt), kubernetes/kubernetes
        pkg/controller/job (podFailurePolicy), pkg/registry/core/pod/storage/eviction.go
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Mapping
from typing import Any, Final, NamedTuple

from asched.batch.rebalance.board import clone_of
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster, ObservedChange
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import gang_of, object_of
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import RebalanceArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.model.kinds import (
    JOB,
    POD,
    POD_GROUP,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from asched.core.model.meta import OwnerReference
from asched.core.model.pod import Pod
from asched.core.model.timestamp import seconds
from asched.core.model.workload import Job, PodGroup
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.gang_budgets import is_of_gang

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
#: Set on each pod by the StatefulSet controller: the revision that it was made from.
REVISION: Final = "controller-revision-hash"
#: Controllers that create a pod again, by the API group and kind in its owner reference.
CONTROLLERS: Final[Mapping[tuple[str, str], Kind]] = {
    (kind.group_version.rpartition("/")[0], kind.name): kind
    for kind in (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET, JOB)
}
#: Budget steps to count a placed pod, and to decide about one.
COUNT_STEPS: Final = 0.05
DECIDE_STEPS: Final = 1.0
AT_ONCE: Final = 256


class ControllerCount(NamedTuple):
    """How many pods of a controller have a node, and of how many revisions they are."""

    placed: int
    revisions: int


class Movable:
    """Decides which placed pods may move for a unit of `priority`. Counts once, by `count`; `saw`
    adds what changes, and `refresh` makes the following answers those of now.

    `is_drain`: for a node that is drained, by users who may evict its pods anyway: the pods need
    not be opened, and may be young. `deletes_data`: they lose their emptyDir volumes.
    """

    def __init__(
        self,
        context: SchedulerContext,
        args: RebalanceArgs,
        priority: int,
        *,
        is_drain: bool = False,
        deletes_data: bool = False,
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._args = args
        self.priority = priority
        self._is_drain, self._deletes_data = is_drain, deletes_data
        self.budgets = context.cluster.singleton(Budgets)
        #: by uid of a controller: its pods, by uid, with their keys; pods that are gone may remain
        self._pods: defaultdict[str, dict[str, str]] = defaultdict(dict)
        #: by uid of a controller: what was counted since the last refresh
        self._counts: dict[str, ControllerCount] = {}
        #: by uid of a Deployment: its ReplicaSets that want pods; None: to be counted
        self._active_sets: Counter[str] | None = None
        #: by uid of a controller: how many of its pods were moved and have no node yet
        self.missing: Mapping[str, int] = {}
        #: what is against the moves of opened pods, as far as `find` got
        self.refusals = Counter[str]()

    def count(self) -> Generator[Effect, Answer, None]:
        """Find the pods of each controller, before all else. Pauses."""
        pods = tuple(self._cluster.pods_seen.values())
        for start in range(0, len(pods), AT_ONCE):
            some = pods[start : start + AT_ONCE]
            yield from self._context.pause_if_due(COUNT_STEPS * len(some))
            for pod in some:
                self._add(pod)
        while not self.refresh():
            yield Pause()

    def saw(self, change: ObservedChange) -> None:
        """Follow a change of a pod or ReplicaSet."""
        if change.kind is REPLICA_SET:
            self._active_sets = None
        elif change.kind is POD and change.new is not None:
            self._add(change.new)
        elif change.kind is POD and (owner := change.old.metadata.controller) is not None:
            self._pods[owner.uid].pop(change.old.metadata.uid, None)

    def refresh(self) -> bool:
        """Make answers those of now; False if the budgets are too much for this turn."""
        self._counts.clear()
        try:
            self.budgets.catch_up()
        except OutOfTurn:
            return False
        return True

    def pods_of(self, controller: str) -> dict[str, str]:
        """The keys of a controller's pods, by uid; pods that are gone may be among them."""
        return self._pods.get(controller, {})

    def find(self) -> Generator[Effect, Answer, list[PodInfo]]:
        """All pods that may move, those that are moved first at the front: of low priority, then
        young ones. Pauses.
        """
        found = []
        for info in tuple(self._cluster.placed.values()):
            if self._is_opened(info.pod):
                yield from self._context.pause_if_due(DECIDE_STEPS)
                why = self.why_not(info) or self.why_budget(info)
                if why:
                    self.refusals[why] += 1
                else:
                    found.append(info)
        return sorted(found, key=order_of)

    def why_not(self, info: PodInfo) -> str:
        """Why a pod may not move; empty if it may."""
        return self.why_never(info) or self.why_not_now(info)

    def why_never(self, info: PodInfo) -> str:
        """Why a pod may not move as it is; empty if only the moment may be against it."""
        pod = info.pod
        if not self._is_opened(pod):
            return "neither its namespace nor its PriorityClass is opened"
        if pod.priority > self.priority:
            return "it is more important than the unit"
        runner = self._context.runner_of(pod)
        if runner is None:
            return "another scheduler would place its successor"
        if runner.consults(info):
            return "an extender has a say in its place"
        if len(self.budgets.covering(info)) > 1:
            return "several disruption budgets cover it, which the Eviction API does not serve"
        return (
            _why_marked(pod)
            or _why_bound_to_its_node(info, loses_data=self._deletes_data)
            or self._why_resized(info)
            or self._why_without_controller(pod)
            or self._why_group(pod)
        )

    def why_not_now(self, info: PodInfo) -> str:
        """What is against the move at the moment; budgets apart, see `why_budget`."""
        pod, cluster = info.pod, self._cluster
        if cluster.placed.get(pod.uid) is not info or info.row < 0 or info.assumed:
            return "it is not known to run on a node"
        if pod.is_terminating:
            return "it is terminating"
        spare = self.spare_pods_of(pod)
        if spare is not None and spare < 1:
            return "its gang would fall below its minimum"
        return self._why_young(pod) or self._why_rolling_out(pod)

    def budgets_of(self, info: PodInfo) -> list[int]:
        """The budgets that cover a pod, by number."""
        numbers: list[int] = self.budgets.covering(info).tolist()
        return numbers

    def spare_pods_of(self, pod: Pod) -> int | None:
        """How many pods the gang of a pod may lose; None if it has none."""
        key = group_key(pod)
        gang = gang_of(self._cluster, key) if key else None
        if gang is None:
            return None
        return len(self._cluster.pod_groups.get(key).placed) - gang.min_count

    def _add(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is not None:
            self._pods[owner.uid][pod.uid] = pod.key

    def _counted(self, owner: OwnerReference) -> ControllerCount:
        known = self._counts.get(owner.uid)
        if known is None:
            placed, found = self._cluster.placed, list[Pod]()
            for uid in self.pods_of(owner.uid):
                info = placed.get(uid)
                if info is not None and not info.pod.is_terminating:
                    found.append(info.pod)
            is_set = owner.kind == STATEFUL_SET.name
            of = {(pod.metadata.labels or {}).get(REVISION, "") for pod in found if is_set}
            known = self._counts[owner.uid] = ControllerCount(len(found), len(of))
        return known

    def _is_rolling_out(self, deployment: str) -> bool:
        if self._active_sets is None:
            owners = [
                found.metadata.controller
                for found in self._cluster.all(REPLICA_SET).values()
                if found.spec.replicas
            ]
            self._active_sets = Counter(owner.uid for owner in owners if owner is not None)
        return self._active_sets[deployment] > 1

    def _is_opened(self, pod: Pod) -> bool:
        args = self._args
        return (
            self._is_drain
            or pod.metadata.namespace in args.namespaces
            or pod.spec.priority_class_name in args.priority_classes
        )

    def _why_young(self, pod: Pod) -> str:
        """Successors of moved pods are young, also for a process that did not move them."""
        if self._is_drain:
            return ""
        now_s = self._cluster.wall_clock_s
        age_s = now_s - seconds(pod.metadata.creation_timestamp, now_s)
        return "it is younger than pauseSeconds" if age_s < self._args.pause_s else ""

    def _why_resized(self, info: PodInfo) -> str:
        is_as_written = clone_of(self._cluster, info).cls.accounted == info.cls.accounted
        return "" if is_as_written else "it was resized in place"

    def _why_without_controller(self, pod: Pod) -> str:
        reference = pod.metadata.controller
        if reference is None:
            return "no controller creates it again"
        owner = owner_of(self._cluster, pod)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            return f"its {reference.kind} is not known to create it again"
        return _why_job(owner) if isinstance(owner, Job) else ""

    def _why_rolling_out(self, pod: Pod) -> str:
        reference, owner = pod.metadata.controller, owner_of(self._cluster, pod)
        if reference is None or owner is None or isinstance(owner, Job):
            return ""
        counted = self._counted(reference)
        if counted.placed + self.missing.get(reference.uid, 0) != owner.spec.replicas:
            return f"its {reference.kind} is rolling out or scaling"
        parent = owner.metadata.controller
        if parent is not None and self._is_rolling_out(parent.uid):
            return f"its {parent.kind} is rolling out"
        if counted.revisions > 1:
            return f"its {reference.kind} is rolling out"
        return ""

    def _why_group(self, pod: Pod) -> str:
        key = group_key(pod)
        if not key:
            return "it belongs to a gang of another scheduler" if is_of_gang(pod) else ""
        group: Any = object_of(self._cluster, key)
        if group is None or self._cluster.pod_groups.tree_of(key) is not None:
            return "its group is not known, or has a parent"
        if isinstance(group, PodGroup) and group.goes_whole:
            return f"its {POD_GROUP.name} is evicted as a whole"
        return ""

    def why_budget(self, info: PodInfo) -> str:
        """Why no budget allows its eviction now; empty if none forbids it."""
        if self.budgets.violations((info,))[0]:
            return "its disruption budget allows no disruption"
        return ""


def order_of(info: PodInfo) -> tuple[int, float, str]:
    """The order in which pods are moved: low priority first, then young ones."""
    metadata = info.pod.metadata
    return info.pod.priority, -seconds(metadata.creation_timestamp, 0.0), metadata.uid


def owner_of(cluster: Cluster, pod: Pod) -> Any:
    """The controller of a pod, if it is of a kind that creates pods again and exists."""
    reference = pod.metadata.controller
    kind = None if reference is None else CONTROLLERS.get(_group_kind(reference))
    if reference is None or kind is None:
        return None
    owner = cluster.get(kind, f"{pod.metadata.namespace}/{reference.name}")
    return owner if owner is not None and owner.metadata.uid == reference.uid else None


def _group_kind(reference: OwnerReference) -> tuple[str, str]:
    return reference.api_version.rpartition("/")[0], reference.kind


def _why_marked(pod: Pod) -> str:
    annotations = pod.metadata.annotations or {}
    if annotations.get(SAFE_TO_EVICT) == "false":
        return f"it has {SAFE_TO_EVICT}: false"
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return f"it has {DO_NOT_DISRUPT}: true"
    return ""


def _why_bound_to_its_node(info: PodInfo, *, loses_data: bool) -> str:
    """What a successor would not find elsewhere, or for which no place can be held."""
    spec = info.pod.spec
    is_safe = (info.pod.metadata.annotations or {}).get(SAFE_TO_EVICT) == "true"
    for volume in spec.volumes or ():
        is_local = volume.host_path is not None or (
            volume.empty_dir is not None and volume.empty_dir.medium != "Memory" and not loses_data
        )
        if is_local and not is_safe:
            return f"its volume {volume.name} is local"
        if volume.ephemeral is not None:
            return f"its volume {volume.name} is created anew for each pod"
    if spec.resource_claims:
        return "no devices can be held for its claims"
    if info.cls.host_ports:
        return "it uses ports of its node"
    return ""


def _why_job(job: Job) -> str:
    """The rules of its podFailurePolicy, of which the first that matches counts: an eviction must
    be ignored, or it counts against backoffLimit.
    """
    policy = job.spec.pod_failure_policy
    for rule in policy.rules if policy is not None else ():
        if rule.action != "Ignore":
            break
        for condition in rule.on_pod_conditions or ():
            if condition.type == "DisruptionTarget" and condition.status == "True":
                return ""
    return "its Job counts an eviction as a failure (podFailurePolicy)"
