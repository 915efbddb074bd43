"""The command line of `asched run`: kube-scheduler's flags with their meaning, and asched's own.

Rules   `--name=value`, `--name value`, `--bool`, `-v2`; an underscore is a hyphen; the last value
        wins, lists add up; a flag that is not supported is refused by one line that says why;
        words without a flag are refused. Exit codes: 0 success, 1 failure, 2 wrong usage.
Source  runs recorded from kube-scheduler 1.36.2 with each of its flags
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from asched.cli.cluster_version import emulated_version
from asched.cli.flag_checks import check, check_shadow
from asched.cli.flag_table import ALL, BY_NAME, BY_SHORT, REMOVED, Flag
from asched.cli.go_values import ADDITIVE, ALONE, READERS, VERSION_OFF
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.core.config.problem import did_you_mean, quoted
from asched.core.config.versions import BASE, UnknownVersionError, VersionChoice
from asched.serve.options import AuthenticationOptions, AuthorizationOptions, ServingOptions

EXIT_OK: Final = 0
EXIT_USAGE: Final = 2


class UsageError(Exception):
    """An invalid command line: one line, kube-scheduler's message where it has one."""


class HelpRequested(Exception):  # noqa: N818 - not an error
    """`--help` was given."""


class VersionRequested(Exception):  # noqa: N818 - not an error
    """`--version` was given; `raw` means every detail."""

    def __init__(self, *, raw: bool) -> None:
        super().__init__()
        self.raw = raw


class RunOptions(msgspec.Struct, frozen=True):
    """The values of all flags of `asched run`. `given`: only those written, by key."""

    config: str
    master: str
    kubeconfig: str
    write_config_to: str
    scheduler_name: str
    plugin: tuple[str, ...]
    plugin_dir: str
    bind_concurrency: int
    explain_hint: bool
    status_controllers: bool
    record: str
    record_max_bytes: int
    #: Schedulers to shadow: their decisions are compared, and nothing is scheduled.
    shadow: tuple[str, ...]
    shadow_report: str
    #: Seconds until an unschedulable pod is retried without an event.
    pod_max_in_unschedulable_pods_duration: float
    #: Seconds in which all cached objects are compared with the API server once.
    audit_period: float
    profiling: bool
    serving: ServingOptions
    authentication: AuthenticationOptions
    authorization: AuthorizationOptions
    logging_format: str
    v: int
    #: (pattern, verbosity)
    vmodule: tuple[tuple[str, int], ...]
    log_json_split_stream: bool
    log_text_split_stream: bool
    allow_metric_labels: Mapping[str, str]
    allow_metric_labels_manifest: str
    disabled_metrics: tuple[str, ...]
    policy_config_file: str
    policy_configmap: str
    policy_configmap_namespace: str
    use_legacy_policy_config: bool
    gates: Mapping[str, bool]
    #: Whose rules and gates these are.
    kubernetes: VersionChoice = VersionChoice(BASE)
    given: Mapping[str, Any] = msgspec.field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def splits_log(self) -> bool:
        """Whether errors and other messages go to different streams in the chosen format."""
        as_json = self.logging_format == "json"
        return self.log_json_split_stream if as_json else self.log_text_split_stream


_GROUPS: Final = {
    "serving": ServingOptions,
    "authentication": AuthenticationOptions,
    "authorization": AuthorizationOptions,
}


def _base(_given: Mapping[str, Any]) -> VersionChoice:
    return VersionChoice(BASE)


def parse(
    argv: Sequence[str], version_of: Callable[[Mapping[str, Any]], VersionChoice] = _base
) -> RunOptions:
    """Read a command line; raises UsageError, HelpRequested or VersionRequested. `version_of` says
    by whose rules these flags decide, unless one of them does.
    """
    given = _scan(argv)
    if given.get("help"):
        raise HelpRequested
    if given.get("version", VERSION_OFF) != VERSION_OFF:
        raise VersionRequested(raw=given["version"] == "raw")
    warnings = []
    for key in given:
        flag = BY_NAME[key.replace("_", "-")]
        if flag.refused:
            raise UsageError(f"--{flag.name} is refused: {flag.refused}")
        if flag.idle:
            warnings.append(f"--{flag.name} has no effect: {flag.idle}")
        elif flag.instead and given.get("config"):
            used = f"{flag.instead} of {given['config']} is used"
            warnings.append(f"--{flag.name} is ignored because --config is given: {used}")
    try:
        emulated = given.get("emulated_version")
        kubernetes = emulated_version(emulated) if emulated else version_of(given)
        gates = parse_gates(given.get("feature_gates", ()), kubernetes.minor)
    except (GateError, UnknownVersionError) as error:
        raise UsageError(str(error)) from error
    values = {flag.key: _default(flag) for flag in ALL} | given
    fault = check(values, gates.enabled) or check_shadow(values, given)
    if fault:
        raise UsageError(fault)
    groups: dict[str, Any] = {name: _fill(kind, values) for name, kind in _GROUPS.items()}
    own = {
        "gates": gates.enabled,
        "kubernetes": kubernetes,
        "given": given,
        "warnings": (*filter(None, (kubernetes.warning,)), *gates.warnings, *warnings),
    }
    options: RunOptions = _fill(RunOptions, {**values, **groups, **own})
    return options


def _fill(kind: type[Any], values: Mapping[str, Any]) -> Any:
    return kind(**{name: values[name] for name in kind.__struct_fields__})


def _default(flag: Flag) -> Any:
    if flag.kind in ADDITIVE and not flag.default:
        return ()
    if not flag.default and flag.kind not in ("string", "pattern=N,..."):
        return {} if flag.kind == "stringToString" else flag.default
    return READERS[flag.kind](flag.default)


def _scan(argv: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if word.startswith("--"):
            _long(word, rest, given)
        elif word.startswith("-") and len(word) > 1:
            _short(word, rest, given)
        else:
            words.append(word)
    if words and not given.get("help"):
        listed = " ".join(quoted(word) for word in words)
        raise UsageError(f'"asched run" does not take any arguments, got [{listed}]')
    return given


def _long(word: str, rest: list[str], given: dict[str, Any]) -> None:
    name, equals, value = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise UsageError(f"bad flag syntax: {word}")
    name = name.replace("_", "-")
    if name in REMOVED:
        raise UsageError(f"--{name} is refused: {REMOVED[name]}")
    flag = BY_NAME.get(name)
    if flag is None:
        hint = did_you_mean(name, BY_NAME)
        raise UsageError(f"unknown flag: --{name}{f' ({hint})' if hint else ''}")
    if not equals:
        if flag.kind in ALONE:
            value = ALONE[flag.kind]
        elif rest:
            value = rest.pop(0)
        else:
            raise UsageError(f"flag needs an argument: --{flag.name}")
    shown = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
    _set(flag, value, shown, given)


def _short(word: str, rest: list[str], given: dict[str, Any]) -> None:
    letters = word[1:]
    while letters:
        flag = BY_SHORT.get(letters[0])
        if flag is None:
            raise UsageError(f"unknown shorthand flag: '{letters[0]}' in -{letters}")
        shown = f"-{flag.short}, --{flag.name}"
        if len(letters) > 1 and letters[1] == "=":
            _set(flag, letters[2:], shown, given)
            return
        if flag.kind in ALONE:
            _set(flag, ALONE[flag.kind], shown, given)
            letters = letters[1:]
            continue
        value = letters[1:] or (rest.pop(0) if rest else None)
        if value is None:
            raise UsageError(f"flag needs an argument: '{flag.short}' in -{letters}")
        _set(flag, value, shown, given)
        return


def _set(flag: Flag, text: str, shown: str, given: dict[str, Any]) -> None:
    try:
        value = READERS[flag.kind](text)
    except ValueError as error:
        line = f"invalid argument {quoted(text)} for {quoted(shown)} flag: {error}"
        raise UsageError(line) from error
    if flag.kind == "ip" and not value:
        return
    if flag.kind in ADDITIVE:
        added = value if flag.kind in ("strings", "int32Slice") else (value,)
        value = (*given.get(flag.key, ()), *added)
    elif flag.kind == "stringToString":
        value = {**given.get(flag.key, {}), **value}
    given[flag.key] = value


def help_text() -> str:
    """The flags by group, one line each."""
    lines = [
        "Usage: asched run [flags]",
        "",
        "Schedules pods as the kube-scheduler of the API server's version does, with its flags and",
        "configuration files.",
    ]
    for group in dict.fromkeys(flag.group for flag in ALL):
        lines += ["", f"{group} flags:", ""]
        lines += [_help_line(flag) for flag in ALL if flag.group == group]
    return "\n".join(lines) + "\n"


def _help_line(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    kind = "" if flag.kind == "bool" else f" {flag.kind.removesuffix('Ns')}"
    default = f" (default {flag.default})" if flag.default not in ("", "0", "false") else ""
    state = " [refused]" if flag.refused else " [no effect]" if flag.idle else ""
    return f"  {short}{f'--{flag.name}{kind}':<58} {flag.help}{default}{state}"
