"""The effective configuration as kube-scheduler writes it: a mapping, and that mapping as YAML.

Rules   keys are in alphabetical order, lists keep theirs, and a list starts at its key's own
column; what Go omits when empty is omitted, what it always prints is printed (`weight: 0`,
Source  `--write-config-to` of kube-scheduler 1.36.2, Go's json tags of the v1 types
"""

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asched.core.config import args as plugin_args
from asched.core.config import duration
from asched.core.config.args import ARGS_TYPES, kind_of_args
from asched.core.config.scalars import FLOAT32_DIGITS_MAX, UINT64_MAX, short_float, written
from asched.core.config.v1 import (
    API_VERSION,
    KIND,
    LATER_POINTS,
    MULTI_POINT,
    POINTS,
    Extender,
    ExtenderTLSConfig,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
    SchedulerConfiguration,
)

#: client-go's placeholder for a secret.
REDACTED: Final = "--- REDACTED ---"


def effective(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The mapping `--write-config-to` writes for a constructed configuration."""
    election, client = configuration.leader_election, configuration.client_connection
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": {
            "acceptContentTypes": client.accept_content_types,
            "burst": client.burst,
            "contentType": client.content_type,
            "kubeconfig": client.kubeconfig,
            "qps": _float32(client.qps),
        },
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "enableProfiling": configuration.enable_profiling,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": duration.render(election.lease_duration_ns),
            "renewDeadline": duration.render(election.renew_deadline_ns),
            "resourceLock": election.resource_lock,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
            "retryPeriod": duration.render(election.retry_period_ns),
        },
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_s,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_s,
        "profiles": [_profile(profile, configuration.gates) for profile in configuration.profiles],
    }
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    if configuration.extenders:
        document["extenders"] = [_extender(extender) for extender in configuration.extenders]
    return document


def without_keys(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The same for pages and logs, without private keys of extenders."""
    document = effective(configuration)
    for extender in document.get("extenders", ()):
        if (extender.get("tlsConfig") or {}).get("keyData"):
            extender["tlsConfig"]["keyData"] = REDACTED
    return document


def deciding(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The same for recordings, which are replayed on other machines: without file names and
    credentials, which do not affect decisions.
    """
    document = effective(configuration)
    document["clientConnection"]["kubeconfig"] = ""
    for extender in document.get("extenders", ()):
        extender.pop("tlsConfig", None)
    return document


def _float32(value: float) -> int | float:
    """The shortest number that is the same float32; whole ones without a fraction."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, FLOAT32_DIGITS_MAX + 1):
        short = float(f"{single:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", single):
            return int(short) if short.is_integer() else short
    return float(single)


def _given(**fields: Any) -> dict[str, Any]:
    """Go's omitempty: empty, zero, false or None fields are omitted."""
    return {name: value for name, value in fields.items() if value}


def _profile(profile: KubeSchedulerProfile, gates: Mapping[str, bool]) -> dict[str, Any]:
    later = [point for point, rule in LATER_POINTS.items() if gates.get(rule)]
    document: dict[str, Any] = {
        "plugins": {
            point: _plugin_set(profile.plugin_set(point))
            for point in (*POINTS, *later, MULTI_POINT)
        },
        "schedulerName": profile.scheduler_name,
    }
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    if profile.plugin_configs:
        document["pluginConfig"] = [_plugin_config(entry) for entry in profile.plugin_configs]
    return document


def _plugin_set(plugins: PluginSet) -> dict[str, Any]:
    def listed(entries: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"name": entry.name, "weight": entry.weight} for entry in entries]

    return _given(enabled=listed(plugins.enabled), disabled=listed(plugins.disabled))


def _plugin_config(entry: PluginConfig) -> dict[str, Any]:
    if entry.name not in ARGS_TYPES:
        return {"args": entry.args, "name": entry.name}
    fields = args_fields(entry.args)
    return {
        "args": {"apiVersion": API_VERSION, "kind": kind_of_args(entry.name), **fields},
        "name": entry.name,
    }


def args_fields(args: Any) -> dict[str, Any]:
    """The fields of one args record in their v1 spelling."""
    match args:
        case plugin_args.BackfillArgs():
            return {
                "horizonSeconds": args.horizon_s,
                "maxNamespacePercentage": args.max_namespace_percentage,
                "softEnds": args.soft_ends,
                "learnDurations": args.learn_durations,
                "reservations": args.reservations,
            }
        case plugin_args.CapacitySchedulingArgs():
            return {
                "guaranteesMin": args.guarantees_min,
                "statusController": args.status_controller,
            }
        case plugin_args.CheckAndHoldArgs():
            return {
                "holdSeconds": args.hold_s,
                "keepNodes": args.keep_nodes,
                "maxNamespacePercentage": args.max_namespace_percentage,
                "priority": args.priority,
                "provisioningClassName": args.provisioning_class_name,
            }
        case plugin_args.CoschedulingArgs():
            return {
                "permitWaitingTimeSeconds": args.permit_waiting_time_s,
                "podGroupBackoffSeconds": args.pod_group_backoff_s,
                "podGroupRejectPercentage": args.pod_group_reject_percentage,
                "statusController": args.status_controller,
            }
        case plugin_args.DefaultPreemptionArgs():
            return {
                "minCandidateNodesAbsolute": args.min_candidate_nodes_absolute,
                "minCandidateNodesPercentage": args.min_candidate_nodes_percentage,
            }
        case plugin_args.DynamicResourcesArgs():
            return _dynamic_resources(args)
        case plugin_args.InterPodAffinityArgs():
            return {
                "hardPodAffinityWeight": args.hard_pod_affinity_weight,
                "ignorePreferredTermsOfExistingPods": args.ignore_preferred_terms_of_existing_pods,
            }
        case plugin_args.NodeAffinityArgs():
            added = args.added_affinity
            return {} if added is None else {"addedAffinity": _node_affinity(added)}
        case plugin_args.NodeResourcesBalancedAllocationArgs():
            return _given(resources=_resources(args.resources))
        case plugin_args.NodeResourcesFitArgs():
            return _node_resources_fit(args)
        case plugin_args.PodTopologySpreadArgs():
            constraints = [constraint_fields(entry) for entry in args.default_constraints]
            return _given(defaultConstraints=constraints, defaultingType=args.defaulting_type)
        case plugin_args.VolumeBindingArgs():
            return {"bindTimeoutSeconds": args.bind_timeout_s, **_given(shape=_shape(args.shape))}
    raise TypeError(f"no args of an in-tree plugin: {args!r}")


def _dynamic_resources(args: plugin_args.DynamicResourcesArgs) -> dict[str, Any]:
    filter_ns, binding_ns = args.filter_timeout_ns, args.binding_timeout_ns
    fields: dict[str, Any] = {
        "filterTimeout": None if filter_ns is None else duration.render(filter_ns)
    }
    if binding_ns is not None:
        fields["bindingTimeout"] = duration.render(binding_ns)
    return fields


def _node_resources_fit(args: plugin_args.NodeResourcesFitArgs) -> dict[str, Any]:
    strategy, ratio = args.scoring_strategy, args.scoring_strategy.requested_to_capacity_ratio
    fields = _given(type=strategy.type, resources=_resources(strategy.resources))
    if ratio is not None:
        fields["requestedToCapacityRatio"] = _given(shape=_shape(ratio.shape))
    return {
        **_given(
            ignoredResources=list(args.ignored_resources),
            ignoredResourceGroups=list(args.ignored_resource_groups),
        ),
        "scoringStrategy": fields,
    }


def _resources(entries: Sequence[plugin_args.ResourceSpec]) -> list[dict[str, Any]]:
    return [{"name": entry.name, **_given(weight=entry.weight)} for entry in entries]


def _shape(points: Sequence[plugin_args.UtilizationShapePoint] | None) -> list[dict[str, Any]]:
    return [{"score": p.score, "utilization": p.utilization} for p in points or ()]


def constraint_fields(entry: plugin_args.DefaultSpreadConstraint) -> dict[str, Any]:
    """The fields of a v1 TopologySpreadConstraint; absent ones are omitted."""
    fields: dict[str, Any] = {
        "maxSkew": entry.max_skew,
        "topologyKey": entry.topology_key,
        "whenUnsatisfiable": entry.when_unsatisfiable,
        **_given(matchLabelKeys=list(entry.match_label_keys)),
    }
    optional = {
        "labelSelector": entry.label_selector,
        "minDomains": entry.min_domains,
        "nodeAffinityPolicy": entry.node_affinity_policy,
        "nodeTaintsPolicy": entry.node_taints_policy,
    }
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def _node_affinity(added: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    required = added.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        terms = required.get("nodeSelectorTerms")
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": None if terms is None else [_node_term(term) for term in terms]
        }
    preferred = added.get("preferredDuringSchedulingIgnoredDuringExecution")
    if preferred:
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "preference": _node_term((entry or {}).get("preference")),
                "weight": (entry or {}).get("weight") or 0,
            }
            for entry in preferred
        ]
    return fields


def _node_term(term: Mapping[str, Any] | None) -> dict[str, Any]:
    return _given(
        **{
            name: [
                {
                    "key": (entry or {}).get("key") or "",
                    "operator": (entry or {}).get("operator") or "",
                    **_given(values=(entry or {}).get("values")),
                }
                for entry in (term or {}).get(name) or ()
            ]
            for name in ("matchExpressions", "matchFields")
        }
    )


def _extender(extender: Extender) -> dict[str, Any]:
    document = {
        "urlPrefix": extender.url_prefix,
        "httpTimeout": duration.render(extender.http_timeout_ns),
        **_given(
            filterVerb=extender.filter_verb,
            preemptVerb=extender.preempt_verb,
            prioritizeVerb=extender.prioritize_verb,
            bindVerb=extender.bind_verb,
            weight=extender.weight,
            enableHTTPS=extender.enable_https,
            nodeCacheCapable=extender.node_cache_capable,
            ignorable=extender.ignorable,
            managedResources=[
                {"name": entry.name, **_given(ignoredByScheduler=entry.ignored_by_scheduler)}
                for entry in extender.managed_resources
            ],
        ),
    }
    if extender.tls_config is not None:
        document["tlsConfig"] = _tls(extender.tls_config)
    return document


def _tls(tls: ExtenderTLSConfig) -> dict[str, Any]:
    def data(value: bytes) -> str:
        return base64.b64encode(value).decode()

    return _given(
        insecure=tls.insecure,
        serverName=tls.server_name,
        certFile=tls.cert_file,
        keyFile=tls.key_file,
        caFile=tls.ca_file,
        certData=data(tls.cert_data),
        keyData=data(tls.key_data),
        caData=data(tls.ca_data),
    )


def to_yaml(document: Mapping[str, Any]) -> str:
    """The mapping as YAML in kube-scheduler's layout."""
    lines: list[str] = []
    _mapping(document, 0, lines)
    return "\n".join(lines) + "\n"


def _mapping(document: Mapping[str, Any], column: int, lines: list[str]) -> None:
    pad = " " * column
    for key in sorted(document):
        value = document[key]
        if isinstance(value, Mapping) and value:
            lines.append(f"{pad}{_scalar(key)}:")
            _mapping(value, column + 2, lines)
        elif isinstance(value, list | tuple) and value:
            lines.append(f"{pad}{_scalar(key)}:")
            _sequence(value, column, lines)
        else:
            lines += f"{pad}{_scalar(key)}: {_scalar(value, column + 2)}".split("\n")


def _sequence(items: Sequence[Any], column: int, lines: list[str]) -> None:
    pad = " " * column
    for item in items:
        if isinstance(item, Mapping | list | tuple) and item:
            nested: list[str] = []
            if isinstance(item, Mapping):
                _mapping(item, column + 2, nested)
            else:
                _sequence(item, column + 2, nested)
            lines.append(f"{pad}- {nested[0].lstrip()}")
            lines += nested[1:]
        else:
            lines += f"{pad}- {_scalar(item, column + 2)}".split("\n")


def _scalar(value: Any, column: int = 0) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > UINT64_MAX):
        return short_float(float(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return written(str(value), column)
