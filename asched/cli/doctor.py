"""`asched doctor`: check an installation, or before a start whether the scheduler can run.

Without flags it checks the installation that it finds in the cluster, with that installation's
flags, file and account; in a pod of asched, the scheduler of that pod. With flags of `asched run`
it checks that start. It has three flags of its own:

    --as USER         check the rights of another account, for instance
                      system:serviceaccount:asched-system:asched
    --as-group GROUP  a group of that account, repeatable; the groups that the API server adds
                      are added here, too
    -o, --output FORM text (default), wide (a finding and its fix in one line), json or yaml: a
                      list of {check, state, text, cure}

Exit status: 0 no problem found (there may be warnings), 1 at least one problem, or the API server
cannot be reached, 2 wrong flags or configuration.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Final, NamedTuple, NoReturn

from msgspec.structs import asdict

from asched.cli import cluster_version, flags, run_config
from asched.cli.arguments import add_output_flag, counted, fail, plain, written
from asched.cli.commands import installed_commands, installed_version
from asched.cli.flags import (
    EXIT_OK,
    EXIT_USAGE,
    HelpRequested,
    RunOptions,
    UsageError,
    VersionRequested,
)
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.v1 import SchedulerConfiguration
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.event_loop import run_on_loop
from asched.kube.errors import ConnectError
from asched.kube.kubeconfig import SERVICE_ACCOUNT
from asched.kube.session import ConnectionOptions
from asched.ops.doctor.checks import Examination, examine
from asched.ops.doctor.notes import Finding, Identity, State, UnusableSettingsError
from asched.ops.doctor.permissions import Right
from asched.ops.doctor.shipped_plugins import SHIPPED_POINTS, SHIPPED_RIGHTS
from asched.serve.auth import in_cluster

EXIT_PROBLEM: Final = 1
PROCESS_ONE: Final = Path("/proc/1/cmdline")
#: Flags of `asched run` that say what to check.
CHOOSING: Final = {
    "config",
    "scheduler_name",
    "shadow",
    "policy_config_file",
    "policy_configmap",
    "leader_elect",
    "leader_elect_resource_name",
    "leader_elect_resource_namespace",
}


def main(argv: Sequence[str]) -> int:
    """Run the checks and print the findings; the exit status is 1 if there is a problem."""
    try:
        own, rest = split(argv)
        beside = () if own.user or rest else flags_beside()
        options = flags.parse(beside or rest, cluster_version.of_server)
        run_config.set_up_log(options)
        plugins = plugins_of(options)
        configuration = configured(options, plugins)
        findings = examined(own, options, configuration, plugins, is_beside=bool(beside))
    except HelpRequested:
        print((__doc__ or "").rstrip() + "\n\nThe flags of `asched run`: asched run --help.")
        return EXIT_OK
    except VersionRequested:
        print(f"asched {installed_version()}")
        return EXIT_OK
    except ConnectError as error:
        return fail("doctor", error, EXIT_PROBLEM)
    except (UsageError, UnreadableFileError, ConfigError) as error:
        return fail("doctor", error, EXIT_USAGE)
    except ModuleNotFoundError as error:
        if is_whole():
            raise
        text = f"{error}: this configuration needs all of asched: pip install asched"
        return fail("doctor", text, EXIT_USAGE)
    print(printed(findings, own.output))
    return EXIT_PROBLEM if any(f.state is State.PROBLEM for f in findings) else EXIT_OK


def is_whole() -> bool:
    """Whether this is asched, not asched-cli, which has no NumPy and no cryptography."""
    return "run" in installed_commands()


def examined(
    own: argparse.Namespace,
    options: RunOptions,
    configuration: SchedulerConfiguration,
    plugins: "Plugins",
    *,
    is_beside: bool,
) -> list[Finding]:
    client = configuration.client_connection
    examination = Examination(
        configuration=configuration,
        connection=ConnectionOptions(
            kubeconfig=client.kubeconfig, master=options.master, qps=client.qps, burst=client.burst
        ),
        other=Identity.named(own.user, tuple(own.groups)) if own.user else None,
        settings=None if CHOOSING & options.given.keys() else partial(settings, plugins.known),
        inside=deployment_of(gethostname()) if is_beside else "",
        is_serving=options.serving.secure_port != 0,
        writes_statuses=options.status_controllers,
        kubernetes=options.kubernetes,
        known=plugins.known,
        rights_of=plugins.rights_of,
    )
    return run_on_loop(examine(examination))


class Plugins(NamedTuple):
    """The plugins that a configuration may name."""

    known: KnownPlugins
    rights_of: Callable[[str], Sequence[Right]]
    #: Those of flags.
    given: Sequence[str] = ()
    #: What reading a configuration may raise for one that cannot be loaded.
    load_errors: tuple[type[Exception], ...] = ()


def plugins_of(options: RunOptions) -> Plugins:
    """Those of this environment; asched-cli has tables of asched's own only. Raises UsageError."""
    if not is_whole():
        if options.plugin or options.plugin_dir:
            raise UsageError(
                "--plugin and --plugin-dir need the whole of asched: pip install asched"
            )
        return Plugins(SHIPPED_POINTS, lambda name: SHIPPED_RIGHTS.get(name, ()))
    from asched.host.user_plugins.catalogue import PluginLoadError, discover  # needs NumPy

    try:
        catalogue = discover(options.plugin, options.plugin_dir)
    except PluginLoadError as error:
        raise UsageError(str(error)) from error
    return Plugins(catalogue.known, catalogue.rights_of, catalogue.given, (PluginLoadError,))


def configured(options: RunOptions, plugins: Plugins) -> SchedulerConfiguration:
    """The configuration that `asched run` starts with, and its warnings on stderr. Raises
    ConfigError, ConnectError, UnreadableFileError or UsageError.
    """
    run_config.exposition(options)
    policy = run_config.policy_text(options)
    try:
        loaded = run_config.load(options, plugins.known, policy, enabled=plugins.given)
    except plugins.load_errors as error:
        raise UsageError(str(error)) from error
    for warning in (
        *options.warnings,
        *loaded.warnings,
        *run_config.status_warnings(options, loaded),
        *run_config.lease_warnings(loaded.configuration),
    ):
        sys.stderr.write(f"asched doctor: warning: {warning}\n")
    return loaded.configuration


def settings(known: KnownPlugins, words: Sequence[str], text: str) -> SchedulerConfiguration:
    """What a command line of `asched run` and the text of its file configure."""
    given = words[words.index("run") + 1 :] if "run" in words else words[1:]
    try:
        options = flags.parse(given)
        if options.config and not text:
            raise UnusableSettingsError(f"{options.config} is in no ConfigMap that exists")
        return run_config.load(options, known, config_text=text).configuration
    except (UsageError, ConfigError, UnreadableFileError) as error:
        raise UnusableSettingsError("; ".join(str(error).splitlines())) from error


def flags_beside() -> tuple[str, ...]:
    """The flags of the scheduler beside which this runs: process 1 of its container."""
    try:
        words = PROCESS_ONE.read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return ()
    return flags_of_process(words) if in_cluster() else ()


def flags_of_process(words: Sequence[str]) -> tuple[str, ...]:
    """The flags of `asched run` in the words of a process, which may be run by an interpreter."""
    for index, word in enumerate(words[:-1]):
        if Path(word).name == "asched" and words[index + 1] == "run":
            return tuple(filter(None, words[index + 2 :]))
    return ()


def deployment_of(host: str) -> str:
    """Namespace and name of the Deployment of a pod, which is the host of its processes."""
    try:
        namespace = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    return f"{namespace}/{host.rsplit('-', 2)[0]}"


class _FlagParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def own_parser() -> argparse.ArgumentParser:
    parser = _FlagParser(add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--as", dest="user", default="", metavar="USER", help="check the rights of this account")
    add(
        "--as-group",
        dest="groups",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group of that account, repeatable",
    )
    add_output_flag(parser, "a finding and its fix in one line")
    return parser


def split(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Doctor's own flags, and the remaining words for `asched run`. Raises UsageError."""
    own, rest = own_parser().parse_known_args(argv)
    if own.groups and not own.user:
        raise UsageError("--as-group needs --as")
    return own, rest


def printed(findings: Sequence[Finding], output: str) -> str:
    """The findings in a form of `OUTPUTS`."""
    if output in ("json", "yaml"):
        objects = [{**asdict(finding), "state": str(finding.state)} for finding in findings]
        return written(objects, output).rstrip("\n")
    return plain(as_text(findings) if output == "text" else as_lines(findings))


def as_lines(findings: Sequence[Finding]) -> str:
    """One line per finding, for grep."""
    width = max(len(finding.check) for finding in findings)
    return "\n".join(
        f"{f.state:<8} {f.check:<{width}}  {f.text}{f'  -> {f.cure}' if f.cure else ''}"
        for f in findings
    )


def as_text(findings: Sequence[Finding]) -> str:
    """One line per finding, its fix below, and a summary."""
    width = max(len(finding.check) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<8} {finding.check:<{width}}  {finding.text}")
        if finding.cure:
            lines.append(f"{'':<8} {'':<{width}}  -> {finding.cure}")
    counts = {state: sum(f.state is state for f in findings) for state in State}
    summary = [counted(counts[s], s) for s in (State.PROBLEM, State.WARNING) if counts[s]]
    if counts[State.SKIPPED]:
        summary.append(f"{counts[State.SKIPPED]} {State.SKIPPED}")
    return "\n".join([*lines, "", ", ".join(summary) or "no problem found"])
