"""Workload files of scheduler_perf: a YAML list of test cases, each with its workloads, read
strictly.

Rules   unknown keys are errors, keys match in any case; paths are relative to the file; a
        workload's gates override its case's; createPodSets is unrolled before operations are
        numbered; a parameter that no operation uses is an error, a missing one too.
Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from asched.core.model.decode import MalformedError, parse
from asched_lab.bench.opcodes import Op, OpError, Params, read_op

#: Size limit of a file in characters: a guess; upstream's longest has 50,000.
FILE_LETTERS_MAX: Final = 16 << 20
#: A parameter without a field: the number of features that nodes of createNodes declare.
DECLARED_FEATURES: Final = "numNodeDeclaredFeatures"
#: The metric of a threshold without a selector.
THROUGHPUT: Final = "SchedulingThroughput"

_CASE_KEYS: Final = (
    "name",
    "featureGates",
    "metricsCollectorConfig",
    "workloadTemplate",
    "workloads",
    "schedulerConfigPath",
    "defaultPodTemplatePath",
    "labels",
    "defaultThresholdMetricSelector",
)
_WORKLOAD_KEYS: Final = (
    "name",
    "params",
    "labels",
    "threshold",
    "thresholdMetricSelector",
    "featureGates",
)
_SELECTOR_KEYS: Final = ("name", "labels", "dataBucket", "expectLower")


class WorkloadError(ValueError):
    """An invalid workload file; one line with file, place and fault."""


@dataclass(frozen=True, slots=True)
class ThresholdMetric:
    """The metric that a threshold is compared with."""

    name: str = THROUGHPUT
    labels: Mapping[str, str] | None = None
    bucket: str = "Average"
    expect_lower: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload of one test case, its operations resolved and numbered by their position."""

    case: str
    name: str
    file: Path
    ops: tuple[Op, ...]
    gates: Mapping[str, bool]
    labels: frozenset[str]
    thresholds: Mapping[str, float]  # topic, "" for all -> pods per second
    threshold_metric: ThresholdMetric
    scheduler_config: Path | None
    default_pod_template: Path | None
    declared_features: int = 0  # features that every node of createNodes declares

    @property
    def full_name(self) -> str:
        return f"{self.case}/{self.name}"

    @property
    def threshold(self) -> float:
        """The workload's one threshold; 0 if there is none."""
        return next(iter(self.thresholds.values()), 0.0)

    def path(self, relative: str) -> Path:
        return self.file.parent / relative


def read_file(path: Path) -> list[Workload]:
    """Every workload of a file. Raises WorkloadError."""
    try:
        with path.open(encoding="utf-8") as stream:
            loaded = parse(yaml.safe_load, stream.read(FILE_LETTERS_MAX))
    except MalformedError as error:
        raise WorkloadError(f"{path}: is no YAML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise WorkloadError(f"{path}: cannot be read: {why}") from error
    if not isinstance(loaded, list):
        raise WorkloadError(f"{path}: must be a list of test cases")
    found: list[Workload] = []
    seen: set[str] = set()
    for number, raw in enumerate(loaded, 1):
        for workload in _case(path, number, raw):
            if workload.full_name in seen:
                raise WorkloadError(f"{path}: {workload.full_name} is defined twice")
            seen.add(workload.full_name)
            found.append(workload)
    return found


def _case(path: Path, number: int, raw: Any) -> Iterator[Workload]:
    place = f"{path}: test case {number}"
    case = _members(place, raw, _CASE_KEYS)
    name = case.get("name")
    if not isinstance(name, str) or not name:
        raise WorkloadError(f"{place}: name is required")
    place = f"{path}: test case {name}"
    template = case.get("workloadTemplate")
    if not isinstance(template, list) or not template:
        raise WorkloadError(f"{place}: workloadTemplate must be a list of operations")
    workloads = case.get("workloads") or []
    if not isinstance(workloads, list):
        raise WorkloadError(f"{place}: workloads must be a list")
    for position, entry in enumerate(workloads, 1):
        yield _workload(path, f"{place}, workload {position}", name, case, template, entry)


def _workload(
    path: Path, place: str, case_name: str, case: Mapping[str, Any], template: list[Any], raw: Any
) -> Workload:
    entry = _members(place, raw, _WORKLOAD_KEYS)
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise WorkloadError(f"{place}: name is required")
    place = f"{path}: {case_name}/{name}"
    given = _members(place, entry.get("params") or {}, None)
    declared_features = int(given.pop(DECLARED_FEATURES, 0))
    params = Params(given)
    ops = tuple(_ops(place, template, params))
    if params.unused:
        raise WorkloadError(f"{place}: no operation uses {', '.join(params.unused)}")
    selector = entry.get("thresholdMetricSelector", case.get("defaultThresholdMetricSelector"))
    return Workload(
        case=case_name,
        name=name,
        file=path,
        ops=ops,
        gates=_gates(place, case.get("featureGates")) | _gates(place, entry.get("featureGates")),
        labels=frozenset(_labels(place, case.get("labels")))
        | {*_labels(place, entry.get("labels"))},
        thresholds=_thresholds(place, entry.get("threshold")),
        threshold_metric=_selector(place, selector),
        scheduler_config=_optional_path(path, case.get("schedulerConfigPath")),
        default_pod_template=_optional_path(path, case.get("defaultPodTemplatePath")),
        declared_features=declared_features,
    )


def _ops(place: str, template: Iterable[Any], params: Params) -> Iterator[Op]:
    """The operations in order, sets of pods unrolled."""
    for position, raw in enumerate(template):
        try:
            op = read_op(raw, params)
            if op.opcode != "createPodSets":
                yield op
                continue
            for index in range(op["count"]):
                inner = {**op["createPodsOp"], "namespace": f"{op['namespacePrefix']}-{index}"}
                yield read_op(inner, params)
        except OpError as error:
            raise WorkloadError(f"{place}, operation {position}: {error}") from None


def _members(place: str, raw: Any, known: tuple[str, ...] | None) -> dict[str, Any]:
    """A mapping whose keys are all known, in their proper spelling."""
    if not isinstance(raw, dict):
        raise WorkloadError(f"{place}: must be a mapping")
    if known is None:
        return {str(key): value for key, value in raw.items()}
    proper = {key.lower(): key for key in known}
    for key in raw:
        if str(key).lower() not in proper:
            raise WorkloadError(f"{place}: unknown key {key!r}; known are {', '.join(known)}")
    return {proper[str(key).lower()]: value for key, value in raw.items()}


def _gates(place: str, raw: Any) -> dict[str, bool]:
    gates = _members(place, raw or {}, None)
    for name, value in gates.items():
        if not isinstance(value, bool):
            raise WorkloadError(f"{place}: feature gate {name} must be true or false")
    return gates


def _labels(place: str, raw: Any) -> list[str]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise WorkloadError(f"{place}: labels must be a list")
    return [str(label) for label in raw]


def _thresholds(place: str, raw: Any) -> dict[str, float]:
    values = raw if isinstance(raw, dict) else {"": raw or 0}
    for value in values.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise WorkloadError(f"{place}: a threshold must be a number, 0 or more")
    return {str(topic): float(value) for topic, value in values.items()}


def _selector(place: str, raw: Any) -> ThresholdMetric:
    if raw is None:
        return ThresholdMetric()
    given = _members(f"{place}: thresholdMetricSelector", raw, _SELECTOR_KEYS)
    return ThresholdMetric(
        name=str(given.get("name") or THROUGHPUT),
        labels=given.get("labels"),
        bucket=str(given.get("dataBucket") or "Average"),
        expect_lower=bool(given.get("expectLower", False)),
    )


def _optional_path(file: Path, relative: Any) -> Path | None:
    return file.parent / str(relative) if relative else None


class LabelFilter:
    """`+a,-b`: labels a workload must have and must not have; a bare `a` is `+a`.

    Raises ValueError for an empty label.
    """

    def __init__(self, text: str) -> None:
        self.wanted: set[str] = set()
        self.unwanted: set[str] = set()
        for part in filter(None, text.split(",")):
            label = part.lstrip("+-")
            if not label:
                raise ValueError(f"{part!r} names no label")
            (self.unwanted if part.startswith("-") else self.wanted).add(label)

    def takes(self, labels: frozenset[str]) -> bool:
        return self.wanted <= labels and not self.unwanted & labels
