"""A decoded document to records, with kube-scheduler 1.36's defaults for absent fields.

Rules   the document has passed `decode`: types are right, unknown fields are gone; null is absent;
        zero means "not given" for qps, burst, the election's durations and texts, httpTimeout, and
        weights of resources; an explicit 0 is kept everywhere else;
        only a single profile gets a name by default.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/v1/defaults.go
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asched import names
from asched.core.config import args as plugin_args
from asched.core.config.decode import BareArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import merge_defaults, needed_plugins
from asched.core.config.v1 import (
    LATER_POINTS,
    MULTI_POINT,
    POINTS,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginEntry,
    PluginSet,
    SchedulerConfiguration,
)
from asched.core.model.timestamp import NS_PER_SECOND

Document = Mapping[str, Any]

DEFAULT_FILTER_TIMEOUT_NS: Final = 10 * NS_PER_SECOND
DEFAULT_BINDING_TIMEOUT_NS: Final = 600 * NS_PER_SECOND
DEFAULT_HTTP_TIMEOUT_NS: Final = 5 * NS_PER_SECOND


def default_profile(
    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME,
    gates: Mapping[str, bool] = DEFAULT_GATES,
) -> KubeSchedulerProfile:
    """The profile of a minimal file, under another name if one is given."""
    return profile({"schedulerName": scheduler_name}, gates)


def default_configuration(
    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME,
    gates: Mapping[str, bool] = DEFAULT_GATES,
) -> SchedulerConfiguration:
    """The configuration of a minimal file."""
    return configuration({"profiles": [{"schedulerName": scheduler_name}]}, gates)


def configuration(
    document: Document, gates: Mapping[str, bool] = DEFAULT_GATES
) -> SchedulerConfiguration:
    """The effective configuration of a decoded document, not validated yet."""
    profiles = document.get("profiles") or [{}]
    if len(profiles) == 1 and _of(profiles[0], "schedulerName", None) is None:
        profiles = [{**(profiles[0] or {}), "schedulerName": names.DEFAULT_SCHEDULER_NAME}]
    profiling = _of(document, "enableProfiling", default=True)
    return SchedulerConfiguration(
        parallelism=_of(document, "parallelism", 16),
        leader_election=_leader_election(document.get("leaderElection") or {}),
        client_connection=_client_connection(document.get("clientConnection") or {}),
        enable_profiling=profiling,
        enable_contention_profiling=_of(document, "enableContentionProfiling", profiling),
        percentage_of_nodes_to_score=_of(document, "percentageOfNodesToScore", 0),
        pod_initial_backoff_s=_of(document, "podInitialBackoffSeconds", 1),
        pod_max_backoff_s=_of(document, "podMaxBackoffSeconds", 10),
        delay_cache_until_active=_of(document, "delayCacheUntilActive", default=False),
        profiles=tuple(profile(entry or {}, gates) for entry in profiles),
        extenders=tuple(_extender(entry or {}) for entry in document.get("extenders") or ()),
        gates=gates,
    )


def internal_configuration(document: Document) -> SchedulerConfiguration:
    """A document of the version `__internal`, which gets no defaults; it is only validated."""
    assert not document, "the internal version has no fields that a file may set"
    return SchedulerConfiguration(
        parallelism=0,
        leader_election=LeaderElection(leader_elect=False),
        pod_initial_backoff_s=0,
        pod_max_backoff_s=0,
        profiles=(),
    )


_SETS: Final = (*POINTS, *LATER_POINTS, MULTI_POINT)


def profile(entry: Document, gates: Mapping[str, bool]) -> KubeSchedulerProfile:
    """One profile with default plugins merged in and default args appended by name."""
    given = entry.get("plugins") or {}
    plugins = merge_defaults({point: _plugin_set(given.get(point) or {}) for point in _SETS}, gates)
    bare = KubeSchedulerProfile(plugins=plugins)
    configs = [
        PluginConfig(name, _args(name, _of(item, "args", None), gates))
        for item in entry.get("pluginConfig") or ()
        for name in [_of(item, "name", "")]
    ]
    seen = {config.name for config in configs}
    configs += [
        PluginConfig(name, _args(name, {}, gates))
        for name in needed_plugins(bare)
        if name in plugin_args.ARGS_TYPES and name not in seen
    ]
    return KubeSchedulerProfile(
        scheduler_name=entry.get("schedulerName") or "",
        percentage_of_nodes_to_score=entry.get("percentageOfNodesToScore"),
        plugins=plugins,
        plugin_configs=tuple(configs),
    )


def _of(document: Document | None, name: str, default: Any) -> Any:
    value = (document or {}).get(name)
    return default if value is None else value


def _leader_election(given: Document) -> LeaderElection:
    base = LeaderElection()
    return LeaderElection(
        leader_elect=_of(given, "leaderElect", base.leader_elect),
        lease_duration_ns=given.get("leaseDuration") or base.lease_duration_ns,
        renew_deadline_ns=given.get("renewDeadline") or base.renew_deadline_ns,
        retry_period_ns=given.get("retryPeriod") or base.retry_period_ns,
        resource_lock=given.get("resourceLock") or base.resource_lock,
        resource_name=given.get("resourceName") or base.resource_name,
        resource_namespace=given.get("resourceNamespace") or base.resource_namespace,
    )


def _client_connection(given: Document) -> ClientConnection:
    base = ClientConnection()
    return ClientConnection(
        kubeconfig=given.get("kubeconfig") or "",
        accept_content_types=given.get("acceptContentTypes") or "",
        content_type=given.get("contentType") or base.content_type,
        qps=given.get("qps") or base.qps,
        burst=given.get("burst") or base.burst,
    )


def _plugin_set(given: Document) -> PluginSet:
    def plugins(entries: Sequence[Document | None] | None) -> tuple[PluginEntry, ...]:
        return tuple(
            PluginEntry(_of(entry, "name", ""), _of(entry, "weight", 0)) for entry in entries or ()
        )

    return PluginSet(plugins(given.get("enabled")), plugins(given.get("disabled")))


def _extender(given: Document) -> Extender:
    tls = given.get("tlsConfig")
    return Extender(
        url_prefix=given.get("urlPrefix") or "",
        filter_verb=given.get("filterVerb") or "",
        preempt_verb=given.get("preemptVerb") or "",
        prioritize_verb=given.get("prioritizeVerb") or "",
        bind_verb=given.get("bindVerb") or "",
        weight=given.get("weight") or 0,
        enable_https=given.get("enableHTTPS") or False,
        tls_config=None if tls is None else _tls(tls),
        http_timeout_ns=given.get("httpTimeout") or DEFAULT_HTTP_TIMEOUT_NS,
        node_cache_capable=given.get("nodeCacheCapable") or False,
        managed_resources=tuple(
            ExtenderManagedResource(
                _of(entry, "name", ""), _of(entry, "ignoredByScheduler", default=False)
            )
            for entry in given.get("managedResources") or ()
        ),
        ignorable=given.get("ignorable") or False,
    )


def _tls(given: Document) -> ExtenderTLSConfig:
    def data(name: str) -> bytes:
        return base64.b64decode(given.get(name) or "")

    return ExtenderTLSConfig(
        insecure=given.get("insecure") or False,
        server_name=given.get("serverName") or "",
        cert_file=given.get("certFile") or "",
        key_file=given.get("keyFile") or "",
        ca_file=given.get("caFile") or "",
        cert_data=data("certData"),
        key_data=data("keyData"),
        ca_data=data("caData"),
    )


def _args(name: str, given: Any, gates: Mapping[str, bool]) -> Any:
    """Args of a known plugin as its record; those of any other plugin as written."""
    build = _BUILDERS.get(name)
    if isinstance(given, BareArgs):
        return plugin_args.BARE_ARGS[name]
    return given if build is None else build(given or {}, gates)


def _default_preemption(
    given: Document, _: Mapping[str, bool]
) -> plugin_args.DefaultPreemptionArgs:
    return plugin_args.DefaultPreemptionArgs(
        min_candidate_nodes_percentage=_of(given, "minCandidateNodesPercentage", 10),
        min_candidate_nodes_absolute=_of(given, "minCandidateNodesAbsolute", 100),
    )


def _dynamic_resources(
    given: Document, gates: Mapping[str, bool]
) -> plugin_args.DynamicResourcesArgs:
    filter_timeout = DEFAULT_FILTER_TIMEOUT_NS if gates["DRASchedulerFilterTimeout"] else None
    conditions = gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"]
    return plugin_args.DynamicResourcesArgs(
        filter_timeout_ns=_of(given, "filterTimeout", filter_timeout),
        binding_timeout_ns=_of(
            given, "bindingTimeout", DEFAULT_BINDING_TIMEOUT_NS if conditions else None
        ),
    )


def _inter_pod_affinity(given: Document, _: Mapping[str, bool]) -> plugin_args.InterPodAffinityArgs:
    return plugin_args.InterPodAffinityArgs(
        hard_pod_affinity_weight=_of(given, "hardPodAffinityWeight", 1),
        ignore_preferred_terms_of_existing_pods=given.get("ignorePreferredTermsOfExistingPods")
        or False,
    )


def _node_affinity(given: Document, _: Mapping[str, bool]) -> plugin_args.NodeAffinityArgs:
    return plugin_args.NodeAffinityArgs(added_affinity=given.get("addedAffinity"))


def _backfill(given: Document, _: Mapping[str, bool]) -> plugin_args.BackfillArgs:
    default = plugin_args.BackfillArgs()
    return plugin_args.BackfillArgs(
        reservations=_of(given, "reservations", default.reservations),
        horizon_s=_of(given, "horizonSeconds", default.horizon_s),
        max_namespace_percentage=_of(
            given, "maxNamespacePercentage", default.max_namespace_percentage
        ),
        soft_ends=_of(given, "softEnds", default.soft_ends),
        learn_durations=_of(given, "learnDurations", default.learn_durations),
    )


def _capacity(given: Document, _: Mapping[str, bool]) -> plugin_args.CapacitySchedulingArgs:
    default = plugin_args.CapacitySchedulingArgs()
    return plugin_args.CapacitySchedulingArgs(
        guarantees_min=_of(given, "guaranteesMin", default.guarantees_min),
        status_controller=_of(given, "statusController", default.status_controller),
    )


def _check_and_hold(given: Document, _: Mapping[str, bool]) -> plugin_args.CheckAndHoldArgs:
    default = plugin_args.CheckAndHoldArgs()
    return plugin_args.CheckAndHoldArgs(
        provisioning_class_name=_of(
            given, "provisioningClassName", default.provisioning_class_name
        ),
        hold_s=_of(given, "holdSeconds", default.hold_s),
        max_namespace_percentage=_of(
            given, "maxNamespacePercentage", default.max_namespace_percentage
        ),
        priority=_of(given, "priority", default.priority),
        keep_nodes=_of(given, "keepNodes", default.keep_nodes),
    )


def _coscheduling(given: Document, _: Mapping[str, bool]) -> plugin_args.CoschedulingArgs:
    default = plugin_args.CoschedulingArgs()
    return plugin_args.CoschedulingArgs(
        permit_waiting_time_s=_of(given, "permitWaitingTimeSeconds", default.permit_waiting_time_s),
        pod_group_backoff_s=_of(given, "podGroupBackoffSeconds", default.pod_group_backoff_s),
        pod_group_reject_percentage=_of(
            given, "podGroupRejectPercentage", default.pod_group_reject_percentage
        ),
        status_controller=_of(given, "statusController", default.status_controller),
    )


def _balanced_allocation(
    given: Document, _: Mapping[str, bool]
) -> plugin_args.NodeResourcesBalancedAllocationArgs:
    return plugin_args.NodeResourcesBalancedAllocationArgs(_resources(given.get("resources")))


def _node_resources_fit(given: Document, _: Mapping[str, bool]) -> plugin_args.NodeResourcesFitArgs:
    strategy = given.get("scoringStrategy")
    if strategy is None:
        strategy = {"type": plugin_args.LEAST_ALLOCATED}
    ratio = strategy.get("requestedToCapacityRatio")
    return plugin_args.NodeResourcesFitArgs(
        ignored_resources=tuple(given.get("ignoredResources") or ()),
        ignored_resource_groups=tuple(given.get("ignoredResourceGroups") or ()),
        scoring_strategy=plugin_args.ScoringStrategy(
            type=strategy.get("type") or "",
            resources=_resources(strategy.get("resources")),
            requested_to_capacity_ratio=None
            if ratio is None
            else plugin_args.RequestedToCapacityRatio(_shape(ratio.get("shape"))),
        ),
    )


def _pod_topology_spread(
    given: Document, _: Mapping[str, bool]
) -> plugin_args.PodTopologySpreadArgs:
    return plugin_args.PodTopologySpreadArgs(
        default_constraints=tuple(
            _constraint(entry or {}) for entry in given.get("defaultConstraints") or ()
        ),
        defaulting_type=given.get("defaultingType") or plugin_args.SYSTEM_DEFAULTING,
    )


def _constraint(entry: Document) -> plugin_args.DefaultSpreadConstraint:
    return plugin_args.DefaultSpreadConstraint(
        max_skew=entry.get("maxSkew") or 0,
        topology_key=entry.get("topologyKey") or "",
        when_unsatisfiable=entry.get("whenUnsatisfiable") or "",
        label_selector=entry.get("labelSelector"),
        min_domains=entry.get("minDomains"),
        node_affinity_policy=entry.get("nodeAffinityPolicy"),
        node_taints_policy=entry.get("nodeTaintsPolicy"),
        match_label_keys=tuple(entry.get("matchLabelKeys") or ()),
    )


def _volume_binding(given: Document, gates: Mapping[str, bool]) -> plugin_args.VolumeBindingArgs:
    shape = given.get("shape")
    if not shape and gates["StorageCapacityScoring"]:
        shape = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    return plugin_args.VolumeBindingArgs(
        bind_timeout_s=_of(given, "bindTimeoutSeconds", 600),
        shape=None if shape is None else _shape(shape),
    )


def _resources(entries: Sequence[Document | None] | None) -> tuple[plugin_args.ResourceSpec, ...]:
    if not entries:
        return plugin_args.CPU_AND_MEMORY
    return tuple(
        plugin_args.ResourceSpec(_of(entry, "name", ""), _of(entry, "weight", 0) or 1)
        for entry in entries
    )


def _shape(
    entries: Sequence[Document | None] | None,
) -> tuple[plugin_args.UtilizationShapePoint, ...]:
    return tuple(
        plugin_args.UtilizationShapePoint(_of(entry, "utilization", 0), _of(entry, "score", 0))
        for entry in entries or ()
    )


_BUILDERS: Final = {
    names.BACKFILL: _backfill,
    names.CAPACITY_SCHEDULING: _capacity,
    names.CHECK_AND_HOLD: _check_and_hold,
    names.COSCHEDULING: _coscheduling,
    names.DEFAULT_PREEMPTION: _default_preemption,
    names.DYNAMIC_RESOURCES: _dynamic_resources,
    names.INTER_POD_AFFINITY: _inter_pod_affinity,
    names.NODE_AFFINITY: _node_affinity,
    names.NODE_RESOURCES_BALANCED_ALLOCATION: _balanced_allocation,
    names.NODE_RESOURCES_FIT: _node_resources_fit,
    names.POD_TOPOLOGY_SPREAD: _pod_topology_spread,
    names.VOLUME_BINDING: _volume_binding,
}
