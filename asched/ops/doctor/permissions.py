"""The rights at the API server that a configuration needs, with their purpose: one table.

`needed` is the only source: `asched doctor` checks each of these rights, and a test compares
deploy/base/rbac.yaml with the same list, so that the manifests grant exactly these.

Rules   every kind of core.model.kinds is listed and watched for any profile, because a profile may
        change while the process runs; pod groups only with their gate or plugin, and what a plugin
        writes, or a user's plugin declares, only if a profile enables it; rights of a user's plugin
        are granted by the user. It declares them as `rbac_rules` of its class: rules as in a
        ClusterRole, where apiGroups, resources and verbs are lists of strings, resourceNames is
        optional, and `namespace` means that a Role there suffices.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from asched import names
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.problem import did_you_mean
from asched.core.config.v1 import LeaderElection
from asched.core.leader.pools import lease_of_pool
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
    names.REBALANCE: "rebalance",
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
    names.CHECK_AND_HOLD: (Right("patch", "autoscaling.x-k8s.io", "provisioningrequests/status"),),
    names.REBALANCE: (Right("create", "", "pods/eviction"),),
    names.NODE_POOLS: (Right("create", "", "pods/eviction"),),  # victims of other pools
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


#: The kinds that single plugins watch.
WATCHES: Final[dict[str, tuple[Kind, ...]]] = {
    names.BACKFILL: (JOB,),  # their deadlines say when pods end
    names.REBALANCE: (JOB,),  # their podFailurePolicy
    names.COSCHEDULING: (COSCHEDULING_GROUP,),
    names.CHECK_AND_HOLD: (PROVISIONING_REQUEST, POD_TEMPLATE),
    names.GROUP_SCALE_UP: (PROVISIONING_REQUEST, POD_TEMPLATE),
    names.CAPACITY_SCHEDULING: (ELASTIC_QUOTA,),
}
#: The plugins whose objects the status controllers (--status-controllers) write.
CONTROLLED: Final = {
    names.COSCHEDULING: COSCHEDULING_GROUP,
    names.CAPACITY_SCHEDULING: ELASTIC_QUOTA,
}


def group_of(kind: Kind) -> str:
    """The API group of a kind, empty for the core group."""
    return kind.group_version.rpartition("/")[0]


def _watch(kind: Kind) -> tuple[Right, ...]:
    return tuple(Right(verb, group_of(kind), kind.plural) for verb in ("list", "watch"))


def _patch_status(kind: Kind) -> Right:
    return Right("patch", group_of(kind), f"{kind.plural}/status")


def needed(
    plugins: Iterable[str],
    election: LeaderElection,
    *,
    is_serving: bool = True,
    gates: Mapping[str, bool] = DEFAULT_GATES,
    writes_statuses: bool = False,
    keeps_nodes: bool = False,
    pools: Iterable[str] = (),
    own: Mapping[str, Iterable[Right]] | None = None,
) -> list[NeededRight]:
    """Every right for these plugins, each once, in the order of first use.

    `writes_statuses`: whether --status-controllers is given; `keeps_nodes`: whether CheckAndHold
    has keepNodes. `pools` are those that have a lease, `own` the rights that users' plugins
    declare.
    """
    enabled, declared = set(plugins), own or {}
    found: dict[Right, str] = {}

    def add(purpose: str, *rights: Right) -> None:
        for right in rights:
            found.setdefault(right, purpose)

    for kind in KINDS:
        add(READERS[kind], *_watch(kind))
    if gates.get("GenericWorkload") or names.GANG_SCHEDULING in enabled:
        for kind in (POD_GROUP, COMPOSITE_POD_GROUP)[: 1 + gates.get("CompositePodGroup", False)]:
            add(POD_GROUPS, *_watch(kind), _patch_status(kind))
    for plugin in filter(enabled.__contains__, WATCHES):
        for kind in WATCHES[plugin]:
            add(plugin, *_watch(kind))
    for plugin in filter(enabled.__contains__, CONTROLLED if writes_statuses else ()):
        add(STATUS_CONTROLLERS, _patch_status(CONTROLLED[plugin]))
    if gates.get("DRADeviceTaintRules") and names.DYNAMIC_RESOURCES in enabled:
        add(TAINT_RULES, *_watch(DEVICE_TAINT_RULE))
    if keeps_nodes:
        add(HELD_NODES, Right("patch", "", "nodes"))
    add(SCHEDULING, *CORE)
    for plugin in filter(enabled.__contains__, WRITES):
        add(plugin, *WRITES[plugin])
    if election.leader_elect:
        name = election.resource_name
        for lease in (name, *(lease_of_pool(name, pool) for pool in pools)):
            add(LEADER_ELECTION, *lease_rights(election.resource_namespace, lease))
    if is_serving:
        add(SERVING, *DELEGATION)
    for plugin in filter(enabled.__contains__, declared):
        add(plugin, *declared[plugin])
    return [NeededRight(right, purpose, purpose in declared) for right, purpose in found.items()]


def lease_rights(namespace: str, name: str) -> tuple[Right, ...]:
    """The rights to hold one lease. `create` cannot be restricted to a name."""
    group = "coordination.k8s.io"
    return (
        Right("get", group, "leases", namespace, name),
        Right("create", group, "leases", namespace),
        Right("update", group, "leases", namespace, name),
        Right("create", "", "events", namespace),
    )


ATTRIBUTE: Final = "rbac_rules"
REQUIRED: Final = ("apiGroups", "resources", "verbs")
OPTIONAL: Final = ("resourceNames", "namespace")


class RulesError(ValueError):
    """Invalid rules: one line with the place."""


def rights_of(cls: type[Any]) -> tuple[Right, ...]:
    """Every right that the class declares. Raises RulesError."""
    rules = getattr(cls, ATTRIBUTE, ())
    if not isinstance(rules, list | tuple):
        raise RulesError(f"{ATTRIBUTE} must be a list of rules, as in a ClusterRole")
    return tuple(right for i, rule in enumerate(rules) for right in _rights(rule, i))


def _rights(rule: Any, number: int) -> Iterator[Right]:
    where = f"{ATTRIBUTE}[{number}]"
    if not isinstance(rule, Mapping):
        raise RulesError(f'{where} must be a mapping, such as {{"apiGroups": [""], ...}}')
    for key in rule:
        if key not in (*REQUIRED, *OPTIONAL):
            hint = did_you_mean(str(key), (*REQUIRED, *OPTIONAL))
            raise RulesError(f"{where} has no field {key!r}{f' ({hint})' if hint else ''}")
    groups, resources, verbs = (_texts(rule, key, where) for key in REQUIRED)
    named = _texts(rule, "resourceNames", where) if "resourceNames" in rule else ("",)
    namespace = rule.get("namespace", "")
    if not isinstance(namespace, str):
        raise RulesError(f"{where}.namespace must be a string")
    for group, resource, name, verb in product(groups, resources, named, verbs):
        yield Right(verb, group, resource, namespace, name)


def _texts(rule: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = rule.get(key)
    is_list = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    if not is_list or not value:
        raise RulesError(f"{where}.{key} must be a non-empty list of strings")
    return tuple(value)
