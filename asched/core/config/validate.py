"""Validate a configuration: all faults at once, each with its path and upstream's message.

Rules   election is not validated while it is off; queueSort must be equal in all profiles;
        a repeated scheduler name prints `{}`, because upstream prints a path there by mistake.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/validation/validation.go
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from asched import names
from asched.core.config import duration
from asched.core.config.args import kind_of_args
from asched.core.config.fields import fields_of
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.problem import (
    NamedString,
    Path,
    Problem,
    StartStage,
    did_you_mean,
    duplicate,
    invalid,
    path_text,
    quoted,
    required,
)
from asched.core.config.replaced import ADVICE
from asched.core.config.text import internal
from asched.core.config.v1 import (
    API_VERSION,
    LATER_POINTS,
    NO_PLUGINS,
    Extender,
    KubeSchedulerProfile,
    LeaderElection,
    SchedulerConfiguration,
)
from asched.core.config.validate_args import CHECKS, qualified_name, ranges
from asched.core.config.versions import RULES
from asched.core.model.requests import is_extended

#: In-tree plugins of older versions that v1 rejects by name, except inside multiPoint.
REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
QUEUE_SORT: Final = "queueSort"
#: Upstream mistakenly finds NodeResourcesFit by the kind of its args: a plugin that is configured
#: under that name is reported with wrong args.
MISNAMED_PLUGIN: Final = kind_of_args(names.NODE_RESOURCES_FIT)


def validate(
    configuration: SchedulerConfiguration, gates: Mapping[str, bool] = DEFAULT_GATES
) -> list[Problem]:
    """Every fault of an effective configuration, in upstream's order."""
    own = ranges(configuration, ())
    before = [fault for fault in own if fault.path == ("parallelism",)]
    faults = ranges(configuration.client_connection, ("clientConnection",))
    faults += _leader_election(configuration.leader_election) + before
    faults += _profiles(configuration.profiles, gates) + own[len(before) :]
    if configuration.pod_max_backoff_s < configuration.pod_initial_backoff_s:
        text = "must be greater than or equal to PodInitialBackoffSeconds"
        faults.append(invalid(("podMaxBackoffSeconds",), configuration.pod_max_backoff_s, text))
    return faults + _extenders(configuration.extenders)


def _leader_election(election: LeaderElection) -> list[Problem]:
    if not election.leader_elect:
        return []
    path: Path = ("leaderElection",)
    faults = ranges(election, path)
    if election.lease_duration_ns <= election.renew_deadline_ns:
        # Reported on the lease, with the value of the deadline, as upstream.
        deadline = duration.render(election.renew_deadline_ns)
        text = "must be greater than `RenewDeadline`"
        faults.append(invalid((*path, "leaseDuration"), deadline, text))
    faults += [
        required((*path, name), f"{name} is required")
        for name in ("resourceLock", "resourceName", "resourceNamespace")
        if not getattr(election, fields_of(LeaderElection)[name].attribute)
    ]
    if election.resource_lock != "leases":
        text = 'resourceLock value must be "leases"'
        faults.append(invalid((*path, "resourceLock"), election.resource_lock, text))
    return faults


def _profiles(profiles: Sequence[KubeSchedulerProfile], gates: Mapping[str, bool]) -> list[Problem]:
    if not profiles:
        return [required(("profiles",))]
    faults = []
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        path: Path = ("profiles", i)
        if not profile.scheduler_name:
            faults.append(required((*path, "schedulerName")))
        faults += ranges(profile, path)
        faults += _later_points(profile, (*path, "plugins"), gates)
        faults += _removed_plugins(profile, (*path, "plugins"))
        faults += _plugin_config(profile, (*path, "pluginConfig"), gates)
        if profile.scheduler_name in seen:
            # Upstream prints an empty object here; the hint has the name.
            hint = f"{quoted(profile.scheduler_name)} is the name of an earlier profile"
            fault = duplicate((*path, "schedulerName"), {})
            faults.append(replace(fault, hint=hint))
        seen.add(profile.scheduler_name)
    return faults + _queue_sort(profiles)


def _later_points(
    profile: KubeSchedulerProfile, path: Path, gates: Mapping[str, bool]
) -> list[Problem]:
    """Extension points that the version in force does not have."""
    faults = []
    for point, rule in LATER_POINTS.items():
        if not gates.get(rule) and profile.plugin_set(point) != NO_PLUGINS:
            text = f"unknown field {quoted(path_text((*path, point)))}"
            hint = f"delete the lines: Kubernetes {RULES[rule].since} and newer have this point"
            faults.append(Problem(StartStage.LOAD, text, (*path, point), hint))
    return faults


def _removed(path: Path, name: str) -> Problem:
    text = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return replace(invalid(path, name, text), hint=ADVICE[name])


def _removed_plugins(profile: KubeSchedulerProfile, path: Path) -> list[Problem]:
    return [
        _removed((*path, point, "enabled", i), plugin.name)
        for point in names.EXTENSION_POINTS
        for i, plugin in enumerate(profile.plugin_set(point).enabled)
        if plugin.name in REMOVED_PLUGINS
    ]


def _plugin_config(
    profile: KubeSchedulerProfile, path: Path, gates: Mapping[str, bool]
) -> list[Problem]:
    faults = []
    seen: set[str] = set()
    for i, entry in enumerate(profile.plugin_configs):
        item_path = (*path, i)
        if entry.name in seen:
            faults.append(duplicate(item_path, entry.name))
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            faults.append(_removed(item_path, entry.name))
        elif entry.name == MISNAMED_PLUGIN:
            text = "has to match plugin args"
            hint = did_you_mean(entry.name, [names.NODE_RESOURCES_FIT])
            args = NamedString(entry.args) if isinstance(entry.args, str) else entry.args
            faults.append(replace(invalid((*item_path, "args"), args, text), hint=hint))
        elif entry.name in CHECKS:
            faults += CHECKS[entry.name](entry.args, (*item_path, "args"), gates)
    return faults


def _queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> list[Problem]:
    faults = []
    first = profiles[0].plugin_set(QUEUE_SORT)
    if len(first.enabled) > 1:
        path: Path = ("profiles", 0, "plugins", QUEUE_SORT, "Enabled")
        text = "only one queue sort plugin can be enabled"
        faults.append(invalid(path, len(first.enabled), text))
    name = first.enabled[0].name if first.enabled else ""
    args = profiles[0].plugin_config.get(name) if name else None
    for i, profile in enumerate(profiles[1:], start=1):
        own = profile.plugin_set(QUEUE_SORT)
        if own != first:
            path = ("profiles", i, "plugins", QUEUE_SORT)
            faults.append(invalid(path, internal(own), "must be the same for all profiles"))
        faults += [
            invalid(
                ("profiles", i, "pluginConfig", "args"),
                internal(entry.args),
                "queueSort must be the same for all profiles",
            )
            for entry in profile.plugin_configs
            if entry.name == name and entry.args != args
        ]
    return faults


def _extenders(extenders: Sequence[Extender]) -> list[Problem]:
    faults = []
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path: Path = ("extenders", i)
        if extender.prioritize_verb and extender.weight <= 0:
            text = "must have a positive weight applied to it"
            faults.append(invalid((*path, "weight"), extender.weight, text))
        for j, resource in enumerate(extender.managed_resources):
            name = NamedString(resource.name)
            item_path = (*path, "managedResources", j, "name")
            faults += _managed_resource(item_path, name)
            if resource.name in managed:
                text = "duplicate extender managed resource name"
                faults.append(invalid(item_path, name, text))
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        faults.append(invalid(("extenders",), shown, "only one extender can implement bind"))
    return faults


def _managed_resource(path: Path, name: str) -> list[Problem]:
    faults = qualified_name(name, path)
    if faults or is_extended(name):
        return faults
    return [invalid(path, name, "is an invalid extended resource name")]
