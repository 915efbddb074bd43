"""The operations of scheduler_perf workloads: the fields of each, and their values.

A field `xParam` takes `$name`, the name of a workload's parameter, in place of `x`.

Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf (operations and their fields)
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from asched.core.config import duration

#: Names of a stage that a barrier may wait for.
SCHEDULED: Final = "Scheduled"
ATTEMPTED: Final = "Attempted"


class OpError(ValueError):
    """A field that is unknown, missing, or has an invalid value."""


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise OpError("must be a whole number")
    return int(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise OpError("must be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise OpError("must be a string")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise OpError("must be a list of strings")
    return tuple(value)


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise OpError("must be a mapping of strings")
    return dict(value)


def _seconds(value: Any) -> float:
    """A duration as Go writes it; in seconds."""
    try:
        return duration.parse(_text(value)) / 1e9
    except ValueError as error:
        raise OpError(str(error)) from None


def _stage(value: Any) -> str:
    if value not in (SCHEDULED, ATTEMPTED):
        raise OpError(f"must be {SCHEDULED} or {ATTEMPTED}")
    return str(value)


def _churn_mode(value: Any) -> str:
    if value not in ("create", "recreate"):
        raise OpError("must be create or recreate")
    return str(value)


def _strict(value: Any, **members: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OpError("must be a mapping")
    known = {name.lower(): name for name in members}
    for key in value:
        if str(key).lower() not in known:
            raise OpError(f"has an unknown field {key!r}")
    return {
        known[key.lower()]: members[known[key.lower()]](member) for key, member in value.items()
    }


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OpError("must be a mapping")
    return value


def _allocatable_strategy(value: Any) -> dict[str, Any]:
    return _strict(
        value, nodeAllocatable=_labels, csiNodeAllocatable=_mapping, migratedPlugins=_texts
    )


def _label_strategy(value: Any) -> dict[str, Any]:
    return _strict(value, labelKey=_text, labelValues=_texts)


def _unique_strategy(value: Any) -> dict[str, Any]:
    return _strict(value, labelKey=_text)


class Field(NamedTuple):
    """The value of a field. `by_param`: it may be given as `<name>Param`."""

    read: Callable[[Any], Any]
    default: Any = None
    by_param: bool = False
    required: bool = False


_COUNT: Final = Field(_integer, by_param=True, required=True)
_COUNT_OR_ONE: Final = Field(_integer, 1, by_param=True)
_YES_NO: Final = Field(_boolean, False)
_OPTIONAL: Final = Field(_text, "")
_NEEDED: Final = Field(_text, required=True)

OPCODES: Final[Mapping[str, Mapping[str, Field]]] = {
    "createNodes": {
        "count": _COUNT,
        "nodeTemplatePath": _OPTIONAL,
        "nodeAllocatableStrategy": Field(_allocatable_strategy),
        "labelNodePrepareStrategy": Field(_label_strategy),
        "uniqueNodeLabelStrategy": Field(_unique_strategy),
    },
    "createNamespaces": {"prefix": _NEEDED, "count": _COUNT, "namespaceTemplatePath": _OPTIONAL},
    "createPods": {
        "count": _COUNT,
        "steadyState": Field(_boolean, False, by_param=True),
        "duration": Field(_seconds, 0.0, by_param=True),
        "collectMetrics": _YES_NO,
        "namespace": Field(_text),
        "podTemplatePath": _OPTIONAL,
        "skipWaitToCompletion": _YES_NO,
        "persistentVolumeTemplatePath": _OPTIONAL,
        "persistentVolumeClaimTemplatePath": _OPTIONAL,
    },
    "createPodSets": {"count": _COUNT, "namespacePrefix": _NEEDED, "createPodsOp": Field(_mapping)},
    "deletePods": {
        "namespace": _NEEDED,
        "labelSelector": Field(_labels),
        "skipWaitToCompletion": _YES_NO,
        "deletePodsPerSecond": Field(_integer, 0),
    },
    "churn": {
        "mode": Field(_churn_mode, required=True),
        "number": Field(_integer, 0),
        "intervalMilliseconds": Field(_integer, 500),
        "namespace": Field(_text),
        "templatePaths": Field(_texts, required=True),
    },
    "barrier": {
        "namespaces": Field(_texts, ()),
        "labelSelector": Field(_labels),
        "stageRequirement": Field(_stage, SCHEDULED),
    },
    "sleep": {"duration": Field(_seconds, by_param=True, required=True)},
    "startCollectingMetrics": {
        "name": _OPTIONAL,
        "namespaces": Field(_texts, required=True),
        "labelSelector": Field(_labels),
    },
    "stopCollectingMetrics": {},
    "createAny": {"namespace": _OPTIONAL, "templatePath": _NEEDED, "count": _COUNT_OR_ONE},
    "updateAny": {
        "namespace": _OPTIONAL,
        "templatePath": _NEEDED,
        "count": _COUNT_OR_ONE,
        "updatePerSecond": Field(_integer, 0),
        "subresources": Field(_texts, ()),
    },
    "createResourceClaims": {"count": _COUNT, "namespace": _NEEDED, "templatePath": _NEEDED},
    "createResourceDriver": {
        "driverName": _NEEDED,
        "maxClaimsPerNode": _COUNT,
        "nodes": _NEEDED,
    },
    "allocResourceClaims": {"namespace": _NEEDED},
}

_PARAM: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True)
class Op:
    """One operation with every parameter filled in; `values` has all of its fields."""

    opcode: str
    values: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        return self.values[field]


class Params:
    """A workload's parameters, and which of them were used."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._used: set[str] = set()

    def get(self, reference: Any) -> Any:
        """The value of `$name`. Raises OpError."""
        match = _PARAM.fullmatch(reference) if isinstance(reference, str) else None
        if match is None:
            raise OpError(f"must be $ and the name of a parameter, not {reference!r}")
        if match[1] not in self._values:
            raise OpError(f"the workload has no parameter {match[1]!r}")
        self._used.add(match[1])
        return self._values[match[1]]

    @property
    def unused(self) -> list[str]:
        return [name for name in self._values if name not in self._used]


def read_op(raw: Any, params: Params | None) -> Op:
    """Read one operation strictly: unknown fields are errors. Without `params` only its shape is
    checked. Raises OpError with one line.
    """
    if not isinstance(raw, dict):
        raise OpError("an operation must be a mapping")
    given = {str(key).lower(): (str(key), value) for key, value in raw.items()}
    _, opcode = given.pop("opcode", ("", None))
    fields = OPCODES.get(opcode) if isinstance(opcode, str) else None
    if fields is None:
        raise OpError(f"unknown opcode {opcode!r}; there are {', '.join(OPCODES)}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        key, value = given.pop(name.lower(), (name, None))
        if field.by_param and name.lower() + "param" in given:
            key, reference = given.pop(name.lower() + "param")
            value = _resolved(opcode, key, reference, params)
            if params is None:
                continue
        if value is None:
            if field.required:
                raise OpError(f"{opcode}: {name} is required")
            values[name] = field.default
            continue
        try:
            values[name] = field.read(value)
        except OpError as error:
            raise OpError(f"{opcode}: {key} {error}") from None
    if given:
        unknown = ", ".join(repr(key) for key, _ in given.values())
        raise OpError(f"{opcode}: unknown field {unknown}; it has {', '.join(fields)}")
    _check_combination(opcode, values)
    return Op(opcode, values)


def _resolved(opcode: str, key: str, reference: Any, params: Params | None) -> Any:
    try:
        return params.get(reference) if params is not None else None
    except OpError as error:
        raise OpError(f"{opcode}: {key}: {error}") from None


def _check_combination(opcode: str, values: Mapping[str, Any]) -> None:
    """Rules between the fields of one operation."""
    if opcode == "createPods":
        if values["skipWaitToCompletion"] and (
            values["collectMetrics"] or values.get("steadyState")
        ):
            raise OpError(
                "createPods: skipWaitToCompletion goes with neither collectMetrics nor steadyState"
            )
        if bool(values["persistentVolumeTemplatePath"]) != bool(
            values["persistentVolumeClaimTemplatePath"]
        ):
            raise OpError("createPods: templates of volume and claim go together")
    elif opcode == "churn" and values["mode"] == "recreate" and not values["number"]:
        raise OpError("churn: number is required when mode is recreate")
    elif opcode == "createNodes":
        names = ("nodeAllocatableStrategy", "labelNodePrepareStrategy", "uniqueNodeLabelStrategy")
        if sum(values[name] is not None for name in names) > 1:
            raise OpError(f"createNodes: at most one of {', '.join(names)}")
