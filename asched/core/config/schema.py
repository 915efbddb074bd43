"""The schema of the v1 documents as data: the fields and their Go types.

Rules   field names are case-sensitive; a struct field that is null counts as absent;
        `DURATION` is a Go value, whose null is an error, `OPTIONAL_DURATION` a pointer.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1,
        k8s.io/component-base/config/v1alpha1, k8s.io/api/core/v1
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from asched import names
from asched.core.config.v1 import KIND, LATER_POINTS, MULTI_POINT, POINTS


class Scalar(Enum):
    """Go's name of a scalar type."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    DURATION = "v1.Duration"
    OPTIONAL_DURATION = "*v1.Duration"
    BYTES = "[]uint8"
    ANY = "runtime.RawExtension"
    #: Named string types, which messages show.
    NODE_OPERATOR = "v1.NodeSelectorOperator"
    LABEL_OPERATOR = "v1.LabelSelectorOperator"
    SPREAD_ACTION = "v1.UnsatisfiableConstraintAction"
    INCLUSION_POLICY = "v1.NodeInclusionPolicy"
    DEFAULTING_TYPE = "v1.PodTopologySpreadConstraintsDefaulting"
    STRATEGY_TYPE = "v1.ScoringStrategyType"

    @property
    def is_text(self) -> bool:
        return self is Scalar.STRING or self in _NAMED_TEXTS


_NAMED_TEXTS: Final = frozenset(
    {
        Scalar.NODE_OPERATOR,
        Scalar.LABEL_OPERATOR,
        Scalar.SPREAD_ACTION,
        Scalar.INCLUSION_POLICY,
        Scalar.DEFAULTING_TYPE,
        Scalar.STRATEGY_TYPE,
    }
)
INT_LIMITS: Final = {Scalar.INT32: 2**31, Scalar.INT64: 2**63}


class ListOf(msgspec.Struct, frozen=True):
    """A JSON array of one type."""

    item: "Type"


class MapOf(msgspec.Struct, frozen=True):
    """A JSON object with free keys."""

    item: "Type"


class Struct(msgspec.Struct, frozen=True):
    """A JSON object with known fields; `name` is its name in Go's messages."""

    name: str
    fields: Mapping[str, "Type"]
    package: str = "v1"
    #: Fields of embedded structs, by the struct's name; messages show it.
    embedded: Mapping[str, str] = {}


Type = Scalar | ListOf | MapOf | Struct

_S, _B, _I32, _I64 = Scalar.STRING, Scalar.BOOL, Scalar.INT32, Scalar.INT64
_STRINGS: Final = ListOf(_S)

PLUGIN: Final = Struct("Plugin", {"name": _S, "weight": _I32})
PLUGIN_SET: Final = Struct("PluginSet", {"enabled": ListOf(PLUGIN), "disabled": ListOf(PLUGIN)})
PLUGINS: Final = Struct("Plugins", dict.fromkeys((*POINTS, *LATER_POINTS, MULTI_POINT), PLUGIN_SET))
PLUGIN_CONFIG: Final = Struct("PluginConfig", {"name": _S, "args": Scalar.ANY})
PROFILE: Final = Struct(
    "KubeSchedulerProfile",
    {
        "schedulerName": _S,
        "percentageOfNodesToScore": _I32,
        "plugins": PLUGINS,
        "pluginConfig": ListOf(PLUGIN_CONFIG),
    },
)
TLS_CONFIG: Final = Struct(
    "ExtenderTLSConfig",
    {
        "insecure": _B,
        "serverName": _S,
        "certFile": _S,
        "keyFile": _S,
        "caFile": _S,
        "certData": Scalar.BYTES,
        "keyData": Scalar.BYTES,
        "caData": Scalar.BYTES,
    },
)
EXTENDER: Final = Struct(
    "Extender",
    {
        "urlPrefix": _S,
        "filterVerb": _S,
        "preemptVerb": _S,
        "prioritizeVerb": _S,
        "weight": _I64,
        "bindVerb": _S,
        "enableHTTPS": _B,
        "tlsConfig": TLS_CONFIG,
        "httpTimeout": Scalar.DURATION,
        "nodeCacheCapable": _B,
        "managedResources": ListOf(
            Struct("ExtenderManagedResource", {"name": _S, "ignoredByScheduler": _B})
        ),
        "ignorable": _B,
    },
)
LEADER_ELECTION: Final = Struct(
    "LeaderElectionConfiguration",
    {
        "leaderElect": _B,
        "leaseDuration": Scalar.DURATION,
        "renewDeadline": Scalar.DURATION,
        "retryPeriod": Scalar.DURATION,
        "resourceLock": _S,
        "resourceName": _S,
        "resourceNamespace": _S,
    },
    package="v1alpha1",
)
CLIENT_CONNECTION: Final = Struct(
    "ClientConnectionConfiguration",
    {
        "kubeconfig": _S,
        "acceptContentTypes": _S,
        "contentType": _S,
        "qps": Scalar.FLOAT32,
        "burst": _I32,
    },
    package="v1alpha1",
)
TYPE_META: Final[Mapping[str, Type]] = {"apiVersion": _S, "kind": _S}
CONFIGURATION: Final = Struct(
    KIND,
    {
        **TYPE_META,
        "parallelism": _I32,
        "leaderElection": LEADER_ELECTION,
        "clientConnection": CLIENT_CONNECTION,
        "enableProfiling": _B,
        "enableContentionProfiling": _B,
        "percentageOfNodesToScore": _I32,
        "podInitialBackoffSeconds": _I64,
        "podMaxBackoffSeconds": _I64,
        "profiles": ListOf(PROFILE),
        "extenders": ListOf(EXTENDER),
        "delayCacheUntilActive": _B,
    },
    embedded=dict.fromkeys(
        ("enableProfiling", "enableContentionProfiling"), "DebuggingConfiguration"
    ),
)

_REQUIREMENT: Final = Struct(
    "NodeSelectorRequirement", {"key": _S, "operator": Scalar.NODE_OPERATOR, "values": _STRINGS}
)
_NODE_TERM: Final = Struct(
    "NodeSelectorTerm",
    {"matchExpressions": ListOf(_REQUIREMENT), "matchFields": ListOf(_REQUIREMENT)},
)
NODE_AFFINITY: Final = Struct(
    "NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "NodeSelector", {"nodeSelectorTerms": ListOf(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct("PreferredSchedulingTerm", {"weight": _I32, "preference": _NODE_TERM})
        ),
    },
)
_LABEL_SELECTOR: Final = Struct(
    "LabelSelector",
    {
        "matchLabels": MapOf(_S),
        "matchExpressions": ListOf(
            Struct(
                "LabelSelectorRequirement",
                {"key": _S, "operator": Scalar.LABEL_OPERATOR, "values": _STRINGS},
            )
        ),
    },
)
_CONSTRAINT: Final = Struct(
    "TopologySpreadConstraint",
    {
        "maxSkew": _I32,
        "topologyKey": _S,
        "whenUnsatisfiable": Scalar.SPREAD_ACTION,
        "labelSelector": _LABEL_SELECTOR,
        "minDomains": _I32,
        "nodeAffinityPolicy": Scalar.INCLUSION_POLICY,
        "nodeTaintsPolicy": Scalar.INCLUSION_POLICY,
        "matchLabelKeys": _STRINGS,
    },
)
_RESOURCES: Final = ListOf(Struct("ResourceSpec", {"name": _S, "weight": _I64}))
_SHAPE: Final = ListOf(Struct("UtilizationShapePoint", {"utilization": _I32, "score": _I32}))
_STRATEGY: Final = Struct(
    "ScoringStrategy",
    {
        "type": Scalar.STRATEGY_TYPE,
        "resources": _RESOURCES,
        "requestedToCapacityRatio": Struct("RequestedToCapacityRatioParam", {"shape": _SHAPE}),
    },
)

#: Fields of other versions, and their replacement.
REMOVED_FIELDS: Final[Mapping[str, str]] = {
    "minResourcesHoldSeconds": "removed, delete the line: minResources is checked before a group"
    " starts, and no room is held afterwards",
}

_ARGS_FIELDS: Final[Mapping[str, Mapping[str, Type]]] = {
    names.BACKFILL: {
        "reservations": _I32,
        "horizonSeconds": _I64,
        "maxNamespacePercentage": _I64,
        "softEnds": _B,
        "learnDurations": _B,
    },
    names.CAPACITY_SCHEDULING: {"guaranteesMin": _B, "statusController": _B},
    names.CHECK_AND_HOLD: {
        "provisioningClassName": _S,
        "holdSeconds": _I64,
        "maxNamespacePercentage": _I32,
        "priority": _I32,
        "keepNodes": _B,
    },
    names.COSCHEDULING: {
        "permitWaitingTimeSeconds": _I64,
        "podGroupBackoffSeconds": _I64,
        "podGroupRejectPercentage": _I32,
        "statusController": _B,
    },
    names.DEFAULT_PREEMPTION: {
        "minCandidateNodesPercentage": _I32,
        "minCandidateNodesAbsolute": _I32,
    },
    names.DYNAMIC_RESOURCES: {
        "filterTimeout": Scalar.OPTIONAL_DURATION,
        "bindingTimeout": Scalar.OPTIONAL_DURATION,
    },
    names.INTER_POD_AFFINITY: {
        "hardPodAffinityWeight": _I32,
        "ignorePreferredTermsOfExistingPods": _B,
    },
    names.NODE_AFFINITY: {"addedAffinity": NODE_AFFINITY},
    names.NODE_RESOURCES_BALANCED_ALLOCATION: {"resources": _RESOURCES},
    names.NODE_RESOURCES_FIT: {
        "ignoredResources": _STRINGS,
        "ignoredResourceGroups": _STRINGS,
        "scoringStrategy": _STRATEGY,
    },
    names.POD_TOPOLOGY_SPREAD: {
        "defaultConstraints": ListOf(_CONSTRAINT),
        "defaultingType": Scalar.DEFAULTING_TYPE,
    },
    names.VOLUME_BINDING: {"bindTimeoutSeconds": _I64, "shape": _SHAPE},
}

#: Every kind of the group, version v1.
KINDS: Final[Mapping[str, Struct]] = {
    KIND: CONFIGURATION,
    **{
        f"{plugin}Args": Struct(f"{plugin}Args", {**TYPE_META, **fields})
        for plugin, fields in _ARGS_FIELDS.items()
    },
}


def type_name(declared: Type) -> str:
    """The type as Go's messages print it."""
    if isinstance(declared, Scalar):
        return declared.value.lstrip("*")
    if isinstance(declared, ListOf):
        return f"[]{type_name(declared.item)}"
    if isinstance(declared, MapOf):
        return f"map[string]{type_name(declared.item)}"
    return f"{declared.package}.{declared.name}"
