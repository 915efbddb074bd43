"""Resolve a valid configuration: extenders in order of use, every profile with its plugins.

Rules   extenders come first: ignorable ones go last, and their ignored resources replace the user's
        in every profile; then plugins are built, which is where NodeResourcesFit's args are
        validated; then points are resolved; then queue sorting is compared. kube-scheduler stops
        at the first error; asched continues with the next profile.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/scheduler.go, profile/profile.go
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.config.across_pools import OF_ANY_NAMESPACE
from asched.core.config.args import NodeResourcesFitArgs
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.merge import ResolvedProfile, UnusableProfileError, needed_plugins, resolve
from asched.core.config.pools import TO_SHARE
from asched.core.config.problem import Path, Problem, quoted
from asched.core.config.v1 import (
    JITTER_FACTOR,
    Extender,
    KubeSchedulerProfile,
    PluginConfig,
    SchedulerConfiguration,
)
from asched.core.config.validate_args import node_resources_fit


class Constructed(msgspec.Struct, frozen=True):
    """The result: the configuration as completed, its profiles, extenders in order of use."""

    configuration: SchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    extenders: tuple[Extender, ...]


def construct(
    configuration: SchedulerConfiguration,
    known: KnownPlugins,
    extender_fault: Callable[[Extender], str | None] = lambda _: None,
) -> tuple[Constructed | None, list[Problem]]:
    """Resolve a validated configuration; `extender_fault` checks certificates (files)."""
    faults = _extender_faults(configuration.extenders, extender_fault)
    completed, more = _ignored_resources(configuration)
    faults += more
    resolved: list[ResolvedProfile] = []
    for index, profile in enumerate(completed.profiles):
        found = _args_faults(profile, index)
        try:
            resolved.append(resolve(profile, known, index))
        except UnusableProfileError as error:
            found += error.problems
        if not found:
            found += _queue_sort_faults(resolved)
        faults += found
    if faults:
        return None, faults
    completed = replace(completed, profiles=tuple(map(_used_args_only, completed.profiles)))
    return Constructed(completed, tuple(resolved), in_order_of_use(completed.extenders)), []


def in_order_of_use(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """As written, but ignorable extenders last."""
    firm = tuple(extender for extender in extenders if not extender.ignorable)
    soft = tuple(extender for extender in extenders if extender.ignorable)
    return firm + soft


def election_faults(configuration: SchedulerConfiguration) -> list[Problem]:
    """Faults that only the elector reports, in kube-scheduler after its caches are filled."""
    election = configuration.leader_election
    name = ""
    if election.leader_elect and election.lease_duration_ns <= election.renew_deadline_ns:
        name, text = "leaseDuration", "must be greater than renewDeadline"
    elif election.leader_elect and election.renew_deadline_ns <= int(
        JITTER_FACTOR * election.retry_period_ns
    ):
        name, text = "renewDeadline", f"must be greater than {JITTER_FACTOR} times retryPeriod"
    return [Problem(f"leaderElection.{name}: {text}", ("leaderElection", name))] if name else []


def reach_faults(configuration: SchedulerConfiguration) -> list[Problem]:
    """Extenders and plugins with rules about pods of several pools, while there are pools."""
    if not configuration.pools:
        return []
    text = f"{OF_ANY_NAMESPACE}: while there are pools, the pods that it filters wait"
    found = [
        Problem(f"extenders[{i}] {text}", ("extenders", i))
        for i, extender in enumerate(configuration.extenders)
        if extender.filter_verb or extender.preempt_verb
    ]
    text = f"namespaces with an ElasticQuota {TO_SHARE}, else their pods wait"
    for i, profile in enumerate(configuration.profiles):
        enabled = {plugin.name for each in profile.plugins.values() for plugin in each.enabled}
        if names.CAPACITY_SCHEDULING in enabled:
            found.append(Problem(f"profiles[{i}]: CapacityScheduling: {text}", ("profiles", i)))
    return found


def _extender_faults(
    extenders: Sequence[Extender], extender_fault: Callable[[Extender], str | None]
) -> list[Problem]:
    found = ((i, extender_fault(extender)) for i, extender in enumerate(extenders))
    return [
        Problem(f"extenders[{i}].tlsConfig: {text}", ("extenders", i, "tlsConfig"))
        for i, text in found
        if text
    ]


def _ignored_resources(
    configuration: SchedulerConfiguration,
) -> tuple[SchedulerConfiguration, list[Problem]]:
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration, []
    faults: list[Problem] = []
    profiles = []
    for index, profile in enumerate(configuration.profiles):
        args = profile.plugin_config.get(names.NODE_RESOURCES_FIT)
        if not isinstance(args, NodeResourcesFitArgs):
            text = f"an extender with ignoredByScheduler needs {names.NODE_RESOURCES_FIT}"
            faults.append(Problem(text, ("profiles", index)))
            continue
        changed = PluginConfig(names.NODE_RESOURCES_FIT, replace(args, ignored_resources=ignored))
        configs = tuple(
            changed if entry.name == changed.name else entry for entry in profile.plugin_configs
        )
        profiles.append(replace(profile, plugin_configs=configs))
    if faults:
        return configuration, faults
    return replace(configuration, profiles=tuple(profiles)), []


def _args_faults(profile: KubeSchedulerProfile, index: int) -> list[Problem]:
    """Faults of NodeResourcesFit's args, checked if the plugin is built."""
    if names.NODE_RESOURCES_FIT not in needed_plugins(profile):
        return []
    return [
        fault
        for place, entry in enumerate(profile.plugin_configs)
        if isinstance(entry.args, NodeResourcesFitArgs)
        for fault in node_resources_fit(
            entry.args, ("profiles", index, "pluginConfig", place, "args")
        )
    ]


def _queue_sort_faults(resolved: Sequence[ResolvedProfile]) -> list[Problem]:
    """Every further profile must sort the queue as the first does."""
    first, last = resolved[0], resolved[-1]
    first_name, name = first.at("queueSort")[0].name, last.at("queueSort")[0].name
    path: Path = ("profiles", len(resolved) - 1)
    if name != first_name:
        text = f"queueSort is {quoted(name)}, but {quoted(first_name)} in the first profile"
        return [Problem(text, path)]
    if first.profile.plugin_config.get(name) != last.profile.plugin_config.get(name):
        return [Problem(f"the args of {quoted(name)} differ from the first profile's", path)]
    return []


def _used_args_only(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """Args of used plugins, sorted by plugin, as in the effective text."""
    args = profile.plugin_config
    used = (name for name in needed_plugins(profile) if args.get(name) is not None)
    return replace(profile, plugin_configs=tuple(PluginConfig(name, args[name]) for name in used))
