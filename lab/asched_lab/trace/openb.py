"""The recorded cluster "openb": 1,213 nodes with GPUs, and lists of pods that requested them.

Only the pods' requests are used: no times, no phases; no pod ever ends.

Source  data/csv of hkust-adsl/kubernetes-scheduler-simulator, published with Weng et al., USENIX
        ATC 2023
"""

import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from asched.core.config.problem import did_you_mean
from asched.hardware.gpu.shares import WHOLE, GpuDemand

FAMILY: Final = "openb"
#: Pods a node takes.
PODS_MAX: Final = 1001
_NODES: Final = "openb_node_list_gpu_node.csv.gz"
_PODS: Final = "openb_pod_list_"
_ENDING: Final = ".csv.gz"


class TraceError(Exception):
    """What cannot be read, and what to do, in one line."""


class TraceNode(NamedTuple):
    name: str
    cpu: int  # milli-CPU
    memory: int  # MiB
    devices: int
    model: str


class TracePod(NamedTuple):
    name: str
    demand: GpuDemand
    memory: int  # MiB


class Trace(NamedTuple):
    name: str
    nodes: tuple[TraceNode, ...]  # by name
    pods: tuple[TracePod, ...]  # by name


def default_folder() -> Path:
    """Where a clone of this repository has the traces, seen from its root."""
    return Path("tests/recordings/traces")


def known(folder: Path) -> list[str]:
    """The names of the traces in a folder. Raises TraceError if there are none."""
    found = sorted((folder / FAMILY).glob(f"{_PODS}*{_ENDING}"))
    if not found:
        text = (
            f"no traces in {folder / FAMILY}; name their folder with --traces"
            " (docs/results/gpu-traces.md says where they come from)"
        )
        raise TraceError(text)
    return [f"{FAMILY}:{path.name[len(_PODS) : -len(_ENDING)]}" for path in found]


def load(name: str, folder: Path) -> Trace:
    """Read one trace. Raises TraceError."""
    names = known(folder)
    if name not in names:
        raise TraceError(f"no trace {one_of(name, names)}")
    base = folder / FAMILY
    pods = base / f"{_PODS}{name.removeprefix(FAMILY + ':')}{_ENDING}"
    try:
        nodes = sorted(_node(line) for line in _lines(base / _NODES))
        trace = Trace(name, tuple(nodes), tuple(sorted(_pod(line) for line in _lines(pods))))
    except KeyError as missing:
        raise TraceError(f"{base}: cannot read trace {name}: no column {missing}") from None
    except (OSError, EOFError, ValueError) as problem:
        raise TraceError(f"{base}: cannot read trace {name}: {problem}") from None
    if not any(node.devices for node in trace.nodes):
        raise TraceError(f"{base}: trace {name}: no node has a GPU")
    if not any(pod.demand.number for pod in trace.pods):
        raise TraceError(f"{base}: trace {name}: no pod asks for a GPU, so demand cannot be raised")
    return trace


def one_of(name: str, names: Sequence[str]) -> str:
    """An unknown name with similar known ones."""
    full = f"{FAMILY}:{name}"
    hint = did_you_mean(full if full in names else name, names)
    return f"{name!r}{f' ({hint})' if hint else ''}; there are {', '.join(names)}"


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as stream:
        yield from csv.DictReader(stream)


def _node(line: dict[str, str]) -> TraceNode:
    amounts = int(line["cpu_milli"]), int(line["memory_mib"]), int(line["gpu"])
    return TraceNode(line["sn"], *amounts, line["model"])


def _pod(line: dict[str, str]) -> TracePod:
    count = int(line["num_gpu"])
    milli = min(int(line["gpu_milli"] or 0), WHOLE) if count else 0
    # Some lists name no models: their pods accept any.
    models = tuple(sorted(filter(None, (line.get("gpu_spec") or "").split("|")))) if count else ()
    demand = GpuDemand(
        int(line["cpu_milli"]), milli, count if milli else 0, models if milli else ()
    )
    return TracePod(line["name"], demand, int(line["memory_mib"]))
