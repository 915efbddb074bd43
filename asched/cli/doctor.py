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
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Final, NoReturn

from msgspec.structs import asdict

from asched.cli import cluster_version, flags
from asched.cli.arguments import add_output_flag, counted, fail, plain, written
from asched.cli.commands import installed_version
from asched.cli.flags import EXIT_OK, EXIT_USAGE, HelpRequested, UsageError, VersionRequested
from asched.cli.run import plan_of
from asched.cli.run_config import load
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.v1 import SchedulerConfiguration
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.event_loop import run_on_loop
from asched.host.user_plugins.catalogue import PluginLoadError
from asched.kube.errors import ConnectError
from asched.kube.kubeconfig import SERVICE_ACCOUNT
from asched.ops.doctor.checks import Examination, examine
from asched.ops.doctor.notes import Finding, Identity, State, UnusableSettingsError
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
        plan = plan_of(options)
    except HelpRequested:
        print((__doc__ or "").rstrip() + "\n\nThe flags of `asched run`: asched run --help.")
        return EXIT_OK
    except VersionRequested:
        print(f"asched {installed_version()}")
        return EXIT_OK
    except ConnectError as error:
        return fail("doctor", error, EXIT_PROBLEM)
    except (UsageError, UnreadableFileError, ConfigError, PluginLoadError) as error:
        return fail("doctor", error, EXIT_USAGE)
    examination = Examination(
        configuration=plan.configuration,
        connection=plan.connection,
        other=Identity.named(own.user, tuple(own.groups)) if own.user else None,
        settings=None if CHOOSING & options.given.keys() else partial(settings, plan.plugins.known),
        inside=deployment_of(gethostname()) if beside else "",
        is_serving=options.serving.secure_port != 0,
        writes_statuses=plan.writes_statuses,
        kubernetes=plan.kubernetes,
        known=plan.plugins.known,
        rights_of=plan.plugins.rights_of,
    )
    findings = run_on_loop(examine(examination))
    print(printed(findings, own.output))
    return EXIT_PROBLEM if any(f.state is State.PROBLEM for f in findings) else EXIT_OK


def settings(known: KnownPlugins, words: Sequence[str], text: str) -> SchedulerConfiguration:
    """What a command line of `asched run` and the text of its file configure."""
    given = words[words.index("run") + 1 :] if "run" in words else words[1:]
    try:
        options = flags.parse(given)
        if options.config and not text:
            raise UnusableSettingsError(f"{options.config} is in no ConfigMap that exists")
        return load(options, known, config_text=text).configuration
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
