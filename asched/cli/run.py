"""`asched run`: schedule the pods of the current cluster, with kube-scheduler's flags.

Exit status: 0 a clean stop; 1 the cluster cannot be reached or read; 2 wrong flags or
configuration.
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from asched.cli import cluster_version, flags, run_config
from asched.cli.arguments import fail
from asched.cli.commands import installed_version
from asched.cli.flag_table import flag_texts
from asched.cli.flags import HelpRequested, RunOptions, UsageError, VersionRequested
from asched.core.config import text
from asched.host.assemble import BUILD_ERRORS
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.configuration.reload import DesiredSetup
from asched.host.loops import CannotStartError
from asched.host.process import Plan, RecordPlan, run_process
from asched.host.user_plugins.catalogue import PluginLoadError, discover, plugin_files
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions
from asched.kube.transport import JSON, WITHOUT_MANAGED_FIELDS
from asched.kube.yaml_text import to_yaml
from asched.ops import shadowing
from asched.serve.options import AccessOptions, CannotServeError, ServingPlan
from asched.serve.telemetry import log

said = logging.getLogger("asched.run")

#: Pages that a feature gate opens.
GATED_PAGES: Final = {"ComponentFlagz": "/flagz", "ComponentStatusz": "/statusz"}


def main(argv: Sequence[str], *, is_shadow: bool = False) -> int:
    """Parse the flags and run until stopped. `is_shadow`: by `asched shadow run`."""
    try:
        options = flags.parse(argv, cluster_version.of_server)
        if is_shadow and not options.shadow:
            return _fail("shadow run needs --shadow=NAME, the scheduler to shadow", 2)
        plan = plan_of(options)
        if options.write_config_to:
            return 0
    except HelpRequested:
        sys.stdout.write(flags.help_text())
        return 0
    except VersionRequested:
        sys.stdout.write(f"asched {installed_version()}\n")
        return 0
    except (UsageError, UnreadableFileError, ConfigError) as error:
        return _fail(error, 2)
    except ConnectError as error:
        return _fail(error, 1)
    except PluginLoadError as error:
        if error.__cause__ is not None and log.verbosity():
            said.error("The plugin raised", exc_info=error.__cause__)
        return _fail(error, 2)
    log.speak_for_python()
    _log_settings(plan)
    try:
        return run_process(plan)
    except BUILD_ERRORS as error:
        return _fail(error, 2)
    except (ConnectError, CannotStartError, CannotServeError) as error:
        return _fail(error, 1)


def plan_of(options: RunOptions) -> Plan:
    """Read flags and files into what the process needs."""
    run_config.set_up_log(options)
    exposition = run_config.exposition(options)
    policy_text = run_config.policy_text(options)

    def read() -> tuple[DesiredSetup, Sequence[str]]:
        plugins = discover(options.plugin, options.plugin_dir)
        loaded = run_config.load(options, plugins.known, policy_text, enabled=plugins.given)
        warnings = (*loaded.warnings, *run_config.status_warnings(options, loaded))
        return DesiredSetup(loaded.configuration, plugins), warnings

    wanted, warnings = read()
    own = run_config.lease_warnings(wanted.configuration)
    for warning in (*options.warnings, *warnings, *own):
        _warn(warning)
    if options.write_config_to:
        _write(options.write_config_to, to_yaml(text.effective(wanted.configuration)))
    client = wanted.configuration.client_connection
    return Plan(
        configuration=wanted.configuration,
        connection=ConnectionOptions(
            kubeconfig=client.kubeconfig,
            master=options.master,
            qps=client.qps,
            burst=client.burst,
            stream_accept=WITHOUT_MANAGED_FIELDS
            if options.gates["streams-leave-out-managed-fields"]
            else JSON,
        ),
        bind_concurrency=options.bind_concurrency,
        advises=options.explain_hint,
        writes_statuses=options.status_controllers,
        max_in_unschedulable_s=options.pod_max_in_unschedulable_pods_duration,
        audit_period_s=options.audit_period,
        plugins=wanted.plugins,
        serving=ServingPlan(
            options.serving,
            AccessOptions(options.authentication, options.authorization),
            {**flag_texts(options.given), "emulated-version": f"[{options.kubernetes.minor}]"},
            frozenset(path for gate, path in GATED_PAGES.items() if not options.gates[gate]),
            installed_version,
        ),
        reload=lambda: read()[0],
        files=lambda: (
            *filter(None, (options.config, options.policy_config_file)),
            *plugin_files(options.plugin, options.plugin_dir),
        ),
        gates=options.gates,
        kubernetes=options.kubernetes,
        record=RecordPlan(Path(options.record), options.record_max_bytes)
        if options.record
        else None,
        shadow=shadowing.ShadowPlan(Path(options.shadow_report) if options.shadow_report else None)
        if options.shadow
        else None,
        exposition=exposition,
        version=installed_version,
    )


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--write-config-to {path}: {error.strerror}") from error


def _log_settings(plan: Plan) -> None:
    """Log the version whose rules decide, flags (from -v=1) and configuration (from -v=2); the last
    two in kube-scheduler's words.
    """
    shown = plan.kubernetes.server or "not read"
    said.info("Deciding as Kubernetes %s", plan.kubernetes.minor, extra={"server": shown})
    for name, value in sorted(plan.serving.flags.items()):
        said.info('FLAG: --%s="%s"', name, value, extra={"v": 1})
    if log.verbosity() >= 2:
        document = to_yaml(text.without_keys(plan.configuration))
        said.info("Using component config", extra={"v": 2, "config": document, "whole": True})


def _warn(message: str) -> None:
    if log.is_json():
        said.warning(message)
    else:
        sys.stderr.write(f"asched run: warning: {message}\n")


def _fail(error: object, status: int) -> int:
    """Report the lines of an error; a JSON log gets objects."""
    if not log.is_json():
        return fail("run", error, status)
    for line in str(error).splitlines():
        said.error("command failed", extra={"err": line})
    return status
