"""The configuration reference, from the declarations of flags, fields, plugins and arguments."""

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from asched.cli.flag_table import ALL, REMOVED
from asched.core.config.args import ARGS_TYPES
from asched.core.config.default_plugins import DEFAULT_MULTI_POINT
from asched.core.config.defaults import default_configuration
from asched.core.config.fields import (
    ConfigRecord,
    ListOf,
    MapOf,
    Scalar,
    Type,
    fields_of,
)
from asched.core.config.gates import GATES, HONOURED, table_of
from asched.core.config.pools import NodePool
from asched.core.config.text import effective, printed
from asched.core.config.v1 import Extender, KubeSchedulerProfile, PluginSet, SchedulerConfiguration
from asched.core.config.versions import MINORS
from asched.core.framework.profile import POINTS, points_of
from asched.core.plugins import PLUGINS, class_of
from asched.names import PREFIX
from asched_lab.pages.annotations import MARKERS
from asched_lab.pages.headers import purpose
from asched_lab.pages.metrics import code, page, table

_ORDER: Final = tuple(POINTS)


def configuration_page(_root: Path) -> str:
    """The page as Markdown."""
    flags = [
        block
        for group in dict.fromkeys(flag.group for flag in ALL)
        for block in (
            f"### {group}",
            table(("Flag", "Type", "Default", "Meaning"), _flags(group)),
        )
    ]
    return page(
        "Configuration reference",
        [
            (
                "[Flags](#flags-of-asched-run) · [Configuration file](#configuration-file) ·"
                " [Feature gates](#feature-gates) · [Plugins](#plugins) ·"
                " [Arguments](#arguments-of-in-tree-plugins) ·"
                " [Annotations and labels](#annotations-labels-and-gates)"
            ),
            "## Flags of asched run",
            (
                "Flags are kube-scheduler's, and a few of asched's own. A flag without effect is"
                " accepted with a warning."
            ),
            *flags,
            "### Removed flags",
            "These flags of older kube-schedulers are refused.",
            table(("Flag", "Use instead"), ((code(f"--{name}"), why) for name, why in _removed())),
            "## Configuration file",
            (
                "`KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`. `v1beta1` to"
                " `v1beta3` and a legacy Policy are read too; `asched config migrate FILE` writes"
                " them as `v1`."
            ),
            table(("Field", "Type", "Default", "Meaning"), _fields()),
            "## Feature gates",
            (
                "`--feature-gates` takes the gates of kube-scheduler in the API server's version."
                " These have an effect; the others change nothing, or are refused when they are"
                " moved from their default. The rules of 1.38 are a preview."
            ),
            table(("Gate", *MINORS), _gates()),
            "## Plugins",
            (
                "Plugins of the default profile have a mark in the second column; a number is the"
                " weight of their score. The others are enabled in `profiles[].plugins`."
                " [Plugins](plugins.md) says how to write one."
            ),
            table(("Plugin", "Default", "Extension points", "Purpose"), _plugins()),
            "### Optional plugins",
            (
                "For GPUs, measured load, NUMA zones and networks; none is in the default profile."
                " [Hardware](hardware.md) explains them."
            ),
            table(("Plugin", "Extension points", "Purpose"), _optional()),
            "## Arguments of in-tree plugins",
            "`profiles[].pluginConfig[].args`, kind `<plugin>Args`.",
            table(("Argument", "Type", "Default", "Meaning"), _arguments()),
            "### Arguments of optional plugins",
            table(("Argument", "Default", "Meaning"), _optional_arguments()),
            "## Annotations, labels and gates",
            (
                f"`{PREFIX}` is a prefix, as Kubernetes wants one for such names, and no address:"
                " nothing resolves it, and the project does not own the domain. A fork with a"
                " domain of its own changes `PREFIX` in `asched/names.py`, and"
                f" `grep -rl {PREFIX} deploy config` names the manifests."
            ),
            table(
                ("Name", "Where", "asched", "Plugin", "Meaning"),
                ((code(m.name), m.place, m.use, m.plugin, m.text) for m in MARKERS),
            ),
        ],
    )


def _flags(group: str) -> Iterator[tuple[str, str, str, str]]:
    for flag in ALL:
        if flag.group != group:
            continue
        text = flag.help
        if flag.instead:
            text += f"; beside `--config`, the field `{flag.instead}` counts"
        if flag.idle:
            text += f". No effect: {flag.idle}"
        if flag.refused:
            text += f". Refused: {flag.refused}"
        name = f"`--{flag.name}`" if len(flag.name) > 1 else f"`-{flag.name}`"
        yield name, flag.kind, code(flag.default), text


def _removed() -> Iterator[tuple[str, str]]:
    yield from REMOVED.items()


def _fields() -> Iterator[tuple[str, str, str, str]]:
    defaults = effective(default_configuration("asched"))
    yield from rows_of(
        SchedulerConfiguration, defaults, "", without=("profiles", "extenders", "pools")
    )
    yield from rows_of(KubeSchedulerProfile, {}, "profiles[].", without=("plugins",))
    yield from rows_of(PluginSet, {}, "profiles[].plugins.<point>.")
    yield from rows_of(Extender, {"httpTimeout": "5s"}, "extenders[].")
    yield from rows_of(NodePool, {}, "pools[].")


def rows_of(
    record: type[ConfigRecord],
    defaults: Mapping[str, Any],
    prefix: str,
    without: Sequence[str] = (),
) -> Iterator[tuple[str, str, str, str]]:
    """A row for each field that the record's docstring explains; of the others, their parts."""
    meanings = _meanings(record)
    for name, field in fields_of(record).items():
        path, kind, default = prefix + name, field.type, defaults.get(name)
        if name in without:
            continue
        part, mark = (kind.item, "[]") if isinstance(kind, ListOf) else (kind, "")
        if field.attribute in meanings:
            yield code(path), _type(kind), _shown(default), meanings[field.attribute]
        elif isinstance(part, type):
            yield from rows_of(part, default if isinstance(default, dict) else {}, f"{path}{mark}.")
        else:
            _meaning(record, field.attribute, path, meanings)


def _meanings(record: type[Any]) -> dict[str, str]:
    """The lines `field: meaning` of a docstring."""
    text = inspect.cleandoc(vars(record).get("__doc__") or "")
    found = re.findall(r"^(\w+): (.+(?:\n +.+)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def _meaning(record: type[Any], name: str, path: str, meanings: Mapping[str, str]) -> str:
    if name not in meanings:
        raise LookupError(
            f"{path} has no meaning: write a line `{name}: what it does` in the docstring of"
            f" {record.__name__} in {record.__module__.replace('.', '/')}.py"
        )
    return meanings[name]


def _type(kind: Type) -> str:
    """`[]string`, `map[string]string`, `object`, or the name of a type without parts."""
    if isinstance(kind, ListOf | MapOf):
        return f"{'[]' if isinstance(kind, ListOf) else 'map[string]'}{_type(kind.item)}"
    return kind.value if isinstance(kind, Scalar) else "object"


def _shown(value: Any) -> str:
    """A default as the configuration file writes it; nothing for none."""
    if value is None or value in ("", (), [], {}):
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, list):
        return ", ".join(code(f"{item['name']}: {item['weight']}") for item in value)
    return code(str(value))


def _gates() -> Iterator[tuple[str, ...]]:
    for name in sorted(HONOURED):
        yield code(name), *(_gate(name, minor) for minor in MINORS)


def _gate(name: str, minor: str) -> str:
    """Stage and default of a gate in a minor version; "" if that has no such gate."""
    known = table_of(minor).gates
    if name not in known:
        return ""
    stage, is_on = known[name]
    return f"{stage.lower() if stage != 'GA' else stage}, {'on' if is_on else 'off'}"


def _plugins() -> Iterator[tuple[str, str, str, str]]:
    defaults = {name: (weight, gate) for name, weight, gate in DEFAULT_MULTI_POINT}
    for name in PLUGINS:
        mark = ""
        if name in defaults:
            weight, gate = defaults[name]
            mark = str(weight) if weight else "✓"
            if gate and not GATES[gate][1]:
                mark = f"with gate `{gate}`"
        cls = class_of(name)
        yield code(name), mark, _points(cls), purpose(cls)


def _optional() -> Iterator[tuple[str, str, str]]:
    for name, cls in _optional_classes().items():
        yield code(name), _points(cls), purpose(cls)


def _optional_classes() -> dict[str, Any]:
    found = entry_points(group="asched.plugins")
    return {entry.name: entry.load() for entry in sorted(found, key=lambda entry: entry.name)}


def _points(cls: Any) -> str:
    return ", ".join(sorted(points_of(cls), key=_ORDER.index))


def _arguments() -> Iterator[tuple[str, str, str, str]]:
    for plugin, record in ARGS_TYPES.items():
        yield from rows_of(record, printed(record()), f"{plugin}.")


def _optional_arguments() -> Iterator[tuple[str, str, str]]:
    for name, cls in _optional_classes().items():
        args = _args_of(cls)
        if args is None:
            yield code(name), "no arguments", ""
            continue
        yield from _dataclass_fields(args, name)


def _dataclass_fields(cls: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Each field that a docstring explains, with its default; of others, their parts."""
    meanings = {k: text for part in reversed(cls.__mro__) for k, text in _meanings(part).items()}
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name in ("api_version", "kind"):
            continue
        path = f"{prefix}.{_camel(field.name)}"
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        parts = filter(dataclasses.is_dataclass, (type(value), *typing.get_args(hints[field.name])))
        part = None if field.name in meanings else next(parts, None)
        if part is not None:
            yield from _dataclass_fields(part, path)
        else:
            yield code(path), _default(value), _meaning(cls, field.name, path, meanings)


def _args_of(cls: Any) -> Any:
    """The dataclass that `__init__` takes as `args`; None if it takes none."""
    if "args" not in inspect.signature(cls.__init__).parameters:
        return None
    return typing.get_type_hints(cls.__init__)["args"]


def _default(value: Any) -> str:
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return ", ".join(code(f"{part.name}: {part.weight}") for part in value)
    if isinstance(value, dict):
        return ", ".join(code(f"{key}: {part}") for key, part in value.items())
    return _shown(value)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))
