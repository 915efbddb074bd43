"""A decoded document to records, with kube-scheduler 1.36's defaults for absent fields.

Rules   the document has passed `decode`: types are right, unknown fields are gone; null is absent;
        defaults of a field are those of its record, here are the defaults that depend on gates or
        on other fields; only a single profile gets a name by default.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/v1/defaults.go
"""

from collections.abc import Mapping
from typing import Any, Final

from asched import names
from asched.core.config.args import ARGS_TYPES, PluginArgs
from asched.core.config.fields import build, fields_of
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import merge_defaults, needed_plugins
from asched.core.config.v1 import (
    LATER_POINTS,
    MULTI_POINT,
    POINTS,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
    SchedulerConfiguration,
)

Document = Mapping[str, Any]


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
    profiles = [entry or {} for entry in document.get("profiles") or [{}]]
    if len(profiles) == 1 and profiles[0].get("schedulerName") is None:
        profiles = [{**profiles[0], "schedulerName": names.DEFAULT_SCHEDULER_NAME}]
    document = dict(document)
    if document.get("enableContentionProfiling") is None:
        document["enableContentionProfiling"] = document.get("enableProfiling")
    return build(
        SchedulerConfiguration,
        document,
        profiles=tuple(profile(entry, gates) for entry in profiles),
        gates=gates,
    )


_SETS: Final = (*POINTS, *LATER_POINTS, MULTI_POINT)


def profile(entry: Document, gates: Mapping[str, bool]) -> KubeSchedulerProfile:
    """One profile with default plugins merged in and default args appended by name."""
    given = entry.get("plugins") or {}
    sets = {point: build(PluginSet, given.get(point)) for point in _SETS}
    plugins = merge_defaults(sets, gates)
    written = [build(PluginConfig, item) for item in entry.get("pluginConfig") or ()]
    configs = [PluginConfig(item.name, _args(item.name, item.args, gates)) for item in written]
    seen = {config.name for config in configs}
    configs += [
        PluginConfig(name, _args(name, None, gates))
        for name in needed_plugins(KubeSchedulerProfile(plugins=plugins))
        if name in ARGS_TYPES and name not in seen
    ]
    return build(
        KubeSchedulerProfile,
        entry,
        scheduler_name=entry.get("schedulerName") or "",
        plugins=plugins,
        plugin_configs=tuple(configs),
    )


def _args(plugin: str, given: Any, gates: Mapping[str, bool]) -> PluginArgs | Any:
    if plugin not in ARGS_TYPES:
        return given
    given = given or {}
    known: dict[str, Any] = {
        field.attribute: None
        for name, field in fields_of(ARGS_TYPES[plugin]).items()
        if field.gates and given.get(name) is None and not field.gates.are_on(gates)
    }
    if plugin == names.DEFAULT_PREEMPTION and given.get("minCandidateNodesAbsolute") is not None:
        # A number alone limits the search, too: the share is kube-scheduler's default.
        known_share = given.get("minCandidateNodesPercentage")
        given = {**given, "minCandidateNodesPercentage": 10 if known_share is None else known_share}
    if (
        plugin == names.VOLUME_BINDING
        and not given.get("shape")
        and gates["StorageCapacityScoring"]
    ):
        points = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
        given = {**given, "shape": points}
    return build(ARGS_TYPES[plugin], given, **known)
