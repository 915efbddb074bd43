"""GpuFractions: whole GPUs are no more than what others leave of them.

Pods that use a part of a GPU and do not ask for the resource that counts GPUs are in nobody's sums.
Those of which an annotation or label tells take a whole device each, however small their part.

    KAI          labels runai-gpu-group and runai-gpu-group/…: one device for each group, unless a
                 pod that holds it asks for a whole one (KAI's reservation pods do); annotation
                 gpu-fraction or gpu-memory and no group yet: gpu-fraction-num-devices, or 1
    by number    alibabacloud.com/gpu-index, volcano.sh/gpu-index, ALIYUN_COM_GPU_MEM_IDX, and
                 Koordinator's scheduling.koordinator.sh/device-allocated
    by id        volcano.sh/vgpu-ids-new

Rejects   nodes where fewer GPUs are neither asked for nor used so than the pod asks for.
Retry     a pod goes; a node appears or offers something else.
Cost      one comparison over the rows; a look at the pods of rows that changed.
Source    NVIDIA/KAI-Scheduler pkg/common/resources/gpu_sharing.go, koordinator-sh/koordinator
          apis/extension/device_share.go, hkust-adsl/kubernetes-scheduler-simulator
Bounds    DEVICES_MAX devices for a pod
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.hardware.sharing.convention import annotations_of, decoded, number
from asched.hardware.sharing.devices import DEVICES_MAX
from asched.plugin import (
    I64,
    IDLE,
    Action,
    Aspect,
    ByRow,
    Cluster,
    Codes,
    FilterPlugin,
    NodeView,
    PodInfo,
    Reason,
    Registration,
    Trigger,
)

IN_USE: Final = Reason("node(s) had GPUs in use by others' fractions", resolvable=False)
ASPECTS: Final = Aspect.PODS | Aspect.ALLOCATABLE | Aspect.LIVE

GROUP: Final = "runai-gpu-group"
FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
NUMBERED: Final = (
    "alibabacloud.com/gpu-index",
    "volcano.sh/gpu-index",
    "ALIYUN_COM_GPU_MEM_IDX",
)
KOORDINATOR: Final = "scheduling.koordinator.sh/device-allocated"
VOLCANO: Final = "volcano.sh/vgpu-ids-new"


class Allocated(Record, frozen=True, gc=False):
    minor: int = -1


class DeviceAllocated(Record, frozen=True, gc=False):
    """Koordinator's annotation, as far as it tells of GPUs."""

    gpu: tuple[Allocated, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuFractionsArgs:
    """`resource` counts whole GPUs."""

    resource: str = "nvidia.com/gpu"


class _Taken(ByRow[None]):
    """How many devices of each row are used in part, and not asked for."""

    def __init__(self, cluster: Cluster, resource: str) -> None:
        super().__init__(cluster.nodes, int(ASPECTS))
        self._cluster = cluster
        self._resource = resource
        self.counts: I64 = np.zeros(0, dtype=np.int64)

    def of(self, view: NodeView) -> I64:
        """int64[M]; in a trial, as it would be."""
        if self._cluster.topology.on_trial:
            return np.array([self._count(row) for row in view.row_numbers().tolist()], np.int64)
        self.update(None)
        return view.gather(self.counts)

    def _make_all(self, _: None) -> None:
        rows = range(self._nodes.height)
        self.counts = np.array([self._count(row) for row in rows], dtype=np.int64)

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            self.counts[row] = self._count(row)
        return True

    def _count(self, row: int) -> int:
        used: set[Hashable] = set()
        held: set[Hashable] = set()
        for info in self._cluster.pods_on(row).values():
            asks = info.cls.requests.get(self._resource, 0) > 0
            (held if asks else used).update(devices_of(info.pod))
        return len(used - held)


def devices_of(pod: Pod) -> Iterator[Hashable]:
    """What a pod says it has a part of."""
    told, groups = annotations_of(pod), groups_of(pod)
    yield from (("group", group) for group in groups)
    if not groups and (FRACTION in told or MEMORY in told):
        count = number(told.get(DEVICES, "1")) or 1
        yield from (("of", pod.uid, at) for at in range(min(count, DEVICES_MAX)))
    for name in NUMBERED:
        words = told.get(name, "").replace(",", "-").split("-")[:DEVICES_MAX]
        yield from (("number", at) for word in words if (at := number(word)) is not None)
    yield from (("number", one.minor) for one in _koordinators(told)[:DEVICES_MAX])
    if VOLCANO in told:
        places = len(pod.spec.containers or ())
        parts = [part for place in decoded(told[VOLCANO], places) or () for part in place]
        yield from (("id", part.device) for part in parts[:DEVICES_MAX])


def groups_of(pod: Pod) -> list[str]:
    labels = pod.labels
    found = [labels[GROUP]] if labels.get(GROUP) else []
    return found + [value for key, value in labels.items() if key.startswith(f"{GROUP}/")]


def _koordinators(told: Mapping[str, str]) -> Sequence[Allocated]:
    if KOORDINATOR not in told:
        return ()
    try:
        return msgspec.json.decode(told[KOORDINATOR], type=DeviceAllocated).gpu
    except msgspec.MsgspecError:
        return ()


class GpuFractions(FilterPlugin):
    """See the module."""

    name = "GpuFractions"
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

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        asked, at = (
            pod.cls.requests.get(self._resource, 0),
            nodes.table.find_resource(self._resource),
        )
        if not asked or at is None:
            return np.zeros(nodes.size, dtype=np.int32)
        taken = self._taken.of(nodes)
        left = nodes.allocatable(at) - nodes.requested(at) - taken
        found: Codes = ((taken > 0) & (left < asked)).astype(np.int32)
        return found
