"""What HAMi's device plugin for NVIDIA writes to nodes, and reads from pods.

    node   hami.io/node-nvidia-register       its devices, as JSON
           hami.io/device-cordon              ids of devices without new pods
           hami.io/mutex.lock                 a pod is getting its devices (`ServingTurns`)
    pod    hami.io/vgpu-devices-to-allocate   input of the plugin, which removes what it has served
           hami.io/vgpu-devices-allocated     the same, permanently
           hami.io/vgpu-node, vgpu-time, bind-phase, bind-time

Deliberate differences: sidecars count with the other containers, not as init containers; devices in
the mode `mig` are left out; namespaces' quotas of GPU memory are ignored.

Source  Project-HAMi/HAMi 2.10 pkg/device/nvidia/device.go, pkg/device/devices.go,
        pkg/scheduler/scheduler.go, pkg/device-plugin/nvidiadevice/nvinternal/plugin
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.hardware.rows import decoded_json
from asched.hardware.sharing.conventions import amount, annotations_of, containers_of, listed
from asched.hardware.sharing.devices import (
    BINPACK,
    CONTAINERS_MAX,
    DEVICES_MAX,
    POLICIES,
    SPREAD,
    WHOLE,
    DeviceRules,
    DeviceShareRequest,
    Parts,
    SharedDevice,
    SharingRequest,
)
from asched.hardware.sharing.virtual_gpus import (
    HAMI_CORE,
    KIND,
    NO_MODEL,
    TRUE,
    USE_MODEL,
    VirtualGpuKeys,
    VirtualGpus,
    check_policy,
    encoded,
)

HAMI_KEYS: Final = VirtualGpuKeys.of(
    "hami.io", "vgpu-devices-to-allocate", "vgpu-devices-allocated"
)
HAMI_LOCK: Final = "hami.io/mutex.lock"
HAMI_REGISTER: Final = "hami.io/node-nvidia-register"
HAMI_CORDON: Final = "hami.io/device-cordon"
HAMI_USE_ID, HAMI_NO_ID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
HAMI_MODE: Final = "nvidia.com/vgpu-mode"
ONE_ZONE: Final = "nvidia.com/numa-bind"
POLICY, NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"
WEIGHTS: Final = "hami.io/device-scoring-weights"
MUTEX: Final = "mutex"
MIG: Final = "mig"


class Registered(Record, frozen=True, gc=False):
    """A device as reported by the plugin; fields that are zero are left out."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


@dataclass(frozen=True, slots=True)
class HamiVGPUArgs:
    """Names as in HAMi's device configuration; policies of pods without their own.

    resource_count_name: the resource that is the number of devices
    resource_memory_name: the resource that is the memory of each device, in MiB
    resource_memory_percentage_name: the resource that is its percentage, 1 to 100
    resource_core_name: the resource that is the percentage of its cores, 0 to 100
    default_memory: memory of a container that requests none, in MiB; 0 is the whole device
    default_cores: cores of a container that requests none, in percent, 0 to 100
    gpu_scheduler_policy: `binpack` or `spread`: which device of a node
    node_scheduler_policy: `binpack` or `spread`: which node
    """

    resource_count_name: str = "nvidia.com/gpu"
    resource_memory_name: str = "nvidia.com/gpumem"
    resource_memory_percentage_name: str = "nvidia.com/gpumem-percentage"
    resource_core_name: str = "nvidia.com/gpucores"
    default_memory: int = 0
    default_cores: int = 0
    gpu_scheduler_policy: str = SPREAD
    node_scheduler_policy: str = BINPACK

    def __post_init__(self) -> None:
        check_policy("gpuSchedulerPolicy", self.gpu_scheduler_policy)
        check_policy("nodeSchedulerPolicy", self.node_scheduler_policy)
        if self.default_memory < 0 or not 0 <= self.default_cores <= WHOLE:
            raise ValueError("defaultMemory must not be negative, defaultCores is within 0..100")


class Hami(VirtualGpus):
    """HAMi's device plugin."""

    keys = HAMI_KEYS
    reads = (
        USE_MODEL,
        NO_MODEL,
        HAMI_USE_ID,
        HAMI_NO_ID,
        HAMI_MODE,
        ONE_ZONE,
        POLICY,
        NODE_POLICY,
        WEIGHTS,
    )
    writes = keys
    writes_labels: ClassVar[tuple[str, ...]] = (keys.node,)

    def __init__(self, args: HamiVGPUArgs) -> None:
        self._args = args

    def request_of(self, pod: Pod) -> SharingRequest | None:
        annotations = annotations_of(pod)
        each = [(role, self._request(container)) for role, container in containers_of(pod)]
        if not any(request for _, request in each):
            return None
        if len(each) > CONTAINERS_MAX:
            return SharingRequest.of_too_many(len(each))
        roles, requests = (tuple(column) for column in zip(*each, strict=True))
        policies = listed(annotations, POLICY)
        rules = DeviceRules(
            listed(annotations, USE_MODEL),
            listed(annotations, NO_MODEL),
            listed(annotations, HAMI_USE_ID),
            listed(annotations, HAMI_NO_ID),
            modes_in(annotations.get(HAMI_MODE, "")),
            MUTEX in policies,
            annotations.get(ONE_ZONE, "") in TRUE,
        )
        policy = next((p for p in policies if p in POLICIES), "")
        node_policy, problem = annotations.get(NODE_POLICY, ""), _hami_problem(annotations)
        return SharingRequest(roles, requests, rules, policy, node_policy, problem)

    def _request(self, container: Container) -> DeviceShareRequest | None:
        args = self._args
        devices = amount(container, args.resource_count_name)
        if not devices:
            return None
        memory = amount(container, args.resource_memory_name)
        percent = min(amount(container, args.resource_memory_percentage_name), WHOLE)
        if not memory and not percent:
            memory, percent = args.default_memory, 0 if args.default_memory else WHOLE
        cores = min(amount(container, args.resource_core_name) or args.default_cores, WHOLE)
        return DeviceShareRequest(devices, memory, 0 if memory else percent, cores)

    def devices(self, node: Node) -> Sequence[SharedDevice]:
        annotations = node.metadata.annotations or {}
        cordoned = listed(annotations, HAMI_CORDON)
        registered = decoded_json(annotations.get(HAMI_REGISTER), tuple[Registered, ...]) or ()
        return tuple(
            SharedDevice(
                device.id,
                device.type,
                max(device.count, 0),
                max(device.devmem, 0),
                max(device.devcore, 0),
                device.numa,
                device.mode or HAMI_CORE,
                device.health and device.mode != MIG and device.id not in cordoned,
            )
            for device in registered[:DEVICES_MAX]
        )

    def written(self, node: Node, parts: Parts, now_s: float) -> Mapping[str, str]:
        devices = "".join(f"{encoded(container, KIND)};" for container in parts)
        return self._annotations(node.name, devices, int(now_s), int(now_s))


def _hami_problem(annotations: Mapping[str, str]) -> str:
    if WEIGHTS in annotations:
        return f"annotation {WEIGHTS} is not implemented"
    for policy in listed(annotations, POLICY):
        if policy not in (*POLICIES, MUTEX):
            return f'annotation {POLICY} "{policy}" is not implemented'
    policy = annotations.get(NODE_POLICY, "")
    if policy and policy not in POLICIES:
        return f'annotation {NODE_POLICY} "{policy}" is not implemented'
    modes = annotations.get(HAMI_MODE, "")
    if modes and not modes_in(modes) - {MIG}:
        return f'annotation {HAMI_MODE} "{modes}" is not implemented'
    return ""


def modes_in(text: str) -> frozenset[str]:
    """The modes of devices that an annotation allows; a mode counts at any position."""
    return frozenset(mode for mode in (HAMI_CORE, "mps", MIG) if mode in text)
