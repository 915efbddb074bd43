"""`asched config check|view|migrate|export FILE`: validate, print or convert a configuration file.

Rules   the file is a configuration, or manifests that contain some (`config_parts`); all errors
        are reported at once on standard error, one line each with file, line and column; the
        result goes to standard output; exit code 0 if the file can be used, 2 if not; `-` is
        standard input.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from asched.cli.arguments import add_plugin_flags
from asched.cli.cluster_version import emulated_version
from asched.cli.config_parts import ConfigPart, NoConfigurationError, parts
from asched.cli.flags import EXIT_OK, EXIT_USAGE
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.core.config.legacy import is_legacy
from asched.core.config.text import effective, to_yaml
from asched.core.config.translation import Fate, Translation
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.config.versions import BASE, UnknownVersionError
from asched.host.configuration.file import (
    FILE_BYTES_MAX,
    ConfigError,
    LoadedConfig,
    UnreadableFileError,
    decoded,
    load_config,
    read_text,
)
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched.ops.autoscalers import AUTOSCALERS, exported

STDIN: Final = "-"
STDIN_NAME: Final = "<stdin>"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `config` and its subcommands."""
    parser = subparsers.add_parser(
        "config", help="check, view, migrate or export a configuration file"
    )
    commands = parser.add_subparsers(dest="config_command", required=True, metavar="COMMAND")
    for name, text in (
        ("check", "report every error of a file, and whether it can be used"),
        ("view", "print the effective configuration, defaults included"),
        ("migrate", "convert an old form (v1beta1 to v1beta3, Policy) to v1"),
        ("export", "print what an autoscaler has to know of a profile"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("file", metavar="FILE", help="the file, or - for standard input")
        command.add_argument(
            "--feature-gates",
            action="append",
            default=[],
            metavar="GATE=BOOL,...",
            help="feature gates, as for kube-scheduler",
        )
        command.add_argument(
            "--emulated-version",
            default=BASE,
            metavar="MINOR",
            help=f"version of Kubernetes whose gates and defaults apply (default {BASE})",
        )
        add_plugin_flags(command)
        if name == "view":
            command.add_argument(
                "-o", "--output", choices=("yaml", "json"), default="yaml", help="default yaml"
            )
        if name == "export":
            command.add_argument(
                "--for", dest="autoscaler", choices=AUTOSCALERS, required=True, help="its format"
            )
            command.add_argument(
                "--profile",
                metavar="NAME",
                help="schedulerName of the profile (default: the first)",
            )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand on every configuration in the file."""
    try:
        minor = emulated_version((args.emulated_version,)).minor
        gates = parse_gates(args.feature_gates, minor)
        plugins = discover(args.plugin, args.plugin_dir)
        name, text = _text(args.file)
        found = parts(text)
    except (GateError, UnknownVersionError, PluginLoadError, UnreadableFileError) as error:
        _report([f"asched config: {error}"])
        return EXIT_USAGE
    except NoConfigurationError as error:
        _report([f"asched config: {args.file} {error}"])
        return EXIT_USAGE
    _report([f"warning: {line}" for line in gates.warnings])
    faults: list[str] = []
    for number, part in enumerate(found):
        try:
            loaded = load_config(
                name, text=part.text, gates=gates.enabled, known=plugins.known, every_fault=True
            )
            plugins.check_args(loaded, name)
        except ConfigError as error:
            faults += map(str, error.errors)
            continue
        if args.config_command == "export":
            document, notes = exported(
                args.autoscaler, loaded.configuration, plugins.known, args.profile
            )
            _report(notes)
            if document is None:
                return EXIT_USAGE
            print(to_yaml(document), end="")
            continue
        form = getattr(args, "output", "yaml")
        _show(args.config_command, name, part, loaded, is_first=number == 0, form=form)
    if faults:
        _report([*faults, _count(len(faults))])
        return EXIT_USAGE
    return EXIT_OK


def _show(
    command: str, name: str, part: ConfigPart, loaded: LoadedConfig, *, is_first: bool, form: str
) -> None:
    if command != "migrate":
        _report([f"warning: {line}" for line in loaded.warnings])
    if command == "check":
        where = f" ({part.where})" if part.where else ""
        print(f"{name}{where}: {_summary(loaded)}")
        return
    if command == "view" and form == "json":  # one document per line
        print(json.dumps(effective(loaded.configuration)))
        return
    if not is_first:
        print("---")
    if command == "view":
        print(to_yaml(effective(loaded.configuration)), end="")
    else:
        _migrate(name, loaded)


def _text(file: str) -> tuple[str, str]:
    if file == STDIN:
        return STDIN_NAME, decoded(sys.stdin.buffer.read(FILE_BYTES_MAX + 1), STDIN_NAME)
    return file, read_text(file)


def _report(lines: Sequence[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _count(errors: int) -> str:
    return f"{errors} error{'' if errors == 1 else 's'}"


def _summary(loaded: LoadedConfig) -> str:
    configuration: SchedulerConfiguration = loaded.configuration
    served = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    extenders = len(configuration.extenders)
    return f"valid; serves {served}; {extenders} extender{'' if extenders == 1 else 's'}"


def _migrate(name: str, loaded: LoadedConfig) -> None:
    """The v1 document on standard output, the result for each old entry on standard error."""
    if loaded.translation is None or not is_legacy(loaded.source.document):
        _report([f"{name}: is already v1"])
        print(loaded.source.text, end="")
        return
    _report(_fates(name, loaded, loaded.translation))
    print(to_yaml(loaded.translation.document), end="")


def _fates(name: str, loaded: LoadedConfig, translation: Translation) -> list[str]:
    lines = [f"{name}: {translation.form}"]
    for fate in Fate:
        notes = [note for note in translation.notes if note.fate is fate]
        lines.append(f"{fate.value}: {len(notes)}")
        for note in notes:
            line, column = loaded.source.place(note.path)
            lines.append(f"  {name}:{line}:{column}: {note}")
    return lines
