"""`asched run`: schedule the pods of the current cluster, with kube-scheduler's flags.

Exit status: 0 after an orderly stop, 1 if it cannot reach or may not read the cluster, 2 for flags
or configuration that make no sense.
"""

import asyncio
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from asched.cli import flags, run_config
from asched.cli.flag_text import flag_texts
from asched.cli.flags import HelpRequested, RunOptions, UsageError, VersionRequested
from asched.core.config.text import effective, to_yaml
from asched.edge.client.errors import ConnectError
from asched.edge.client.session import ConnectionOptions
from asched.edge.host.assemble import BUILD_ERRORS
from asched.edge.host.config_file import ConfigError, LoadedConfig, UnreadableFileError
from asched.edge.host.loops import CannotStartError
from asched.edge.host.policy_configmap import fetch_policy
from asched.edge.host.process import Plan, run_process
from asched.edge.host.serving import ServingPlan
from asched.edge.host.user_plugins import PluginLoadError, discover
from asched.edge.serve.options import AccessOptions
from asched.edge.serve.tls import CannotServeError
from asched.edge.telemetry import log


def installed_version() -> str:
    """The version of the installed package."""
    from asched.cli.main import installed_version as version

    return version()


def main(argv: Sequence[str]) -> int:
    """Read the flags and run until told to stop."""
    try:
        options = flags.parse(argv)
        plan = plan_of(options)
        if options.write_config_to:
            return 0
    except HelpRequested:
        sys.stdout.write(flags.help_text())
        return 0
    except VersionRequested:
        sys.stdout.write(f"asched {installed_version()}\n")
        return 0
    except (UsageError, UnreadableFileError) as error:
        return _fail(str(error), 2)
    except ConnectError as error:
        return _fail(str(error), 1)
    except PluginLoadError as error:
        if error.__cause__ is not None and log.verbosity():
            traceback.print_exception(error.__cause__)
        return _fail(str(error), 2)
    except ConfigError as error:
        for line in str(error).splitlines():
            _fail(line, 2)
        return 2
    try:
        return run_process(plan)
    except BUILD_ERRORS as error:
        return _fail(str(error), 2)
    except (ConnectError, CannotStartError, CannotServeError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return 130


def plan_of(options: RunOptions) -> Plan:
    """Everything the process needs, read from flags and files."""
    log.setup(
        as_json=options.logs.logging_format == "json",
        verbosity=options.logs.v,
        modules=dict(options.logs.vmodule),
    )
    plugins = discover(options.plugin, options.plugin_dir)
    policy_text = _policy_text(options)

    def load() -> LoadedConfig:
        return run_config.load(options, plugins.known, policy_text, enabled=plugins.given)

    loaded = load()
    own = run_config.lease_warnings(loaded.configuration)
    for warning in (*options.warnings, *loaded.warnings, *own):
        sys.stderr.write(f"asched run: warning: {warning}\n")
    if options.write_config_to:
        _write(options.write_config_to, to_yaml(effective(loaded.configuration)))
    client = loaded.configuration.client_connection
    # kube-scheduler's default of 50 requests a second is a limit nobody asked for; a written one
    # counts.
    written = (loaded.source.document or {}).get("clientConnection") or {}
    is_limited = bool({"kube_api_qps", "kube_api_burst"} & options.given.keys() or "qps" in written)
    return Plan(
        configuration=loaded.configuration,
        connection=ConnectionOptions(
            kubeconfig=client.kubeconfig,
            master=options.master,
            qps=client.qps if is_limited else 0.0,
            burst=client.burst if is_limited else 0,
        ),
        bind_concurrency=options.bind_concurrency,
        max_in_unschedulable_s=options.pod_max_in_unschedulable_pods_duration,
        plugins=plugins,
        serving=ServingPlan(
            options.serving,
            AccessOptions(options.authentication, options.authorization),
            flag_texts(options.given),
        ),
        reload=load,
        config_files=tuple(filter(None, (options.config, options.policy.policy_config_file))),
        gates=options.gates,
        version=installed_version(),
    )


def _policy_text(options: RunOptions) -> str | None:
    """The Policy of a ConfigMap, if that is where it lies. Raises ConnectError."""
    if not run_config.needs_policy_configmap(options):
        return None
    policy = options.policy
    connection = ConnectionOptions(
        kubeconfig=options.given.get("kubeconfig", ""), master=options.master
    )
    return asyncio.run(
        fetch_policy(connection, policy.policy_configmap_namespace, policy.policy_configmap)
    )


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--write-config-to {path}: {error.strerror}") from error


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"asched run: {message}\n")
    return status
