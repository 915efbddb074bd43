"""The rights at the API server that a configuration needs, with their purpose: one table.

`needed` is the only source: `asched doctor` checks each of these rights, and a test compares
deploy/base/rbac.yaml with the same list, so that the manifests grant exactly these.

Rules   every kind of core.model.kinds is listed and watched for any profile, because a profile may
        change while the process runs; pod groups only with their gate or plugin, and what a plugin
        writes, or a user's plugin declares, only if a profile enables it; rights of a user's plugin
        are granted by the user.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from asched import names
from asched.core.config.v1 import LeaderElection
from asched.core.model.kinds import (
    COMPOSITE_POD_GROUP,
    COSCHEDULING_GROUP,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    ELASTIC_QUOTA,
    JOB,
    KINDS,
    LOCAL_QUEUE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)


class Right(NamedTuple):
    """One permission. Empty namespace: in all of them; empty name: for any object."""

    verb: str
    group: str
    resource: str  # including a subresource: pods/binding
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        group = f".{self.group}" if self.group else ""
        plural, slash, sub = self.resource.partition("/")
        named = f' "{self.name}"' if self.name else ""
        return f"{self.verb} {plural}{group}{slash}{sub}{named}{where}"


class NeededRight(NamedTuple):
    """A right and its purpose: a plugin, or a part of the scheduler."""

    right: Right
    purpose: str
    #: The plugin is a user's: our manifests do not grant the right.
    is_own: bool = False


SCHEDULING: Final = "scheduling"
SPREADING: Final = "default spreading"
POD_GROUPS: Final = "pod groups"
TAINT_RULES: Final = "taints of devices"
STATUS_CONTROLLERS: Final = "status controllers"
HELD_NODES: Final = "keepNodes of CheckAndHold"
#: Purposes whose rights a component of deploy/ grants, with its name.
COMPONENTS: Final = {
    POD_GROUPS: "pod-groups",
    STATUS_CONTROLLERS: "status-controllers",
    HELD_NODES: "held-nodes",
    names.COSCHEDULING: "coscheduling",
    names.CHECK_AND_HOLD: "check-and-hold",
    names.CAPACITY_SCHEDULING: "capacity-scheduling",
    names.BACKFILL: "backfill",
    names.GROUP_SCALE_UP: "group-scale-up",
}
#: The same for plugins of `asched.hardware`, which declare their rights.
HARDWARE_COMPONENTS: Final = {
    "HamiVGPU": ("gpu-annotations", "gpu-node-locks"),
    "VolcanoVGPU": ("gpu-annotations",),
    "GpuShare": ("gpu-annotations",),
}
#: The fix for a missing right of our own.
GRANT: Final = "grant it, as deploy/base/rbac.yaml does (kubectl apply -k deploy/base)"
LEADER_ELECTION: Final = "leader election"
SERVING: Final = "serving"

#: The purpose of reading a kind; kinds needed by no single plugin are for scheduling.
READERS: Final[dict[Kind, str]] = {
    POD: SCHEDULING,
    NODE: SCHEDULING,
    NAMESPACE: names.INTER_POD_AFFINITY,
    SERVICE: SPREADING,
    REPLICATION_CONTROLLER: SPREADING,
    REPLICA_SET: SPREADING,
    STATEFUL_SET: SPREADING,
    POD_DISRUPTION_BUDGET: names.DEFAULT_PREEMPTION,
    PERSISTENT_VOLUME: names.VOLUME_BINDING,
    PERSISTENT_VOLUME_CLAIM: names.VOLUME_BINDING,
    STORAGE_CLASS: names.VOLUME_BINDING,
    CSI_STORAGE_CAPACITY: names.VOLUME_BINDING,
    CSI_NODE: names.NODE_VOLUME_LIMITS,
    CSI_DRIVER: names.NODE_VOLUME_LIMITS,
    VOLUME_ATTACHMENT: names.NODE_VOLUME_LIMITS,
    RESOURCE_CLAIM: names.DYNAMIC_RESOURCES,
    RESOURCE_SLICE: names.DYNAMIC_RESOURCES,
    DEVICE_CLASS: names.DYNAMIC_RESOURCES,
}

EVENTS_GROUP: Final = "events.k8s.io"
#: Bindings, read-backs after a lost answer, conditions, events.
CORE: Final = (
    Right("get", "", "pods"),
    Right("create", "", "pods/binding"),
    Right("patch", "", "pods/status"),
    Right("create", EVENTS_GROUP, "events"),
    Right("patch", EVENTS_GROUP, "events"),
)
_RESOURCE: Final = "resource.k8s.io"
#: Writes of single plugins.
WRITES: Final[dict[str, tuple[Right, ...]]] = {
    names.DEFAULT_PREEMPTION: (Right("delete", "", "pods"),),
    names.CAPACITY_SCHEDULING: (Right("delete", "", "pods"),),
    names.GANG_SPARING_PREEMPTION: (Right("delete", "", "pods"),),
    names.VOLUME_BINDING: (
        Right("patch", "", "persistentvolumes"),
        Right("patch", "", "persistentvolumeclaims"),
    ),
    names.DYNAMIC_RESOURCES: (
        Right("create", _RESOURCE, "resourceclaims"),
        Right("patch", _RESOURCE, "resourceclaims"),
        Right("delete", _RESOURCE, "resourceclaims"),
        Right("patch", _RESOURCE, "resourceclaims/status"),
        # Since 1.36 changing an allocation also needs this one.
        Right("patch", _RESOURCE, "resourceclaims/binding"),
    ),
    names.GROUP_SCALE_UP: (
        Right("create", "autoscaling.x-k8s.io", "provisioningrequests"),
        Right("delete", "autoscaling.x-k8s.io", "provisioningrequests"),
        Right("create", "", "podtemplates"),
        Right("delete", "", "podtemplates"),
    ),
}
#: Delegated authentication and authorisation, and the cluster's client CA.
DELEGATION: Final = (
    Right("create", "authentication.k8s.io", "tokenreviews"),
    Right("create", "authorization.k8s.io", "subjectaccessreviews"),
    *(
        Right(verb, "", "configmaps", "kube-system", "extension-apiserver-authentication")
        for verb in ("get", "list", "watch")
    ),
)


NOTHING: Final[Mapping[str, Iterable[Right]]] = {}


def group_of(kind: Kind) -> str:
    """The API group of a kind, empty for the core group."""
    return kind.group_version.rpartition("/")[0]


#: To watch pod groups and to write their conditions.
GROUP_RIGHTS, COMPOSITE_RIGHTS = (
    (
        Right("list", group_of(kind), kind.plural),
        Right("watch", group_of(kind), kind.plural),
        Right("patch", group_of(kind), f"{kind.plural}/status"),
    )
    for kind in (POD_GROUP, COMPOSITE_POD_GROUP)
)


#: The same for groups of scheduling.x-k8s.io, if a profile enables Coscheduling.
COSCHEDULING_RIGHTS: Final = (
    Right("list", group_of(COSCHEDULING_GROUP), COSCHEDULING_GROUP.plural),
    Right("watch", group_of(COSCHEDULING_GROUP), COSCHEDULING_GROUP.plural),
)


#: The same for ProvisioningRequests, if a profile enables CheckAndHold.
REQUEST_RIGHTS: Final = (
    Right("list", group_of(PROVISIONING_REQUEST), PROVISIONING_REQUEST.plural),
    Right("watch", group_of(PROVISIONING_REQUEST), PROVISIONING_REQUEST.plural),
    Right("patch", group_of(PROVISIONING_REQUEST), f"{PROVISIONING_REQUEST.plural}/status"),
    Right("list", group_of(POD_TEMPLATE), POD_TEMPLATE.plural),
    Right("watch", group_of(POD_TEMPLATE), POD_TEMPLATE.plural),
)
#: The same for ElasticQuotas, and for the queues with which Kueue manages quotas.
QUOTA_RIGHTS: Final = tuple(
    Right(verb, group_of(kind), kind.plural)
    for kind in (ELASTIC_QUOTA, LOCAL_QUEUE)
    for verb in ("list", "watch")
)
#: The same for Jobs, whose deadlines say when pods end, if a profile enables Backfill.
JOB_RIGHTS: Final = tuple(Right(verb, group_of(JOB), JOB.plural) for verb in ("list", "watch"))
#: What single plugins watch, and write about it.
FOLLOWS: Final = {
    names.BACKFILL: JOB_RIGHTS,
    names.COSCHEDULING: COSCHEDULING_RIGHTS,
    names.CHECK_AND_HOLD: REQUEST_RIGHTS,
    names.GROUP_SCALE_UP: REQUEST_RIGHTS[:2],
    names.CAPACITY_SCHEDULING: QUOTA_RIGHTS,
}
#: Writes of the status controllers (--status-controllers), by the plugin whose objects they are.
STATUS_RIGHTS: Final = {
    names.COSCHEDULING: Right(
        "patch", group_of(COSCHEDULING_GROUP), f"{COSCHEDULING_GROUP.plural}/status"
    ),
    names.CAPACITY_SCHEDULING: Right(
        "patch", group_of(ELASTIC_QUOTA), f"{ELASTIC_QUOTA.plural}/status"
    ),
}
#: To watch rules that put taints on devices (DRADeviceTaintRules).
TAINT_RULE_RIGHTS: Final = (
    Right("list", group_of(DEVICE_TAINT_RULE), DEVICE_TAINT_RULE.plural),
    Right("watch", group_of(DEVICE_TAINT_RULE), DEVICE_TAINT_RULE.plural),
)


def needed(
    plugins: Iterable[str],
    election: LeaderElection,
    *,
    is_serving: bool = True,
    tries_groups: bool = False,
    forms_trees: bool = False,
    writes_statuses: bool = False,
    heeds_taint_rules: bool = False,
    keeps_nodes: bool = False,
    own: Mapping[str, Iterable[Right]] = NOTHING,
) -> list[NeededRight]:
    """Every right for these plugins, each once, in the order of first use.

    `tries_groups`: whether pod groups are watched without a plugin (GenericWorkload);
    `forms_trees`: whether CompositePodGroups are, too;
    `writes_statuses`: whether --status-controllers is given; `heeds_taint_rules`: whether
    DRADeviceTaintRules is on; `keeps_nodes`: whether CheckAndHold has keepNodes. `own` are the
    rights that users' plugins declare.
    """
    enabled = set(plugins)
    found: dict[Right, str] = {}
    for kind in KINDS:
        for verb in ("list", "watch"):
            found.setdefault(Right(verb, group_of(kind), kind.plural), READERS[kind])
    if tries_groups or names.GANG_SCHEDULING in enabled:
        for right in (*GROUP_RIGHTS, *(COMPOSITE_RIGHTS if forms_trees else ())):
            found.setdefault(right, POD_GROUPS)
    for plugin, rights in FOLLOWS.items():
        for right in rights if plugin in enabled else ():
            found.setdefault(right, plugin)
    for plugin, right in STATUS_RIGHTS.items():
        if writes_statuses and plugin in enabled:
            found.setdefault(right, STATUS_CONTROLLERS)
    if heeds_taint_rules and names.DYNAMIC_RESOURCES in enabled:
        for right in TAINT_RULE_RIGHTS:
            found.setdefault(right, TAINT_RULES)
    if keeps_nodes:
        found.setdefault(Right("patch", "", "nodes"), HELD_NODES)
    for right in CORE:
        found.setdefault(right, SCHEDULING)
    for plugin, rights in WRITES.items():
        for right in rights if plugin in enabled else ():
            found.setdefault(right, plugin)
    if election.leader_elect:
        for right in lease_rights(election.resource_namespace, election.resource_name):
            found.setdefault(right, LEADER_ELECTION)
    if is_serving:
        for right in DELEGATION:
            found.setdefault(right, SERVING)
    for plugin, declared in own.items():
        for right in declared if plugin in enabled else ():
            found.setdefault(right, plugin)
    return [NeededRight(right, purpose, purpose in own) for right, purpose in found.items()]


def lease_rights(namespace: str, name: str) -> tuple[Right, ...]:
    """The rights to hold one lease. `create` cannot be restricted to a name."""
    group = "coordination.k8s.io"
    return (
        Right("get", group, "leases", namespace, name),
        Right("create", group, "leases", namespace),
        Right("update", group, "leases", namespace, name),
        Right("create", "", "events", namespace),
    )
