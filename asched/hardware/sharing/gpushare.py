"""What gpushare's device plugin writes to nodes, and reads from pods.

    node   allocatable aliyun.com/gpu-count, aliyun.com/gpu-mem: devices of equal size, by number
    pod    ALIYUN_COM_GPU_MEM_IDX, _POD, _DEV   the device, what the pod gets, what the device has
           ALIYUN_COM_GPU_MEM_ASSUME_TIME       nanoseconds; _ASSIGNED "false", until it is

The plugin serves the pod of its node that was written first and requests as much as the kubelet
does: pods of one size may get each other's device. A pod uses one device with all containers.

Source  AliyunContainerService/gpushare-scheduler-extender pkg/cache/nodeinfo.go, pkg/utils/pod.go,
        gpushare-device-plugin pkg/gpu/nvidia/allocate.go. Its ConfigMaps of unhealthy devices
        (`unhealthy-gpu-NODE`) are ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import whole
from asched.core.model.timestamp import NS_PER_SECOND
from asched.hardware.sharing.conventions import Convention, amount, annotations_of, number
from asched.hardware.sharing.devices import (
    AMOUNT_MAX,
    DEVICES_MAX,
    DevicePart,
    DeviceShareRequest,
    Parts,
    Role,
    SharedDevice,
    SharingRequest,
)

_PREFIX: Final = "ALIYUN_COM_GPU_MEM_"
INDEX, GIVEN, DEVICE = _PREFIX + "IDX", _PREFIX + "POD", _PREFIX + "DEV"
ASSUME_TIME, ASSIGNED = _PREFIX + "ASSUME_TIME", _PREFIX + "ASSIGNED"


@dataclass(frozen=True, slots=True)
class GpuShareArgs:
    """Names of resources.

    resource_name: the resource that is memory of a device, in the unit of the device plugin
    count_name: the resource that counts the devices of a node
    """

    resource_name: str = "aliyun.com/gpu-mem"
    count_name: str = "aliyun.com/gpu-count"


class GpuShareConvention(Convention):
    """The gpushare device plugin."""

    writes = (INDEX, GIVEN, DEVICE, ASSUME_TIME, ASSIGNED)

    def __init__(self, args: GpuShareArgs) -> None:
        self._args = args
        self._written_ns = 0

    def request_of(self, pod: Pod) -> SharingRequest | None:
        memory = sum(
            amount(container, self._args.resource_name) for container in pod.spec.containers or ()
        )
        if not memory:
            return None
        return SharingRequest((Role.CONTAINER,), (DeviceShareRequest(1, min(memory, AMOUNT_MAX)),))

    def devices(self, node: Node) -> Sequence[SharedDevice]:
        offered = node.status.allocatable or {}
        count = min(whole(offered.get(self._args.count_name, 0)), DEVICES_MAX)
        if count <= 0:
            return ()
        size = max(whole(offered.get(self._args.resource_name, 0)), 0) // count
        return tuple(SharedDevice(str(at), slots=AMOUNT_MAX, memory=size) for at in range(count))

    def parts(self, pod: Pod, node: str, request: SharingRequest) -> Parts | None:
        annotations = annotations_of(pod)
        index, memory = number(annotations.get(INDEX, "")), number(annotations.get(GIVEN, ""))
        if index is None or memory is None:
            return None
        return ((DevicePart(str(index), memory, 0),),)

    def written(self, node: Node, parts: Parts, now_s: float) -> Mapping[str, str]:
        part = parts[0][0]
        self._written_ns = max(int(now_s * NS_PER_SECOND), self._written_ns + 1)
        size = next(d.memory for d in self.devices(node) if d.id == part.device)
        values = part.device, str(part.memory), str(size), str(self._written_ns), "false"
        return dict(zip(self.writes, values, strict=True))
