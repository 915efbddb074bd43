"""The recorded cluster "openb": 1,213 nodes with GPUs, and lists of pods that requested them.

Only the pods' requests are used: no times, no phases; no pod ever ends.

Source  data/csv of hkust-adsl/kubernetes-scheduler-simulator, published with Weng et al., USENIX
        ATC 2023

`Fleet` has the nodes of a run as columns, and the order in which they changed. `Engine` is the same
run decided by the scheduler's own engine: nodes and pods as Kubernetes objects, all default
filters, and the plugin GpuSharing, loaded like a user plugin, which learns the expected pods from
those it has placed.
"""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import configuration
from asched.core.config.problem import did_you_mean
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import Effect
from asched.core.framework.runner import Decision, Runner
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.hardware.gpu.args import (
    BEST_FIT,
    CLUSTERING,
    CUTTING_STOCK,
    DOT_PRODUCT,
    FRAGMENTATION_GRADIENT_DESCENT,
    PACKING,
    GpuSharingArgs,
)
from asched.hardware.gpu.plugin import GpuSharing
from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, fits
from asched.host.assemble import Parts, build_runners
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.names import DEFAULT_SCHEDULER_NAME
from asched.plugin import I64

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


Mask = npt.NDArray[np.bool_]


class Fleet:
    """All nodes, in the order that decides between equal ones."""

    def __init__(self, nodes: Sequence[TraceNode]) -> None:
        slots = max((node.devices for node in nodes), default=0)
        models = tuple(sorted({node.model for node in nodes}))
        devices = np.array([node.devices for node in nodes], dtype=np.int64)
        self.shares = GpuShares(
            np.array([node.cpu for node in nodes], dtype=np.int64),
            (np.arange(slots) < devices[:, None]) * np.int64(WHOLE),
            devices,
            np.array([models.index(node.model) for node in nodes], dtype=np.int32),
            models,
        )
        self.memory: I64 = np.array([node.memory for node in nodes], dtype=np.int64)
        self.room: I64 = np.full(len(nodes), PODS_MAX, dtype=np.int64)
        self.pods: I64 = np.zeros((len(nodes), slots + 1), dtype=np.int64)  # by `Demand.kind`
        self.devices = int(devices.sum())
        self.free = self.devices  # devices without pods
        #: Rows in the order in which they changed.
        self.changes: list[int] = []
        self._state_of: dict[tuple[int, ...], int] = {}
        #: Rows with equal numbers offer the same devices and CPU.
        self.state: I64 = np.array([self._state(row) for row in range(len(nodes))], dtype=np.int64)

    def admits(self, pod: TracePod, rows: I64) -> Mask:
        """Bool per row: CPU, memory, number of pods, devices and model suffice."""
        found = fits(self.shares.take(rows), pod.demand)
        return found & (self.memory[rows] >= pod.memory) & (self.room[rows] > 0)

    def place(self, pod: TracePod, row: int, device: int) -> None:
        """`device` serves a fraction; whole devices are the first free ones."""
        demand, free = pod.demand, self.shares.free[row]
        self.shares.cpu[row] -= demand.cpu
        self.memory[row] -= pod.memory
        self.room[row] -= 1
        if demand.number:
            taken = np.flatnonzero(free == WHOLE)[: demand.number]
            if demand.milli < WHOLE:
                taken = np.array([device])
            self.free -= int((free[taken] == WHOLE).sum())
            free[taken] -= demand.milli
            self.pods[row, demand.kind] += 1
        self.state[row] = self._state(row)
        self.changes.append(row)

    def kinds(self, rows: I64, demand: GpuDemand) -> tuple[Mask, I64]:
        """Whether each row has pods of this kind, and how many kinds it has."""
        present = self.pods[rows] > 0
        return present[:, demand.kind], present.sum(axis=1)

    def _state(self, row: int) -> int:
        shares = self.shares
        words = (int(shares.cpu[row]), int(shares.model[row]), int(shares.devices[row]))
        key = (*shares.free[row].tolist(), *words)
        return self._state_of.setdefault(key, len(self._state_of))


#: Policy of a trace run -> strategy of the plugin.
STRATEGIES: Final = {
    "dotprod": DOT_PRODUCT,
    "gpuclustering": CLUSTERING,
    "gpupacking": PACKING,
    "bestfit": BEST_FIT,
    "fgd": FRAGMENTATION_GRADIENT_DESCENT,
    "stock": CUTTING_STOCK,
}
_ARGS: Final = GpuSharingArgs()
#: Pods that may share a device, as its device plugin reports.
_SHARERS: Final = 100


class Engine:
    """One profile over all nodes."""

    def __init__(self, nodes: Sequence[TraceNode], strategy: str) -> None:
        self.parts = Parts.fresh()
        self.configuration, self.runners = _runners(self.parts, strategy)
        (self._runner,) = self.runners.values()
        self._offered = 0
        for node in nodes:
            self.parts.cluster.apply(Seen(NODE, decode(Node, _engine_node(node))))

    def offer(self, pod: TracePod) -> str | None:
        """Place a pod; return its node, None if it fits nowhere."""
        cluster, info = self.parts.cluster, self.info_of(pod)
        attempt = self._runner.schedule(info, self._offered)
        try:
            effect: Effect = next(attempt)
        except StopIteration as end:
            if not isinstance(end.value, Decision):
                return None
            cluster.assume(info, end.value.node)
            return end.value.node
        raise TypeError(f"a trace run cannot answer this effect: {effect}")

    def info_of(self, pod: TracePod) -> PodInfo:
        """A pod as the scheduler sees it, with a name of its own."""
        self._offered += 1
        made = decode(Pod, _engine_pod(pod, f"pod-{self._offered}"))
        return self.parts.cluster.classes.info_of(made)


def _runners(parts: Parts, strategy: str) -> tuple[SchedulerConfiguration, Mapping[str, Runner]]:
    """A configuration with one profile, in which only GpuSharing scores, and its runner."""
    score = {"enabled": [{"name": GpuSharing.name}], "disabled": [{"name": "*"}]}
    profile = {
        "plugins": {"filter": {"enabled": [{"name": GpuSharing.name}]}, "score": score},
        "pluginConfig": [{"name": GpuSharing.name, "args": {"strategy": strategy}}],
    }
    plugins = Catalogue([of_class(GpuSharing, "asched")])
    made = configuration({"profiles": [profile]})
    return made, build_runners(made, parts, factories=plugins.factories, known=plugins.known)


def _engine_node(node: TraceNode) -> dict[str, Any]:
    labels = {_ARGS.devices_label: str(node.devices), _ARGS.model_label: node.model}
    offered = {
        "cpu": f"{node.cpu}m",
        "memory": f"{node.memory}Mi",
        "pods": str(PODS_MAX),
        _ARGS.resource: str(node.devices * _SHARERS),
        _ARGS.share_resource: str(node.devices * 100),
    }
    return {
        "metadata": {"name": node.name, "uid": node.name, "labels": labels},
        "spec": {},
        "status": {"allocatable": offered},
    }


def _engine_pod(pod: TracePod, name: str) -> dict[str, Any]:
    """A share of a device is rounded up to a whole percentage."""
    demand = pod.demand
    requests = {"cpu": f"{demand.cpu}m", "memory": f"{pod.memory}Mi"}
    if demand.number:
        requests[_ARGS.resource] = str(demand.number)
    if 0 < demand.milli < WHOLE:
        requests[_ARGS.share_resource] = str(-(-demand.milli * 100 // WHOLE))
    container = {"name": "main", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"containers": [container], "schedulerName": DEFAULT_SCHEDULER_NAME}
    if len(demand.models) == 1:
        spec["nodeSelector"] = {_ARGS.model_label: demand.models[0]}
    elif demand.models:
        expression = {"key": _ARGS.model_label, "operator": "In", "values": list(demand.models)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
