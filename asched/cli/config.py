"""`asched config check|view|migrate|export FILE`: validate, print or convert a configuration file.

Rules   the file is a configuration, or manifests that contain some: with several documents, or one
        ConfigMap, every KubeSchedulerConfiguration and Policy is found, among the documents, in the
        data of ConfigMaps and in Lists of them. Each keeps its position in the file, so that errors
        have the line and column that an editor shows. All errors are reported at once on standard
        error, one line each; the result goes to standard output; exit code 0 if the file can be
        used, 2 if not; `-` is standard input.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import replace

from asched.cli.arguments import add_plugin_flags, counted, fail
from asched.cli.cluster_version import emulated_version
from asched.cli.flags import EXIT_OK, EXIT_USAGE
from asched.cli.run_config import with_own_lease
from asched.core.config.foreign import describe_scheduler, template_place
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.core.config.legacy.old_versions import is_legacy
from asched.core.config.legacy.translation import Fate, Translation
from asched.core.config.text import effective
from asched.core.config.v1 import API_GROUP, KIND, SchedulerConfiguration
from asched.core.config.versions import BASE, UnknownVersionError
from asched.core.model.decode import MalformedError, parse
from asched.host.configuration.file import (
    FILE_BYTES_MAX,
    ConfigError,
    LoadedConfig,
    UnreadableFileError,
    decoded,
    described,
    load_config,
    read_text,
)
from asched.host.configuration.source import read
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched.kube.yaml_text import to_yaml
from asched.ops.autoscalers import AUTOSCALERS, exported

CONFIG_MAP: Final = "ConfigMap"
LIST: Final = "List"
POLICY: Final = "Policy"


class ConfigPart(msgspec.Struct, frozen=True):
    """One configuration; `where` names its place in the file, empty for the whole file."""

    text: str
    where: str = ""


class NoConfigurationError(Exception):
    """The manifests contain no configuration: one line."""


def parts(text: str) -> list[ConfigPart]:
    """The configurations in a text, at least one. Raises NoConfigurationError.

    A text that is not YAML is returned whole; its reader reports the error.
    """
    if text.lstrip().startswith("{"):
        return [ConfigPart(text)]
    try:
        nodes = [node for node in parse(_composed, text) if node]
    except MalformedError:
        return [ConfigPart(text)]
    kinds = [_field(node, "kind") for node in nodes]
    if len(nodes) < 2 and not {CONFIG_MAP, LIST} & set(kinds):
        return [ConfigPart(text)]
    found = [part for node in nodes for part in _of_document(node, text)]
    if not found:
        for where, data in _data_of_config_maps(nodes):
            if what := describe_scheduler(data):
                raise NoConfigurationError(f"({where}): {what}")
        listed = ", ".join(dict.fromkeys(kind or "no kind" for kind in kinds))
        raise NoConfigurationError(f"contains no {KIND} and no {POLICY}, only: {listed}")
    return found


def _composed(text: str) -> list[yaml.Node]:
    return list(yaml.compose_all(text, Loader=yaml.SafeLoader))


def _of_document(node: yaml.Node, text: str) -> Iterator[ConfigPart]:
    kind = _field(node, "kind")
    if kind == LIST:
        items = _value(node, "items")
        for item in items.value if isinstance(items, yaml.SequenceNode) else ():
            yield from _of_document(item, text)
    elif kind == CONFIG_MAP:
        yield from _of_config_map(node, text)
    elif _is_configuration(node):
        line = node.start_mark.line
        yield ConfigPart(_in_place(text, line, node.end_mark), f"{kind} of line {line + 1}")


def _of_config_map(node: yaml.Node, text: str) -> Iterator[ConfigPart]:
    metadata, data = _value(node, "metadata"), _value(node, "data")
    name = _field(metadata, "name")
    for key, value in data.value if isinstance(data, yaml.MappingNode) else ():
        if not isinstance(value, yaml.ScalarNode):
            continue
        try:
            is_ours = _is_configuration(next(iter(parse(_composed, value.value)), None))
        except MalformedError:
            # Text of our API group that is not YAML is reported; other data is ignored.
            is_ours = API_GROUP in value.value
        if not is_ours:
            continue
        where = f"{CONFIG_MAP} {name}, {key.value}"
        content = value.value
        if value.style == "|":  # a block keeps its indentation: it may be indented as a whole
            content = _in_place(text, value.start_mark.line + 1, value.end_mark)
        yield ConfigPart(content, where)


def _data_of_config_maps(nodes: Iterable[yaml.Node]) -> Iterator[tuple[str, Any]]:
    """Yield the texts of ConfigMaps that are YAML objects, with their places."""
    for node in nodes:
        data = _value(node, "data") if _field(node, "kind") == CONFIG_MAP else None
        for key, value in data.value if isinstance(data, yaml.MappingNode) else ():
            if isinstance(value, yaml.ScalarNode):
                name = _field(_value(node, "metadata"), "name")
                yield f"{CONFIG_MAP} {name}, {key.value}", read(value.value).document


def _in_place(text: str, first: int, end: yaml.Mark) -> str:
    lines = text.splitlines()[first : end.line + (1 if end.column else 0)]
    if lines and lines[0].startswith("---"):
        lines[0] = ""
    return "\n" * first + "\n".join(line for line in lines if line != "---") + "\n"


def _is_configuration(node: yaml.Node | None) -> bool:
    version, kind = _field(node, "apiVersion"), _field(node, "kind")
    return version.startswith(f"{API_GROUP}/") or kind in (KIND, POLICY)


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _field(node: yaml.Node | None, name: str) -> str:
    value = _value(node, name)
    return value.value if isinstance(value, yaml.ScalarNode) else ""


STDIN: Final = "-"
STDIN_NAME: Final = "<stdin>"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
    try:
        minor = emulated_version((args.emulated_version,)).minor
        gates = parse_gates(args.feature_gates, minor)
        plugins = discover(args.plugin, args.plugin_dir)
        name, text = _text(args.file)
        found = parts(text)
    except (GateError, UnknownVersionError, PluginLoadError, UnreadableFileError) as error:
        return fail("config", error, EXIT_USAGE)
    except NoConfigurationError as error:
        return fail("config", f"{args.file} {error}", EXIT_USAGE)
    _report([f"warning: {line}" for line in gates.warnings])
    faults: list[str] = []
    for number, part in enumerate(found):
        if template_place(part.text):
            faults.append(described(name, part.text, None))
            continue
        try:
            loaded = load_config(
                name, text=part.text, gates=gates.enabled, known=plugins.known, every_fault=True
            )
            plugins.check_args(loaded, name)
            more = plugins.pool_warnings(loaded, name)
            loaded = replace(loaded, warnings=(*loaded.warnings, *more))
        except ConfigError as error:
            faults += error.lines
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
        _report([*faults, counted(len(faults), "error")])
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
    viewed = effective(with_own_lease(loaded))
    if command == "view" and form == "json":  # one document per line
        print(json.dumps(viewed))
        return
    if not is_first:
        print("---")
    if command == "view":
        print(to_yaml(viewed), end="")
    else:
        _migrate(name, loaded)


def _text(file: str) -> tuple[str, str]:
    if file == STDIN:
        return STDIN_NAME, decoded(sys.stdin.buffer.read(FILE_BYTES_MAX + 1), STDIN_NAME)
    return file, read_text(file)


def _report(lines: Sequence[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _summary(loaded: LoadedConfig) -> str:
    configuration: SchedulerConfiguration = loaded.configuration
    served = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    return f"valid; serves {served}; {counted(len(configuration.extenders), 'extender')}"


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
