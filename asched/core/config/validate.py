"""Validate a configuration: all errors at once, each with its path.

Rules   election is not validated while it is off; queueSort must be equal in all profiles.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/validation/validation.go
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from asched import names
from asched.core.config import duration
from asched.core.config.args import kind_of_args
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.layout import leases_of
from asched.core.config.legacy.replacements import ADVICE
from asched.core.config.pools import NodePool, pool_faults, profile_faults
from asched.core.config.problem import (
    Path,
    Problem,
    duplicate,
    forbidden,
    invalid,
    path_text,
    quoted,
    required,
)
from asched.core.config.v1 import (
    JITTER_FACTOR,
    LATER_POINTS,
    MULTI_POINT,
    NO_PLUGINS,
    Extender,
    KubeSchedulerProfile,
    LeaderElection,
    SchedulerConfiguration,
)
from asched.core.config.validate_args import CHECKS, Gates, qualified_name, ranges
from asched.core.config.versions import RULES
from asched.core.model.requests import is_extended

#: In-tree plugins of older versions that v1 rejects by name, except inside multiPoint.
REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
QUEUE_SORT: Final = "queueSort"
#: Plugins whose work over time, for units of all pools, one process does.
NOT_BY_POOL: Final = frozenset(
    {names.CHECK_AND_HOLD, names.BACKFILL, names.REBALANCE, names.GROUP_SCALE_UP}
)
#: Upstream mistakenly finds NodeResourcesFit by the kind of its args: a plugin that is configured
#: under that name is reported with wrong args.
MISNAMED_PLUGIN: Final = kind_of_args(names.NODE_RESOURCES_FIT)


def validate(configuration: SchedulerConfiguration, gates: Gates = DEFAULT_GATES) -> list[Problem]:
    """Every fault of an effective configuration."""
    faults = ranges(configuration, ())
    faults += ranges(configuration.client_connection, ("clientConnection",))
    faults += _leader_election(configuration.leader_election)
    faults += _profiles(configuration.profiles, gates)
    if configuration.pod_max_backoff_s < configuration.pod_initial_backoff_s:
        text = "must be greater than or equal to podInitialBackoffSeconds"
        faults.append(invalid(("podMaxBackoffSeconds",), configuration.pod_max_backoff_s, text))
    faults += _extenders(configuration.extenders) + pool_faults(configuration.pools)
    return faults + pool_profile_faults(configuration) + pool_lease_faults(configuration)


def pool_profile_faults(configuration: SchedulerConfiguration) -> list[Problem]:
    """The pools that name a profile which the configuration does not have."""
    served = [profile.scheduler_name for profile in configuration.profiles]
    return profile_faults(configuration.pools, served)


def pool_lease_faults(configuration: SchedulerConfiguration) -> list[Problem]:
    """What several processes cannot divide by pools, and what they need."""
    path, faults = ("poolLeases",), list[Problem]()
    for i, pool in enumerate(configuration.pools):
        if pool.lease is not None:
            faults += _pool_lease(configuration, pool, ("pools", i, "lease"))
    if not configuration.pool_leases:
        return faults
    if not configuration.pools:
        faults.append(forbidden(path, "there are no pools"))
    if not configuration.leader_election.leader_elect:
        faults.append(forbidden(path, "needs leaderElection.leaderElect"))
    if configuration.delay_cache_until_active:
        faults.append(forbidden(("delayCacheUntilActive",), "not together with poolLeases"))
    for i, extender in enumerate(configuration.extenders):
        if extender.bind_verb:
            text = "its bindings carry no version, so that late ones could not be refused"
            faults.append(forbidden(("extenders", i, "bindVerb"), text))
    for i, profile in enumerate(configuration.profiles):
        for point in (*names.EXTENSION_POINTS, MULTI_POINT):
            for j, plugin in enumerate(profile.plugin_set(point).enabled):
                if plugin.name in NOT_BY_POOL:
                    at: Path = ("profiles", i, "plugins", point, "enabled", j)
                    text = f"{plugin.name} decides for all pools; leave out it or poolLeases"
                    faults.append(forbidden(at, text))
    return faults


def _pool_lease(configuration: SchedulerConfiguration, pool: NodePool, path: Path) -> list[Problem]:
    """Faults of the times of a pool's Lease, together with those of leaderElection."""
    if not configuration.pool_leases:
        return [forbidden(path, "needs poolLeases: true; without it there is one Lease")]
    assert pool.lease is not None, "called for such pools"
    if faults := ranges(pool.lease, path):
        return faults
    times = leases_of(configuration)[pool.name]
    if times.lease_ns <= times.renew_ns:
        text = f"must be greater than renewDeadline ({duration.render(times.renew_ns)})"
        return [invalid((*path, "leaseDuration"), duration.render(times.lease_ns), text)]
    if times.renew_ns <= int(JITTER_FACTOR * times.retry_ns):
        retry = duration.render(times.retry_ns)
        text = f"must be greater than {JITTER_FACTOR} times retryPeriod ({retry})"
        return [invalid((*path, "renewDeadline"), duration.render(times.renew_ns), text)]
    return []


def _leader_election(election: LeaderElection) -> list[Problem]:
    if not election.leader_elect:
        return []
    path: Path = ("leaderElection",)
    faults = ranges(election, path)
    if election.lease_duration_ns <= election.renew_deadline_ns:
        lease = duration.render(election.lease_duration_ns)
        text = "must be greater than renewDeadline"
        faults.append(invalid((*path, "leaseDuration"), lease, text))
    if election.resource_lock != "leases":
        text = 'resourceLock value must be "leases"'
        faults.append(invalid((*path, "resourceLock"), election.resource_lock, text))
    return faults


def _profiles(profiles: Sequence[KubeSchedulerProfile], gates: Gates) -> list[Problem]:
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
            faults.append(duplicate((*path, "schedulerName"), profile.scheduler_name))
        seen.add(profile.scheduler_name)
    return faults + _queue_sort(profiles)


def _later_points(profile: KubeSchedulerProfile, path: Path, gates: Gates) -> list[Problem]:
    """Extension points that the version in force does not have."""
    faults = []
    for point, rule in LATER_POINTS.items():
        if not gates.get(rule) and profile.plugin_set(point) != NO_PLUGINS:
            text = f"unknown field {quoted(path_text((*path, point)))}"
            hint = f"delete the lines: Kubernetes {RULES[rule]} and newer have this point"
            faults.append(Problem(text, (*path, point), hint))
    return faults


def _removed(path: Path, name: str) -> Problem:
    return replace(invalid(path, name, "there is no such plugin in v1"), hint=ADVICE[name])


def _removed_plugins(profile: KubeSchedulerProfile, path: Path) -> list[Problem]:
    return [
        _removed((*path, point, "enabled", i), plugin.name)
        for point in names.EXTENSION_POINTS
        for i, plugin in enumerate(profile.plugin_set(point).enabled)
        if plugin.name in REMOVED_PLUGINS
    ]


def _plugin_config(profile: KubeSchedulerProfile, path: Path, gates: Gates) -> list[Problem]:
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
            text = f"use the plugin's name, {names.NODE_RESOURCES_FIT}"
            faults.append(invalid((*item_path, "name"), entry.name, text))
        elif entry.name in CHECKS:
            faults += CHECKS[entry.name](entry.args, (*item_path, "args"), gates)
    return faults


def _queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> list[Problem]:
    faults = []
    first = profiles[0].plugin_set(QUEUE_SORT)
    if len(first.enabled) > 1:
        path: Path = ("profiles", 0, "plugins", QUEUE_SORT, "enabled")
        text = "only one queue sort plugin can be enabled"
        faults.append(invalid(path, len(first.enabled), text))
    name = first.enabled[0].name if first.enabled else ""
    args = profiles[0].plugin_config.get(name) if name else None
    for i, profile in enumerate(profiles[1:], start=1):
        own = profile.plugin_set(QUEUE_SORT)
        if own != first:
            path = ("profiles", i, "plugins", QUEUE_SORT)
            shown_names = [plugin.name for plugin in own.enabled]
            faults.append(invalid(path, shown_names, "must be the same for all profiles"))
        faults += [
            forbidden(("profiles", i, "pluginConfig", j, "args"), "differ from the first profile's")
            for j, entry in enumerate(profile.plugin_configs)
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
            name = resource.name
            item_path = (*path, "managedResources", j, "name")
            wrong = qualified_name(name, item_path)
            if not wrong and not is_extended(name):
                wrong = [invalid(item_path, name, "is an invalid extended resource name")]
            faults += wrong
            if resource.name in managed:
                text = "duplicate extender managed resource name"
                faults.append(invalid(item_path, name, text))
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        faults.append(invalid(("extenders",), shown, "only one extender can implement bind"))
    return faults
