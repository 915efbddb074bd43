"""The configuration reference, from the tables of flags, fields, plugins and arguments."""

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from asched.cli.flag_table import ALL, REMOVED
from asched.core.config.args import ARGS_TYPES
from asched.core.config.defaults import default_configuration
from asched.core.config.fields import (
    ConfigRecord,
    FieldMark,
    ListOf,
    MapOf,
    Scalar,
    Type,
    fields_of,
)
from asched.core.config.gates import GATES, HONOURED, table_of
from asched.core.config.merge import DEFAULT_MULTI_POINT
from asched.core.config.text import effective, printed
from asched.core.config.v1 import Extender, KubeSchedulerProfile, SchedulerConfiguration
from asched.core.config.versions import MINORS
from asched.core.framework.profile import POINTS, points_of
from asched.core.plugins import PLUGINS, class_of
from asched_lab.pages.annotations import MARKERS
from asched_lab.pages.metrics import code, page, table

FIELDS: Final[Mapping[str, str]] = {
    "parallelism": "No effect: one loop decides",
    "leaderElection.leaderElect": "Schedule only while holding the lease",
    "leaderElection.leaseDuration": "Age at which a lease is free for another process",
    "leaderElection.renewDeadline": "Time to renew before the leader stops",
    "leaderElection.retryPeriod": "Time between two attempts to get or renew the lease",
    "leaderElection.resourceLock": "Kind of lock; `leases` is the only one",
    "leaderElection.resourceName": (
        "Name of the lease. `asched run` takes `asched` where the file names none, unless a profile"
        " serves `default-scheduler`"
    ),
    "leaderElection.resourceNamespace": "Namespace of the lease",
    "clientConnection.kubeconfig": "Path of a kubeconfig; empty in a pod",
    "clientConnection.acceptContentTypes": "No effect: asched speaks JSON",
    "clientConnection.contentType": "No effect: asched speaks JSON",
    "clientConnection.qps": "Requests a second; negative is unlimited",
    "clientConnection.burst": "Requests above the rate for a moment",
    "enableProfiling": "Serve `/debug/pprof`",
    "enableContentionProfiling": "No effect: there are no locks to profile",
    "percentageOfNodesToScore": (
        "Stop at this share of feasible nodes; 0 scores all feasible nodes"
    ),
    "podInitialBackoffSeconds": "Backoff after the first failed attempt",
    "podMaxBackoffSeconds": "Longest backoff",
    "delayCacheUntilActive": "Fill the cache only after the lease is held",
    "profiles[].schedulerName": "The `spec.schedulerName` that the profile serves",
    "profiles[].percentageOfNodesToScore": "As above, for this profile",
    "profiles[].plugins.<point>.enabled": (
        "Plugins to add at an extension point or at `multiPoint`, with `name` and `weight`"
    ),
    "profiles[].plugins.<point>.disabled": "Plugins to remove; `*` removes all defaults",
    "profiles[].pluginConfig[].name": "The plugin that the arguments belong to",
    "profiles[].pluginConfig[].args": "Its arguments, see below",
    "extenders[].urlPrefix": "Address of the extender",
    "extenders[].filterVerb": "Path of the filter call; empty switches it off",
    "extenders[].preemptVerb": "Path of the preemption call",
    "extenders[].prioritizeVerb": "Path of the score call",
    "extenders[].weight": "Factor of its scores",
    "extenders[].bindVerb": "Path of the bind call; the extender then binds the pods it manages",
    "extenders[].enableHTTPS": "Use TLS although the address does not say so",
    "extenders[].tlsConfig.insecure": "Do not verify the certificate",
    "extenders[].tlsConfig.serverName": "Name to verify in place of the host",
    "extenders[].tlsConfig.certFile": "Client certificate",
    "extenders[].tlsConfig.keyFile": "Key of the client certificate",
    "extenders[].tlsConfig.caFile": "Certificate authority",
    "extenders[].tlsConfig.certData": "Client certificate, base64; takes precedence over the file",
    "extenders[].tlsConfig.keyData": "Key, base64; takes precedence over the file",
    "extenders[].tlsConfig.caData": "Authority, base64; takes precedence over the file",
    "extenders[].httpTimeout": "Time for one call",
    "extenders[].nodeCacheCapable": "Send names of nodes instead of whole nodes",
    "extenders[].managedResources[].name": (
        "Extended resource; only pods that request one of these are sent"
    ),
    "extenders[].managedResources[].ignoredByScheduler": (
        "NodeResourcesFit does not check the resource"
    ),
    "extenders[].ignorable": "A failing call does not fail the attempt",
}

ARGUMENTS: Final[Mapping[str, str]] = {
    "Backfill.reservations": "Gangs and pods with a promised start at a time, 1 to 64",
    "Backfill.horizonSeconds": "How far away a promised start may be",
    "Backfill.maxNamespacePercentage": (
        "Share of each resource, and of the nodes, that the promises of one namespace may reserve;"
        " 100 is no limit"
    ),
    "Backfill.softEnds": "Count ends that no controller enforces",
    "Backfill.learnDurations": "Count how long equal pods took; needs `softEnds`",
    "CapacityScheduling.guaranteesMin": (
        "A namespace within its `min` is not refused because another namespace borrows"
    ),
    "CapacityScheduling.statusController": (
        "Write the status of ElasticQuotas, with `--status-controllers`"
    ),
    "CheckAndHold.provisioningClassName": "The ProvisioningRequests that this scheduler answers",
    "CheckAndHold.holdSeconds": "How long the places of an accepted request are reserved, at most",
    "CheckAndHold.maxNamespacePercentage": (
        "Share of each resource, and of the nodes, that the requests of one namespace may reserve"
    ),
    "CheckAndHold.priority": "Pods above this priority may take reserved places",
    "CheckAndHold.keepNodes": (
        "Autoscalers are kept from removing nodes with reserved places"
        " ([Autoscalers](autoscalers.md))"
    ),
    "Coscheduling.permitWaitingTimeSeconds": "Schedule timeout of groups that set none",
    "Coscheduling.podGroupBackoffSeconds": "Backoff of a group after a failed attempt",
    "Coscheduling.podGroupRejectPercentage": "No effect: no pod waits at Permit",
    "Coscheduling.statusController": "Write the status of PodGroups, with `--status-controllers`",
    "DefaultPreemption.minCandidateNodesPercentage": "Share of the nodes tried for preemption",
    "DefaultPreemption.minCandidateNodesAbsolute": (
        "Number of nodes tried for preemption; the larger of both counts"
    ),
    "DefaultPreemption.otherSchedulers": (
        "Schedulers that bind pods on the same nodes: where one took the room of evicted pods for a"
        " pod that is not less important, no pod is evicted for a minute"
    ),
    "DynamicResources.filterTimeout": "Bound of the search for devices on a node: 100,000"
    " devices for each second; 0 is no bound",
    "DynamicResources.bindingTimeout": "Time to wait for binding conditions of devices",
    "GroupScaleUp.nodeShapes": (
        "The kinds of node that the autoscaler can add, preferred ones first"
        " ([Autoscalers](autoscalers.md))"
    ),
    "GroupScaleUp.timeLimitSeconds": "How long a request for new nodes stays open",
    "GroupScaleUp.backoffSeconds": "Time until another request for the same gang",
    "GroupScaleUp.maxRequestsPerNamespace": "Open requests of a namespace",
    "GroupScaleUp.maxNodesPerNamespace": "New nodes in all open requests of a namespace",
    "InterPodAffinity.hardPodAffinityWeight": (
        "Score for nodes whose pods require affinity to the pod, 0 to 100"
    ),
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": (
        "Do not score preferred terms of placed pods"
    ),
    "NodeAffinity.addedAffinity": "Node affinity that every pod of the profile has in addition",
    "NodeResourcesBalancedAllocation.resources": "Resources to balance; each weight is 1",
    "NodeResourcesFit.ignoredResources": "Extended resources that are not checked",
    "NodeResourcesFit.ignoredResourceGroups": "Prefixes of extended resources not checked",
    "NodeResourcesFit.scoringStrategy.type": (
        "`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`"
    ),
    "NodeResourcesFit.scoringStrategy.resources": "Resources that are scored, with weights",
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": (
        "Shape: score by utilization, for the strategy of that name"
    ),
    "PodTopologySpread.defaultConstraints": "Constraints of pods that have none; type `List`",
    "PodTopologySpread.defaultingType": "`System` (the built-in constraints) or `List`",
    "VolumeBinding.bindTimeoutSeconds": "Time to wait for volumes to be bound",
    "VolumeBinding.shape": "Score by used capacity; needs the gate StorageCapacityScoring",
}

PLUGIN_TEXTS: Final[Mapping[str, str]] = {
    "PrioritySort": "Order pods by priority, then by waiting time",
    "SchedulingGates": "Keep a pod out of the queue while it has scheduling gates",
    "NodeUnschedulable": "Reject cordoned nodes",
    "NodeName": "Reject all nodes but the one in `spec.nodeName`",
    "TaintToleration": "Reject and score nodes by taints",
    "NodeAffinity": "Reject and score nodes by node selector and node affinity",
    "NodePorts": "Reject nodes on which a host port is taken",
    "NodeResourcesFit": "Reject nodes without enough resources; score by what is free",
    "NodeResourcesBalancedAllocation": "Score nodes on which resources are used evenly",
    "ImageLocality": "Score nodes that have the images",
    "PodTopologySpread": "Spread pods over topology domains",
    "InterPodAffinity": "Apply affinity and anti-affinity between pods",
    "DynamicResources": "Allocate devices for resource claims",
    "DefaultPreemption": "Evict less important pods where a pod fits nowhere",
    "NodeDeclaredFeatures": "Reject nodes whose kubelet lacks a feature that the pod needs",
    "DefaultBinder": "Bind the pod",
    "VolumeRestrictions": "Reject nodes where a volume cannot be shared",
    "NodeVolumeLimits": "Reject nodes whose CSI driver takes no more volumes",
    "VolumeBinding": "Choose, bind and provision volumes",
    "VolumeZone": "Reject nodes outside the zone of a volume",
    "Backfill": "Promise waiting gangs a start, and let smaller pods go ahead meanwhile",
    "CapacityScheduling": "Guarantee namespaces a minimum by ElasticQuotas and lend the rest",
    "CheckAndHold": "Answer ProvisioningRequests and reserve their places",
    "GroupScaleUp": "Request new nodes for all pods of a gang at once",
    "GangScheduling": "Start the pods of a `scheduling.k8s.io` PodGroup together",
    "TopologyPlacementGenerator": "Keep a pod group within one topology domain",
    "PodGroupPodsCount": "Prefer placements that take more pods of a group",
    "Coscheduling": "Start the pods of a `scheduling.x-k8s.io` PodGroup together",
    "GangSparingPreemption": "As DefaultPreemption; evicts pods of gangs last",
    "GpuFractions": "Subtract fractions that other schedulers gave out from whole GPUs",
    "GpuShare": "Give out GPU memory for the gpushare device plugin",
    "GpuSharing": "Score nodes so that few GPUs are left in unusable pieces",
    "HamiVGPU": "Give out parts of GPUs for HAMi's device plugin",
    "LoadAwareScheduling": "Reject and score nodes by Koordinator's NodeMetric",
    "LoadVariationRiskBalancing": "Score nodes with low and steady load",
    "LowRiskOverCommitment": "Score nodes where limits are unlikely to be exceeded together",
    "NetworkTopology": "Keep gangs close together in racks, blocks and NVLink domains",
    "NodeResourceTopologyMatch": "Reject nodes whose NUMA zones cannot align the pod",
    "TargetLoadPacking": "Fill nodes up to a target of measured CPU use",
    "VolcanoVGPU": "Give out parts of GPUs for Volcano's vGPU device plugin",
}


_ORDER: Final = tuple(POINTS)


def configuration_page(_root: Path) -> str:
    """The page as Markdown."""
    flags = [
        block
        for group in dict.fromkeys(flag.group for flag in ALL)
        for block in (
            f"### {group}",
            table(("Flag", "Type", "Default", "Meaning"), _flags(group)),
        )
    ]
    return page(
        "Configuration reference",
        [
            (
                "[Flags](#flags-of-asched-run) · [Configuration file](#configuration-file) ·"
                " [Feature gates](#feature-gates) · [Plugins](#plugins) ·"
                " [Arguments](#arguments-of-in-tree-plugins) ·"
                " [Annotations and labels](#annotations-labels-and-gates)"
            ),
            "## Flags of asched run",
            (
                "Flags are kube-scheduler's, and a few of asched's own. A flag without effect is"
                " accepted with a warning."
            ),
            *flags,
            "### Removed flags",
            "These flags of older kube-schedulers are refused.",
            table(("Flag", "Use instead"), ((code(f"--{name}"), why) for name, why in _removed())),
            "## Configuration file",
            (
                "`KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`. `v1beta1` to"
                " `v1beta3` and a legacy Policy are read too; `asched config migrate FILE` writes"
                " them as `v1`."
            ),
            table(("Field", "Type", "Default", "Meaning"), _fields()),
            "## Feature gates",
            (
                "`--feature-gates` takes the gates of kube-scheduler in the API server's version."
                " These have an effect; the others change nothing, or are refused when they are"
                " moved from their default. The rules of 1.38 are a preview."
            ),
            table(("Gate", *MINORS), _gates()),
            "## Plugins",
            (
                "Plugins of the default profile have a mark in the second column; a number is the"
                " weight of their score. The others are enabled in `profiles[].plugins`."
                " [Plugins](plugins.md) says how to write one."
            ),
            table(("Plugin", "Default", "Extension points", "Purpose"), _plugins()),
            "### Optional plugins",
            (
                "For GPUs, measured load, NUMA zones and networks; none is in the default profile."
                " [Hardware](hardware.md) explains them."
            ),
            table(("Plugin", "Extension points", "Purpose"), _optional()),
            "## Arguments of in-tree plugins",
            "`profiles[].pluginConfig[].args`, kind `<plugin>Args`.",
            table(("Argument", "Type", "Default", "Meaning"), _arguments()),
            "### Arguments of optional plugins",
            table(("Argument", "Default"), _optional_arguments()),
            "## Annotations, labels and gates",
            table(
                ("Name", "Where", "asched", "Plugin", "Meaning"),
                ((code(m.name), m.place, m.use, m.plugin, m.text) for m in MARKERS),
            ),
        ],
    )


def _flags(group: str) -> Iterator[tuple[str, str, str, str]]:
    for flag in ALL:
        if flag.group != group:
            continue
        text = flag.help
        if flag.instead:
            text += f"; beside `--config`, the field `{flag.instead}` counts"
        if flag.idle:
            text += f". No effect: {flag.idle}"
        if flag.refused:
            text += f". Refused: {flag.refused}"
        name = f"`--{flag.name}`" if len(flag.name) > 1 else f"`-{flag.name}`"
        yield name, flag.kind, code(flag.default), text


def _removed() -> Iterator[tuple[str, str]]:
    yield from REMOVED.items()


def _fields() -> Iterator[tuple[str, str, str, str]]:
    defaults = effective(default_configuration("asched"))
    yield from _walk(SchedulerConfiguration, defaults, "", without=("profiles", "extenders"))
    yield from _walk(KubeSchedulerProfile, {}, "profiles[].", without=("plugins",))
    for name in ("enabled", "disabled"):
        path = f"profiles[].plugins.<point>.{name}"
        yield code(path), "[]Plugin", "", FIELDS[path]
    yield from _walk(Extender, {"httpTimeout": "5s"}, "extenders[].")


def _walk(
    record: type[ConfigRecord],
    defaults: Mapping[str, Any],
    prefix: str,
    without: Sequence[str] = (),
) -> Iterator[tuple[str, str, str, str]]:
    for name, field in fields_of(record).items():
        path, kind = prefix + name, field.type
        if name in without:
            continue
        if isinstance(kind, type):
            yield from _walk(kind, defaults.get(name) or {}, f"{path}.")
        elif isinstance(kind, ListOf) and isinstance(kind.item, type) and path not in FIELDS:
            yield from _walk(kind.item, {}, f"{path}[].")
        else:
            yield code(path), _type(kind), _shown(defaults.get(name)), FIELDS[path]


def _type(kind: Type) -> str:
    """`[]string`, `map[string]string`, `object`, or the name of a type without parts."""
    if isinstance(kind, ListOf | MapOf):
        return f"{'[]' if isinstance(kind, ListOf) else 'map[string]'}{_type(kind.item)}"
    return kind.value if isinstance(kind, Scalar) else "object"


def _shown(value: Any) -> str:
    """A default as the configuration file writes it; nothing for none."""
    if value is None or value in ("", (), [], {}):
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, list):
        return ", ".join(code(f"{item['name']}: {item['weight']}") for item in value)
    return code(str(value))


def _gates() -> Iterator[tuple[str, ...]]:
    for name in sorted(HONOURED):
        yield code(name), *(_gate(name, minor) for minor in MINORS)


def _gate(name: str, minor: str) -> str:
    """Stage and default of a gate in a minor version; "" if that has no such gate."""
    known = table_of(minor).gates
    if name not in known:
        return ""
    stage, is_on = known[name]
    return f"{stage.lower() if stage != 'GA' else stage}, {'on' if is_on else 'off'}"


def _plugins() -> Iterator[tuple[str, str, str, str]]:
    defaults = {name: (weight, gate) for name, weight, gate in DEFAULT_MULTI_POINT}
    for name in PLUGINS:
        mark = ""
        if name in defaults:
            weight, gate = defaults[name]
            mark = str(weight) if weight else "✓"
            if gate and not GATES[gate][1]:
                mark = f"with gate `{gate}`"
        yield code(name), mark, _points(class_of(name)), PLUGIN_TEXTS[name]


def _optional() -> Iterator[tuple[str, str, str]]:
    for name, cls in _optional_classes().items():
        yield code(name), _points(cls), PLUGIN_TEXTS[name]


def _optional_classes() -> dict[str, Any]:
    found = entry_points(group="asched.plugins")
    return {entry.name: entry.load() for entry in sorted(found, key=lambda entry: entry.name)}


def _points(cls: Any) -> str:
    return ", ".join(sorted(points_of(cls), key=_ORDER.index))


def _arguments() -> Iterator[tuple[str, str, str, str]]:
    for plugin, record in ARGS_TYPES.items():
        defaults = printed(record())
        for name, field in fields_of(record).items():
            path = f"{plugin}.{name}"
            parts = {path: field}
            if isinstance(field.type, type) and FieldMark.RAW not in field.marks:
                parts = {f"{path}.{own}": part for own, part in fields_of(field.type).items()}
            for own, part in parts.items():
                default = defaults if own == path else defaults[name]
                yield code(own), _type(part.type), _shown(default.get(part.name)), ARGUMENTS[own]


def _optional_arguments() -> Iterator[tuple[str, str]]:
    for name, cls in _optional_classes().items():
        args = _args_of(cls)
        if args is None:
            yield code(name), "no arguments"
            continue
        yield from _dataclass_fields(args, name)


def _dataclass_fields(cls: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Each field of a dataclass with its default; of fields that are dataclasses each part."""
    for field in dataclasses.fields(cls):
        if field.name in ("api_version", "kind"):
            continue
        path = f"{prefix}.{_camel(field.name)}"
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if dataclasses.is_dataclass(value):
            yield from _dataclass_fields(type(value), path)
        else:
            yield code(path), _default(value)


def _args_of(cls: Any) -> Any:
    """The dataclass that `__init__` takes as `args`; None if it takes none."""
    if "args" not in inspect.signature(cls.__init__).parameters:
        return None
    return typing.get_type_hints(cls.__init__)["args"]


def _default(value: Any) -> str:
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return ", ".join(code(f"{part.name}: {part.weight}") for part in value)
    if isinstance(value, dict):
        return ", ".join(code(f"{key}: {part}") for key, part in value.items())
    return _shown(value)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))
