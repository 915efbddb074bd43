"""Read a configuration file; all its errors are reported at once, with file, line and column.

    text -> config_source -> decode -> defaults -> validate -> construct

Rules   a stage runs only if the previous one found no error, unless every error is requested: then
        each checks what the previous one made of the document; v1 is decoded strictly; v1beta1 to
        v1beta3 and the legacy Policy are translated first (`legacy=True`) with warnings; files
        named in the document (certificates of extenders) are opened, a kubeconfig is not.
Bounds  FILE_BYTES_MAX: a configuration is at most a ConfigMap.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.config.construct import Constructed, construct, election_faults, reach_faults
from asched.core.config.decode import decode
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.defaults import configuration
from asched.core.config.foreign import TEMPLATE, describe_file, template_place
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.legacy.old_versions import is_legacy, translate
from asched.core.config.legacy.policy import translate_policy
from asched.core.config.legacy.translation import Translation
from asched.core.config.merge import ResolvedProfile
from asched.core.config.problem import Path, Problem
from asched.core.config.v1 import Extender, SchedulerConfiguration
from asched.core.config.validate import validate
from asched.host.configuration.extender_tls import fault_of
from asched.host.configuration.source import ConfigSource, item, name_of, read
from asched.kube.files import file_start

#: etcd's limit of an object, and thereby of a ConfigMap (1.5 MiB by default).
FILE_BYTES_MAX: Final = 1_500_000
TEXT_NAME: Final = "<text>"
#: Limits of an error message and of their number: messages may quote the file.
LINE_CHARS_MAX: Final = 1000
LINES_MAX: Final = 100


class Located(msgspec.Struct, frozen=True):
    """An error and its place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    problem: Problem

    def __str__(self) -> str:
        hint = f" ({self.problem.hint})" if self.problem.hint else ""
        text = " ".join(self.problem.text.split("\n"))
        if len(text) > LINE_CHARS_MAX:
            text = text[:LINE_CHARS_MAX] + "..."
        return f"{self.file}:{self.line}:{self.column}: {text}{hint}"


class ConfigError(Exception):
    """A file that cannot be used; `errors` has every error, in the order found, `lines` says them.
    The text has the first LINES_MAX. `what` says what a file is that is no configuration, instead.
    """

    def __init__(self, errors: Sequence[Located], what: str = "") -> None:
        self.lines = [what] if what else [str(error) for error in errors]
        lines = self.lines[:LINES_MAX]
        if len(self.lines) > LINES_MAX:
            lines.append(f"{errors[0].file}: and {len(self.lines) - LINES_MAX} more")
        super().__init__("\n".join(lines))
        self.errors = tuple(errors)


class UnreadableFileError(Exception):
    """The file cannot be read; the text is one line."""


class LoadedConfig(msgspec.Struct, frozen=True):
    """A valid configuration. `profiles` and `extenders` are in the order of use."""

    configuration: SchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    extenders: tuple[Extender, ...]
    warnings: tuple[str, ...] = ()
    #: The translation of an old form; None for a v1 file.
    translation: Translation | None = None
    source: ConfigSource = msgspec.field(default_factory=lambda: ConfigSource(""))


def read_text(path: FilePath | str) -> str:
    """The text of a file. Raises UnreadableFileError with one line."""
    try:
        data = file_start(path, FILE_BYTES_MAX + 1)
    except IsADirectoryError as error:
        raise UnreadableFileError(f"read {path}: is a directory") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnreadableFileError(f"open {path}: {reason}") from error
    return decoded(data, path)


def decoded(data: bytes, name: FilePath | str) -> str:
    """Decode bytes read up to one more than FILE_BYTES_MAX. Raises as `read_text`."""
    if len(data) > FILE_BYTES_MAX:
        raise UnreadableFileError(f"read {name}: larger than {FILE_BYTES_MAX} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"read {name}: not UTF-8 at byte {error.start}") from error


def load_config(
    path: FilePath | str | None = None,
    *,
    text: str | None = None,
    gates: Mapping[str, bool] = DEFAULT_GATES,
    known: KnownPlugins | None = None,
    legacy: bool = True,
    policy: str | None = None,
    policy_name: str = TEXT_NAME,
    every_fault: bool = False,
) -> LoadedConfig:
    """Load a file or a text. Raises ConfigError, or UnreadableFileError for a file.

    `known` are the in-tree plugins unless it is given. `every_fault` continues with later stages
    after an error, to report all of them; kube-scheduler, and a starting process, stop after the
    first stage with an error.

    `policy` is the text of a legacy Policy that supplies profile and extenders; the file may then
    set everything else, and the name of its only profile.
    """
    if known is None:
        from asched.core.plugins import IN_TREE_POINTS  # with NumPy, which asched-cli has not

        known = IN_TREE_POINTS
    name = str(path) if path is not None else TEXT_NAME
    body = text if text is not None else read_text(path or "")
    source = read(body)

    def stop_if(problems: Sequence[Problem]) -> None:
        if problems:
            shown = translation.document if translation is not None and is_translated else None
            what = described(name, body, source.document)
            raise ConfigError(located(name, source, problems, shown), what)

    document, translation, is_translated = source.document, None, False
    if source.is_broken:
        stop_if(source.problems)
    if legacy and is_legacy(document):
        stop_if(source.problems)
        translation = translate(document, known)
        stop_if(translation.problems)
        document, is_translated = translation.document, True
    if policy is not None:
        stop_if(source.problems)
        document, translation = _with_policy(name, source, document, policy, policy_name, known)
    checked, problems = decode(document)
    faults = [*source.problems, *problems]
    if checked is None or not every_fault:
        stop_if(faults)
    assert checked is not None, "without errors there is a document"
    effective = configuration(checked, gates)
    faults += validate(effective, gates)
    if not every_fault:
        stop_if(faults)
    constructed, problems = construct(effective, known, fault_of)
    faults += problems
    stop_if(faults)
    if constructed is None:
        raise AssertionError("nothing was constructed and nothing was wrong")
    return _loaded(constructed, translation, source, name, policy_name if policy else name)


def _with_policy(
    name: str,
    source: ConfigSource,
    document: Any,
    policy: str,
    policy_name: str,
    known: KnownPlugins,
) -> tuple[dict[str, Any], Translation]:
    """The document with the Policy's profile and extenders."""
    given = read(policy)
    base = document if isinstance(document, Mapping) else {}
    profiles = base.get("profiles") or [{}]
    first = profiles[0] if isinstance(profiles, list) and isinstance(profiles[0], Mapping) else {}
    if len(profiles) > 1 or set(first) - {"schedulerName"} or base.get("extenders"):
        text = "a Policy and profiles with plugins, or extenders, exclude each other"
        problem = Problem(text, ("profiles",), "remove one of the two")
        raise ConfigError(located(name, source, [problem]))
    if not given.problems and not isinstance(given.document, Mapping):
        given.problems.append(Problem("a Policy must be an object"))
    if given.problems:
        raise ConfigError(located(policy_name, given, given.problems))
    served = str(first.get("schedulerName") or names.DEFAULT_SCHEDULER_NAME)
    translation = translate_policy(given.document, known, served)
    if translation.problems:
        raise ConfigError(located(policy_name, given, translation.problems))
    taken = {key: translation.document.get(key) for key in ("profiles", "extenders")}
    return {**base, **taken}, translation


def _loaded(
    constructed: Constructed,
    translation: Translation | None,
    source: ConfigSource,
    name: str,
    translated: str,
) -> LoadedConfig:
    """`translated` names the file or the ConfigMap that has the old form."""
    effective, profiles = constructed.configuration, constructed.profiles
    # Durations with which kube-scheduler starts and fails at its first election.
    warnings = [str(fault) for fault in located(name, source, election_faults(effective))]
    warnings += [str(fault) for fault in located(name, source, reach_faults(effective))]
    if translation:
        warnings += [f"{translated}: {note}" for note in translation.notes_for_run]
        marked = tuple(map(translation.mark, effective.profiles))
        effective = replace(effective, profiles=marked)
        profiles = tuple(replace(p, profile=translation.mark(p.profile)) for p in profiles)
    return LoadedConfig(
        effective, profiles, constructed.extenders, tuple(warnings), translation, source
    )


def described(name: str, text: str, document: Any) -> str:
    """What a text is that is no configuration, and where; empty for a configuration."""
    place, what = template_place(text), TEMPLATE
    if place is None:
        place, what = (1, 1), describe_file(document)
    return f"{name}:{place[0]}:{place[1]}: {what}" if what else ""


def located(
    name: str, source: ConfigSource, problems: Sequence[Problem], document: Any = None
) -> list[Located]:
    """The problems with their places in the file. `document` is the translation of the file, if the
    problems refer to that.
    """
    return [
        Located(name, *source.place(_by_name(problem.path, document)), problem)
        for problem in problems
    ]


def _by_name(path: Path, document: Any) -> Path:
    """The path with names instead of indices: a translation leaves some entries out."""
    found, value = list[str | int](), document
    for step in path:
        value = item(value, step)
        found.append(name_of(value) or step if isinstance(step, int) else step)
    return tuple(found)
