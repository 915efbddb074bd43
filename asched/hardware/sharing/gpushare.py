"""How the gpushare device plugin is told of devices.

    node   allocatable aliyun.com/gpu-count, aliyun.com/gpu-mem: devices of equal size, by number
    pod    ALIYUN_COM_GPU_MEM_IDX, _POD, _DEV   the device, what the pod gets, what the device has
           ALIYUN_COM_GPU_MEM_ASSUME_TIME       nanoseconds; _ASSIGNED "false", until it is

The plugin serves the pod of its node that was told first and asks for as much as the kubelet does:
pods of one size may change places among each other. A pod sits on one device with all containers.

Source  AliyunContainerService/gpushare-scheduler-extender pkg/cache/nodeinfo.go, pkg/utils/pod.go,
        gpushare-device-plugin pkg/gpu/nvidia/allocate.go. Its ConfigMaps of unhealthy devices
        (`unhealthy-gpu-NODE`) are not looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import whole
from asched.core.model.timestamp import NS_PER_SECOND
from asched.hardware.sharing.convention import (
    Convention,
    PodRecord,
    amount,
    annotations_of,
    number,
)
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
INDEX, POD, DEVICE = _PREFIX + "IDX", _PREFIX + "POD", _PREFIX + "DEV"
ASSUME_TIME, ASSIGNED = _PREFIX + "ASSUME_TIME", _PREFIX + "ASSIGNED"


@dataclass(frozen=True, slots=True)
class GpuShareArgs:
    """Names of resources."""

    resource_name: str = "aliyun.com/gpu-mem"
    count_name: str = "aliyun.com/gpu-count"


class GpuShareConvention(Convention):
    """See the module."""

    writes = (INDEX, POD, DEVICE, ASSUME_TIME, ASSIGNED)

    def __init__(self, args: GpuShareArgs) -> None:
        self._args = args
        self._told_ns = 0

    def wish(self, pod: Pod) -> SharingRequest | None:
        memory = sum(amount(one, self._args.resource_name) for one in pod.spec.containers or ())
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

    def parts(self, pod: Pod, node: str, wish: SharingRequest) -> Parts | None:  # noqa: ARG002
        told = annotations_of(pod)
        index, memory = number(told.get(INDEX, "")), number(told.get(POD, ""))
        if index is None or memory is None:
            return None
        return ((DevicePart(str(index), memory, 0),),)

    def written(self, pod: Pod, node: Node, parts: Parts, now_s: float) -> PodRecord:  # noqa: ARG002
        part = parts[0][0]
        self._told_ns = max(int(now_s * NS_PER_SECOND), self._told_ns + 1)
        size = next(one.memory for one in self.devices(node) if one.id == part.device)
        return PodRecord(
            {
                INDEX: part.device,
                POD: str(part.memory),
                DEVICE: str(size),
                ASSUME_TIME: str(self._told_ns),
                ASSIGNED: "false",
            }
        )
