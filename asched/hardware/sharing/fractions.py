"""GpuFractions: subtract GPUs in fractional use from the whole GPUs of a node.

A pod that requests a part of a GPU by another resource is not included in sums of whole GPUs. It
takes whole devices, however small its parts, as many as its requests imply at most: those that an
annotation numbers or names, since several pods may share them, or else as many as that, of its own:
without such an annotation, with one that names more, and where the parts of the pods that name a
device exceed it. The devices named when the pod was first read count as long as the pod exists.

A part is what a pod requests, of what the node says that each of its devices has. It is a whole
device if the pod requests devices by number only, or memory of which the node offers none.

    by number    alibabacloud.com/gpu-index, volcano.sh/gpu-index, ALIYUN_COM_GPU_MEM_IDX, and
                 Koordinator's scheduling.koordinator.sh/device-allocated
    by id        volcano.sh/vgpu-ids-new

A pod that requests no such resource takes none, whatever its annotations and labels say: its owner
can write these at any time. So fractions of KAI count by its reservation pods, which request whole
GPUs and are included in the sums; no other pod can reserve a device for them.

Rejects   nodes with fewer GPUs than requested that are neither requested nor in fractional use.
Retry     a pod leaves its node; a node appears or offers something else.
Cost      one comparison over the rows; the pods of changed rows are read.
Source    koordinator-sh/koordinator apis/extension/device_share.go and resource.go,
          volcano-sh/volcano pkg/scheduler/api/devices, hkust-adsl/kubernetes-scheduler-simulator;
          NVIDIA/KAI-Scheduler pkg/binder/binding/resourcereservation
Bounds    MOST devices for a pod; one entry a pod that names some
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import whole
from asched.hardware.rows import ByNode, decoded_json, sweep
from asched.hardware.sharing.conventions import annotations_of, number
from asched.hardware.sharing.devices import DEVICES_MAX, WHOLE
from asched.hardware.sharing.virtual_gpus import decoded
from asched.plugin import (
    I64,
    IDLE,
    Action,
    Aspect,
    Cluster,
    Codes,
    FilterPlugin,
    NodeView,
    PerClass,
    PodInfo,
    Reason,
    Registration,
    Scope,
    Trigger,
)

IN_USE: Final = Reason("node(s) had GPUs in use by other pods' fractions", resolvable=False)
ASPECTS: Final = Aspect.PODS | Aspect.ALLOCATABLE | Aspect.LIVE

#: Resources for parts of devices, and the amount that is one device; 0: all of it is on one device.
SHARES: Final[Mapping[str, int]] = {
    "aliyun.com/gpu-mem": 0,
    "aliyun.com/gpu-core.percentage": WHOLE,
    "alibabacloud.com/gpu-milli": 1000,
    "alibabacloud.com/gpu-count": 1,
    "koordinator.sh/gpu": WHOLE,
    "koordinator.sh/gpu-core": WHOLE,
    "koordinator.sh/gpu-memory": 0,
    "koordinator.sh/gpu-memory-ratio": WHOLE,
    "koordinator.sh/gpu.shared": 1,
    "volcano.sh/gpu-memory": 0,
    "volcano.sh/gpu-number": 1,
    "volcano.sh/vgpu-memory": 0,
    "volcano.sh/vgpu-number": 1,
}
#: Requested for each device of the pod; other amounts are those of all its devices together.
OF_EACH: Final = frozenset(
    {
        "alibabacloud.com/gpu-milli",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
    }
)
#: Resources that say how large parts are, and the amount that is one device; 0: memory.
PARTS: Final[Mapping[str, int]] = {
    **{name: unit for name, unit in SHARES.items() if unit != 1},
    "volcano.sh/vgpu-memory-percentage": WHOLE,
}
#: Parts are counted in millionths of a device.
FULL: Final = 1_000_000
NUMBERED: Final = (
    "alibabacloud.com/gpu-index",
    "volcano.sh/gpu-index",
    "ALIYUN_COM_GPU_MEM_IDX",
)
MOST: Final = DEVICES_MAX
KOORDINATOR: Final = "scheduling.koordinator.sh/device-allocated"
VOLCANO: Final = "volcano.sh/vgpu-ids-new"


class Allocated(Record, frozen=True, gc=False):
    minor: int = -1


class DeviceAllocated(Record, frozen=True, gc=False):
    """Koordinator's annotation, only GPUs."""

    gpu: tuple[Allocated, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuFractionsArgs:
    """What counts whole GPUs.

    resource: the resource that counts whole GPUs
    """

    resource: str = "nvidia.com/gpu"


class FractionRequest(NamedTuple):
    """Request of a pod: the maximum number of its devices, and (resource, amount) of PARTS."""

    devices: int
    amounts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, requested: Mapping[str, int], whole_resource: str) -> "FractionRequest":
        amounts = tuple((name, requested[name]) for name in PARTS if requested.get(name, 0) > 0)
        return cls(most_of(requested, whole_resource), amounts)

    def total_on(self, node: Node, whole_resource: str) -> int:
        """Millionths of devices that the pod has together."""
        offered = node.status.allocatable or {}
        count = max(whole(offered.get(whole_resource, 0)), 1)
        total = 0
        for name, amount in self.amounts:
            unit = PARTS[name] or whole(offered.get(name, 0)) // count
            found = amount * FULL // unit if unit > 0 else FULL * self.devices
            total = max(total, found * self.devices if name in OF_EACH else found)
        return min(total or FULL * self.devices, FULL * self.devices)


class _Taken(ByNode):
    """Number of devices of each row that are in fractional use, and not requested."""

    def __init__(self, cluster: Cluster, resource: str) -> None:
        super().__init__(cluster, ASPECTS)
        self._resource = resource
        self._requests: PerClass[FractionRequest] = PerClass(
            lambda cls: FractionRequest.of(cls.accounted, resource)
        )
        #: by uid, devices named when the pod was first read
        self._named: dict[str, set[Hashable]] = {}
        self.counts: I64 = np.zeros(0, dtype=np.int64)

    def of(self, view: NodeView) -> I64:
        """int64[M]; in a trial, with its changes."""
        if self._cluster.topology.on_trial:
            return np.array([self._count(row) for row in view.row_numbers().tolist()], np.int64)
        self.update(None)
        return view.gather(self.counts)

    def _reset(self, height: int) -> None:
        self.counts = np.zeros(height, dtype=np.int64)

    def _read(self, row: int) -> None:
        self.counts[row] = self._count(row)

    def _count(self, row: int) -> int:
        node = self._cluster.nodes.node_at[row]
        if node is None:
            return 0
        taken: dict[Hashable, int] = {}  # millionths of the named devices
        unnamed = 0
        for info in self._cluster.pods_on(row).values():
            request = self._requests(info.cls)
            if not request.devices:
                continue
            named = self._named_by(info.pod, request.devices)
            part = request.total_on(node, self._resource) // max(len(named), 1)
            if named and all(taken.get(device, 0) + part <= FULL for device in named):
                for device in named:
                    taken[device] = taken.get(device, 0) + part
            else:
                unnamed += request.devices
        return len(taken) + unnamed

    def _named_by(self, pod: Pod, most: int) -> set[Hashable]:
        """The devices that a pod names; none if these are more than it has at most."""
        named = self._named.get(pod.uid)
        if named is not None:
            return named
        named = set(islice(_named(pod), MOST))
        if not 0 < len(named) <= most:
            return set()
        if not self._cluster.topology.on_trial:
            sweep(self._named, self._cluster)
            self._named[pod.uid] = named
        return named


def most_of(requested: Mapping[str, int], whole: str) -> int:
    """Maximum number of devices that a pod has parts of; 0 if it requests whole ones, or none."""
    if requested.get(whole, 0) > 0:
        return 0
    shares = [(requested[name], of) for name, of in SHARES.items() if requested.get(name, 0) > 0]
    return min(max((-(-amount // (of or amount)) for amount, of in shares), default=0), MOST)


def _named(pod: Pod) -> Iterator[Hashable]:
    annotations = annotations_of(pod)
    for name in NUMBERED:
        words = annotations.get(name, "").replace(",", "-").split("-", MOST)
        yield from (("number", at) for word in words if (at := number(word)) is not None)
    koordinators = decoded_json(annotations.get(KOORDINATOR), DeviceAllocated) or DeviceAllocated()
    yield from (("number", device.minor) for device in koordinators.gpu)
    places = decoded(annotations.get(VOLCANO, ""), len(pod.spec.containers or ()))
    yield from (("id", part.device) for place in places or () for part in place)


class GpuFractions(FilterPlugin):
    name = "GpuFractions"
    scope = Scope.NODE
    reasons = (IN_USE,)
    depends_on = ASPECTS

    def __init__(self, args: GpuFractionsArgs, cluster: Cluster) -> None:
        self._resource = args.resource
        self._taken = _Taken(cluster, args.resource)

    def registrations(self) -> Sequence[Registration]:
        offers = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        gone = Trigger(POD.resource, Action.DELETE)
        return (Registration(gone), Registration(Trigger(NODE.resource, offers)))

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.cls.requests.get(self._resource, 0) or IDLE

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        requested = pod.cls.requests.get(self._resource, 0)
        at = nodes.table.find_resource(self._resource)
        if not requested or at is None:
            return np.zeros(nodes.size, dtype=np.int32)
        taken = self._taken.of(nodes)
        free = nodes.allocatable(at) - nodes.requested(at) - taken
        return ((taken > 0) & (free < requested)).astype(np.int32)
