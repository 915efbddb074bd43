"""Runs workloads one after the other, each in a world of its own, and collects the results.

A workload that cannot run is a result too, with the reason. Feature gates that this scheduler does
not have are reported as notes; gates that upstream refuses make a workload one that cannot be run.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from asched.core.config.gates import DEFAULT_GATES, LOCKED, REFUSED, GateError, resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.host.configuration.file import ConfigError, UnreadableFileError, load_config, read_text
from asched_lab.bench import metrics
from asched_lab.bench.metrics import DataItem
from asched_lab.bench.ops import OpRunner
from asched_lab.bench.templates import TemplateError
from asched_lab.bench.watching import Collection
from asched_lab.bench.workload import LabelFilter, Workload, WorkloadError, read_file
from asched_lab.bench.world import CannotRunError, WorkloadFailedError, World

#: Gate values that asched does not support, and what it does instead.
WITHOUT_SWITCH: Final[Mapping[tuple[str, bool], str]] = {
    ("SchedulerQueueingHints", False): "queueing hints are always on",
    ("SchedulerAsyncAPICalls", True): "API calls never block a cycle",
    ("SchedulerAsyncAPICalls", False): "API calls never block a cycle",
}
#: Upstream's harness emulates 1.33 for it, so the lock of 1.36 does not apply.
EMULATED: Final = frozenset({"SchedulerQueueingHints"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """Settings of a workload's scheduler."""

    configuration: SchedulerConfiguration
    gates: Mapping[str, bool]  # gates of the workload that a command line may set
    config_text: str
    notes: tuple[str, ...]


def prepare(workload: Workload) -> Prepared:
    """Read the configuration with the workload's gates. Raises CannotRunError."""
    notes = [
        f"{gate}={str(value).lower()}: {WITHOUT_SWITCH[gate, value]}"
        for gate, value in workload.gates.items()
        if (gate, value) in WITHOUT_SWITCH
    ]
    wanted = {
        gate: value
        for gate, value in workload.gates.items()
        if not (gate in EMULATED and gate in LOCKED and value is not DEFAULT_GATES[gate])
    }
    try:
        gates = resolve(wanted)
    except GateError as error:
        raise CannotRunError(f"feature gates: {error}") from error
    unknown = [gate for gate in wanted if gate not in DEFAULT_GATES]
    notes += [f"unknown feature gate {gate}" for gate in unknown]
    text = _config_text(workload)
    try:
        loaded = load_config(text=text, gates=gates.enabled)
    except ConfigError as error:
        raise CannotRunError(f"scheduler configuration: {' '.join(str(error).split())}") from error
    known = {gate: value for gate, value in wanted.items() if gate in DEFAULT_GATES}
    for gate in [
        name for name in known if name in REFUSED and known[name] is not DEFAULT_GATES[name]
    ]:
        value = str(known.pop(gate)).lower()
        notes.append(f"{gate}={value} is left out: {REFUSED[gate]}")
    return Prepared(loaded.configuration, known, text, tuple(notes))


def _config_text(workload: Workload) -> str:
    if workload.scheduler_config is None:
        return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    try:
        return read_text(workload.scheduler_config)
    except UnreadableFileError as error:
        raise CannotRunError(str(error)) from error


Maker = Callable[[Workload, Prepared], Awaitable[World]]
#: Called with progress: workload, operation, operations, activity, pods scheduled, pods in all.
Show = Callable[[Workload, int, int, str, World], None]


@dataclass(slots=True)
class Result:
    """One workload: measured, failed (`error`) or not run at all (`reason`)."""

    workload: Workload
    mode: str
    items: list[DataItem] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    stages: list[tuple[str, float, int]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    reason: str = ""
    error: str = ""
    wall_s: float = 0.0

    @property
    def throughputs(self) -> list[DataItem]:
        return [item for item in self.items if item.metric == "SchedulingThroughput"]

    def of_metric(self, metric: str, name: str) -> DataItem | None:
        """The data item of a metric for the same collection."""
        found = (item for item in self.items if item.metric == metric and item.name == name)
        return next(found, None)

    @property
    def compared(self) -> float:
        """The value that is compared with the threshold; 0 if it was not measured."""
        wanted = self.workload.threshold_metric
        for item in self.items:
            labels = {**item.labels, "Metric": item.metric, "Name": item.name}
            if item.metric == wanted.name and all(
                labels.get(k) == v for k, v in (wanted.labels or {}).items()
            ):
                return item.data.get(wanted.bucket, 0.0)
        return 0.0

    @property
    def ratio(self) -> float | None:
        """Measured over threshold (inverted where lower is better); None without a threshold."""
        threshold = self.workload.threshold
        if not threshold or not self.compared:
            return None
        if self.workload.threshold_metric.expect_lower:
            return threshold / self.compared
        return self.compared / threshold


def select(
    files: Iterable[Path], case: str = "", name: str = "", labels: LabelFilter | None = None
) -> list[Workload]:
    """The selected workloads. Raises WorkloadError if a file is invalid or none is left."""
    found = [workload for path in files for workload in read_file(path)]
    chosen = [
        w
        for w in found
        if (not case or w.case == case)
        and (not name or w.name == name)
        and (labels is None or labels.takes(w.labels))
    ]
    if not chosen:
        cases = ", ".join(dict.fromkeys(w.case for w in found))
        raise WorkloadError(f"no workload has this name or label; there are test cases {cases}")
    return chosen


async def run_all(
    workloads: Sequence[Workload], mode: str, make: Maker, show: Show
) -> list[Result]:
    """Run every workload, in order."""
    results = []
    for workload in workloads:
        started_s = time.monotonic()
        result = Result(workload, mode)
        try:
            await _run_one(workload, make, show, result)
        except CannotRunError as error:
            result.reason = str(error)
        except (WorkloadFailedError, TemplateError) as error:
            result.error = str(error)
        result.wall_s = round(time.monotonic() - started_s, 2)
        results.append(result)
    return results


async def _run_one(workload: Workload, make: Maker, show: Show, result: Result) -> None:
    prepared = prepare(workload)
    result.notes = prepared.notes
    world = await make(workload, prepared)

    def progress(index: int, total: int, what: str) -> None:
        show(workload, index, total, what, world)

    world.on_progress = lambda: show(workload, -1, 0, "", world)
    runner = OpRunner(workload, world, progress)
    try:
        await runner.run()
        result.facts = world.facts()
        result.stages = world.stages()
    finally:
        result.items = runner.items
        result.collections = runner.collected
        await world.close()


def item_of(result: Result) -> Mapping[str, Any]:
    """A result as JSON."""
    return {
        "test_case": result.workload.case,
        "workload": result.workload.name,
        "mode": result.mode,
        "threshold": result.workload.threshold or None,
        "ratio": round(result.ratio, 3) if result.ratio is not None else None,
        "dataItems": [item.as_json() for item in result.items],
        "facts": result.facts,
        "notes": list(result.notes),
        "stages": [
            {"stage": name, "seconds": round(seconds, 6), "count": count}
            for name, seconds, count in result.stages
        ],
        "error": result.error or None,
        "not_run": result.reason or None,
        "wall_s": result.wall_s,
        "curve": [
            [round(at, 3), round(rate, 1)]
            for collection in result.collections
            for at, rate in metrics.curve_of(collection)
        ],
    }
