"""Manifests of users, read from files, with kubectl's `--validate` for unknown fields."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from asched_lab.apiserver.resources import BY_KIND, GROUPS
from asched_lab.whatif.objects import (
    CONTROLLERS,
    WATCHED,
    Json,
    ObjectError,
    SnapshotError,
    check,
    key_of,
    nullless,
    parsed,
    title,
)
from asched_lab.whatif.snapshot import bounded

STDIN: Final = "-"
#: The largest file of manifests, far above any real one.
MANIFEST_BYTES_MAX: Final = 256 << 20


class Validate(StrEnum):
    """What unknown and duplicate fields are: errors, warnings, or nothing."""

    STRICT = "strict"
    WARN = "warn"
    IGNORE = "ignore"


class FieldsError(SnapshotError):
    """Unknown or duplicate fields, one line for each object."""


@dataclass(slots=True)
class Manifests:
    """`warnings`: unknown and duplicate fields, one line for each object."""

    objects: list[Json] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_manifests(files: Iterable[str], validate: Validate = Validate.STRICT) -> Manifests:
    """All objects of the files. Raises SnapshotError."""
    found = Manifests()
    for name in files:
        shown = "<stdin>" if name == STDIN else name
        for obj, repeated in parsed(_content(name), shown, with_repeated=True):
            try:
                checked, unknown = check_manifest(obj)
            except ObjectError as error:
                raise ObjectError(f"{shown}: {error}") from None
            problems = [f'duplicate field "{path}"' for path in repeated]
            problems += [f'unknown field "{path}"' for path in unknown]
            if problems:
                found.warnings.append(f"{shown}: {title(obj)}: {', '.join(problems)}")
            found.objects.append(checked)
    if found.warnings and validate is Validate.STRICT:
        hint = "correct the file, or accept it with --validate=warn"
        raise FieldsError("\n".join(f"{line}; {hint}" for line in found.warnings))
    if validate is Validate.IGNORE:
        found.warnings.clear()
    return found


def _content(name: str) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb") as file:
            data = bounded(file, MANIFEST_BYTES_MAX)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise SnapshotError(f"open {name}: {said}") from None
    if len(data) > MANIFEST_BYTES_MAX:
        raise SnapshotError(f"{name}: larger than {MANIFEST_BYTES_MAX} bytes")
    return data


def check_manifest(manifest: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """The manifest as it was written, without nulls, and the paths of its unknown fields. Raises
    ObjectError for a wrong type, and for a kind that no API server has.
    """
    for name in ("apiVersion", "kind"):
        if not isinstance(manifest.get(name), str) or not manifest[name]:
            raise ObjectError(f"{title(manifest)}: {name}: must be a string that is not empty")
    api_version, kind = key_of(manifest)
    if _is_misspelt(api_version, kind):
        raise ObjectError(f'{title(manifest)}: kind: no kind "{kind}" in version "{api_version}"')
    _, unknown = check(manifest)
    return nullless(manifest), unknown


def _is_misspelt(api_version: str, kind: str) -> bool:
    """Whether a version of Kubernetes' own groups has no such kind, or a workload's group has it in
    another version only.
    """
    key = (api_version, kind)
    if key in BY_KIND or key in WATCHED:
        return False
    group, _, version = api_version.rpartition("/")
    workloads = {(known.rpartition("/")[0], name) for known, name in (("v1", "Pod"), *CONTROLLERS)}
    return version in GROUPS.get(group, ()) or (group, kind) in workloads
