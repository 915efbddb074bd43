"""Build the effective configuration from the flags of `asched run`.

Rules   without a file the defaults apply, with the scheduler name `asched` unless one is given,
        and the deprecated flags count; with a file only explicit election flags override it; a
        legacy Policy supplies profile and extenders, so the file must not configure plugins; the
        lease has a name of its own, unless a profile serves `default-scheduler`: then asched must
        compete with kube-scheduler for kube-scheduler's lease.
Source  kubernetes/kubernetes v1.36 cmd/kube-scheduler/app/options
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml
from msgspec.structs import replace

from asched import names
from asched.cli.flag_checks import METRIC_AND_LABEL
from asched.cli.flags import RunOptions, UsageError
from asched.core.config.construct import election_faults
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.v1 import API_VERSION, KIND, SchedulerConfiguration
from asched.core.model.decode import MalformedError, parse
from asched.host.configuration import policy_map
from asched.host.configuration.file import (
    ConfigError,
    LoadedConfig,
    load_config,
    located,
    read_text,
)
from asched.host.configuration.source import item
from asched.kube.session import ConnectionOptions
from asched.ops.doctor.shipped_plugins import SHIPPED_POINTS
from asched.serve.telemetry import log
from asched.serve.telemetry.instruments import Exposition

#: Election flags by the field they set.
ELECTION_FIELDS: Final = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration_ns",
    "leader_elect_renew_deadline": "renew_deadline_ns",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
    "leader_elect_retry_period": "retry_period_ns",
}
#: Deprecated flags by the field of clientConnection they set, used only without a file.
CLIENT_FIELDS: Final = {
    "kubeconfig": "kubeconfig",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
    "kube_api_content_type": "content_type",
}
COMMAND_LINE: Final = "<flags>"
KUBE_SCHEDULERS_LEASE: Final = ("kube-system", "kube-scheduler")


def needs_policy_configmap(options: RunOptions) -> bool:
    """Whether the Policy must be read from the cluster before `load` is called."""
    file_wins = options.use_legacy_policy_config and options.policy_config_file
    return bool(options.policy_configmap) and not file_wins


def policy_text(options: RunOptions) -> str | None:
    """The Policy of a ConfigMap, if the flags name one. Raises ConnectError."""
    if not needs_policy_configmap(options):
        return None
    namespace, name = options.policy_configmap_namespace, options.policy_configmap
    connection = ConnectionOptions(
        kubeconfig=options.given.get("kubeconfig", ""), master=options.master
    )
    return asyncio.run(policy_map.fetch_policy(connection, namespace, name))


def set_up_log(options: RunOptions) -> None:
    log.setup(
        as_json=options.logging_format == "json",
        verbosity=options.v,
        modules=dict(options.vmodule),
        splits=options.splits_log,
    )


def load(
    options: RunOptions,
    known: KnownPlugins = SHIPPED_POINTS,
    policy_text: str | None = None,
    enabled: Sequence[str] = (),
    config_text: str | None = None,
) -> LoadedConfig:
    """The configuration to run; raises ConfigError or UnreadableFileError.

    `config_text` is the content of the file, if it is not on this machine. `enabled` are plugins of
    flags: without a file they run at all their extension points.

    `policy_text` is the Policy of a ConfigMap, if `needs_policy_configmap` requires it.
    """
    policy_name = f"configmap {options.policy_configmap}"
    if policy_text is None and options.policy_config_file:
        policy_name = options.policy_config_file
        policy_text = read_text(policy_name)
    loaded = load_config(
        options.config or None,
        text=config_text if options.config else _document(options, enabled),
        gates=options.gates,
        known=known,
        policy=policy_text,
        policy_name=policy_name,
    )
    configuration = _with_flags(loaded, options)
    if options.shadow:
        configuration = _shadowing(configuration, options)
    faults = election_faults(configuration)
    if faults:
        raise ConfigError(located(options.config or COMMAND_LINE, loaded.source, faults))
    return replace(loaded, configuration=configuration)


def _document(options: RunOptions, enabled: Sequence[str]) -> str:
    """The configuration without a file."""
    served = options.shadow or (options.scheduler_name or names.OUR_SCHEDULER_NAME,)
    listed = {"multiPoint": {"enabled": [{"name": plugin} for plugin in enabled]}}
    more = {"plugins": listed} if enabled else {}
    profiles = [{"schedulerName": name, **more} for name in dict.fromkeys(served)]
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles})


def _shadowing(
    configuration: SchedulerConfiguration, options: RunOptions
) -> SchedulerConfiguration:
    """Keep only the shadowed profiles, without election. Raises UsageError."""
    profiles = {profile.scheduler_name: profile for profile in configuration.profiles}
    for name in options.shadow:
        if name not in profiles:
            raise UsageError(
                f"--shadow={name}: no profile of {options.config} has this schedulerName;"
                f" the file has {', '.join(sorted(profiles))}"
            )
    for pool in configuration.pools:
        if pool.profile and pool.profile not in options.shadow:
            text = f"the pods of pool {pool.name} are decided by this profile; add it to --shadow"
            raise UsageError(f"--shadow leaves out {pool.profile}: {text}")
    return replace(
        configuration,
        profiles=tuple(p for name, p in profiles.items() if name in options.shadow),
        leader_election=replace(configuration.leader_election, leader_elect=False),
    )


def exposition(options: RunOptions) -> Exposition:
    """Which metrics are exposed; the flag's allow lists override the manifest's, as upstream.

    Raises UnreadableFileError or UsageError for a manifest that cannot be used.
    """
    path = options.allow_metric_labels_manifest
    allowed = dict(options.allow_metric_labels)
    if path and not allowed:
        allowed = _manifest(path)
    return Exposition.of(options.disabled_metrics, allowed)


def _manifest(path: str) -> dict[str, str]:
    form = f'--allow-metric-labels-manifest {path}: must map "metric,label" to values'
    try:
        read_lists = parse(yaml.safe_load, read_text(path))
    except MalformedError as error:
        raise UsageError(f"{form}: {error}") from error
    if not isinstance(read_lists, Mapping):
        raise UsageError(form)
    for key, values in read_lists.items():
        if not (isinstance(key, str) and METRIC_AND_LABEL.fullmatch(key)):
            raise UsageError(f"{form}, not {key!r}")
        if not isinstance(values, str):
            raise UsageError(f"{form} between commas, as one text: {key}")
    return dict(read_lists)


def lease_warnings(configuration: SchedulerConfiguration) -> tuple[str, ...]:
    """Warn of a copied configuration that would wait for kube-scheduler's lease."""
    election = configuration.leader_election
    lease = (election.resource_namespace, election.resource_name)
    served = {profile.scheduler_name for profile in configuration.profiles}
    if (
        not election.leader_elect
        or lease != KUBE_SCHEDULERS_LEASE
        or names.DEFAULT_SCHEDULER_NAME in served
    ):
        return ()
    text = (
        "leaderElection names kube-system/kube-scheduler, kube-scheduler's own lease, so that only"
        " one of the two schedulers works at a time; set resourceName to another name"
    )
    return (text,)


def status_warnings(options: RunOptions, loaded: LoadedConfig) -> tuple[str, ...]:
    """Args can turn a status controller off; only the flag turns them on."""
    if options.status_controllers or not isinstance(loaded.source.document, Mapping):
        return ()
    written = [
        entry.get("args")
        for profile in loaded.source.document.get("profiles") or ()
        for entry in profile.get("pluginConfig") or ()
    ]
    if not any(isinstance(args, Mapping) and args.get("statusController") for args in written):
        return ()
    return ("statusController: true has no effect without --status-controllers; add the flag",)


def with_own_lease(loaded: LoadedConfig) -> SchedulerConfiguration:
    """The configuration with the lease `asched`, if its file names none and serves other names."""
    configuration = loaded.configuration
    served = {profile.scheduler_name for profile in configuration.profiles}
    is_named = item(item(loaded.source.document, "leaderElection"), "resourceName")
    if is_named or names.DEFAULT_SCHEDULER_NAME in served:
        return configuration
    election = replace(configuration.leader_election, resource_name=names.OUR_SCHEDULER_NAME)
    return replace(configuration, leader_election=election)


def _with_flags(loaded: LoadedConfig, options: RunOptions) -> SchedulerConfiguration:
    configuration, given = with_own_lease(loaded), options.given
    election = {field: given[flag] for flag, field in ELECTION_FIELDS.items() if flag in given}
    changes: dict[str, Any] = {
        "leader_election": replace(configuration.leader_election, **election)
    }
    if not options.config:
        client = {field: given[flag] for flag, field in CLIENT_FIELDS.items() if flag in given}
        changes["client_connection"] = replace(configuration.client_connection, **client)
        if "profiling" in given:
            changes["enable_profiling"] = given["profiling"]
        if "contention_profiling" in given:
            changes["enable_contention_profiling"] = given["contention_profiling"]
    return replace(configuration, **changes)
