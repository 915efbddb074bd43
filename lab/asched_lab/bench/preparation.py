"""From a workload to its scheduler's configuration: feature gates and configuration file.

Gates that this scheduler does not have are reported as notes; gates that upstream refuses make a
workload one that cannot be run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asched.core.config.gates import DEFAULT_GATES, LOCKED, REFUSED, GateError, resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.host.configuration.file import ConfigError, UnreadableFileError, load_config, read_text
from asched_lab.bench.workload import Workload
from asched_lab.bench.world import CannotRunError

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
