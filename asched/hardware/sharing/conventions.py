"""What device plugins of several kinds write to nodes, and read from pods: HAMi's plugin for
NVIDIA, Volcano's for vGPUs, which is derived from it, and gpushare's.

HAMi
    node   hami.io/node-nvidia-register       its devices, as JSON
           hami.io/device-cordon              ids of devices without new pods
           hami.io/mutex.lock                 a pod is getting its devices (`ServingTurns`)
    pod    hami.io/vgpu-devices-to-allocate   input of the plugin, which removes what it has served
           hami.io/vgpu-devices-allocated     the same, permanently
           hami.io/vgpu-node, vgpu-time, bind-phase, bind-time

    Deliberate differences: sidecars count with the other containers, not as init containers;
    devices in the mode `mig` are left out; namespaces' quotas of GPU memory are ignored.

Volcano
    node   volcano.sh/node-vgpu-register      its devices: `ID,SLOTS,MEMORY,TYPE,HEALTH,MODE:` each
    pod    volcano.sh/devices-to-allocate     input of the plugin, which removes what it has served
           volcano.sh/vgpu-ids-new            the same, permanently
           volcano.sh/vgpu-node, vgpu-time, bind-phase, bind-time

    The plugin serves the pod of its node that was written first and has as many devices to be
    assigned as the kubelet requests at once, which is for one container. So a pod with requests in
    several containers cannot be served, and pods are written one after the other (`ServingTurns`).

    Deliberate difference: containers without requests have an empty place of their own in the
    annotation, without which the plugin would mistake another container for the requesting one.

gpushare
    node   allocatable aliyun.com/gpu-count, aliyun.com/gpu-mem: devices of equal size, by number
    pod    ALIYUN_COM_GPU_MEM_IDX, _POD, _DEV   the device, what the pod gets, what the device has
           ALIYUN_COM_GPU_MEM_ASSUME_TIME       nanoseconds; _ASSIGNED "false", until it is

    The plugin serves the pod of its node that was written first and requests as much as the kubelet
    does: pods of one size may get each other's device. A pod uses one device with all containers.

Source  Project-HAMi/HAMi 2.10 pkg/device/nvidia/device.go, pkg/device/devices.go,
        pkg/scheduler/scheduler.go, pkg/device-plugin/nvidiadevice/nvinternal/plugin;
        volcano-sh/volcano pkg/scheduler/api/devices/nvidia/vgpu, Project-HAMi/
        volcano-vgpu-device-plugin pkg/util/util.go, pkg/plugin/server.go;
        AliyunContainerService/gpushare-scheduler-extender pkg/cache/nodeinfo.go, pkg/utils/pod.go,
        gpushare-device-plugin pkg/gpu/nvidia/allocate.go. Its ConfigMaps of unhealthy devices
        (`unhealthy-gpu-NODE`) are ignored.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import whole
from asched.core.model.timestamp import NS_PER_SECOND
from asched.hardware.rows import decoded_json
from asched.hardware.sharing.devices import (
    AMOUNT_MAX,
    BINPACK,
    CONTAINERS_MAX,
    DEVICES_MAX,
    POLICIES,
    SPREAD,
    WHOLE,
    DevicePart,
    DeviceRules,
    DeviceShareRequest,
    Parts,
    Role,
    SharedDevice,
    SharingRequest,
)

#: After this time a device plugin, or a lock, counts as dead; as in HAMi and Volcano.
GIVEN_UP_S: Final = 300.0


class Convention(ABC):
    """One kind of device plugin. Invalid amounts count as absent."""

    #: Annotations of a pod that affect its request.
    reads: ClassVar[tuple[str, ...]] = ()
    #: Annotations set before a pod is bound, and those of them that are labels, too; removed if the
    #: pod is not bound.
    writes: ClassVar[tuple[str, ...]] = ()
    writes_labels: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def request_of(self, pod: Pod) -> SharingRequest | None:
        """None: it requests no such shared devices."""

    @abstractmethod
    def devices(self, node: Node) -> Sequence[SharedDevice]:
        """The devices that agents report on the node."""

    @abstractmethod
    def parts(self, pod: Pod, node: str, request_of: SharingRequest) -> Parts | None:
        """The devices of a pod on a node according to its annotations; None if they have none."""

    @abstractmethod
    def written(self, node: Node, parts: Parts, now_s: float) -> Mapping[str, str]:
        """The annotations of a pod with these parts."""


def annotations_of(pod: Pod) -> Mapping[str, str]:
    return pod.metadata.annotations or {}


def amount(container: Container, resource: str) -> int:
    """Limits before requests; 0 if it names none, at most AMOUNT_MAX."""
    for given in (container.resources.limits, container.resources.requests):
        if resource and given and resource in given:
            return min(max(whole(given[resource]), 0), AMOUNT_MAX)
    return 0


def containers_of(pod: Pod) -> Iterator[tuple[Role, Container]]:
    """Init containers, then the other containers."""
    for container in pod.spec.init_containers or ():
        is_sidecar = container.restart_policy == "Always"
        yield (Role.SIDECAR if is_sidecar else Role.INIT), container
    for container in pod.spec.containers or ():
        yield Role.CONTAINER, container


def listed(annotations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The comma-separated words of an annotation."""
    return tuple(word.strip() for word in annotations.get(name, "").split(",") if word.strip())


def number(text: str) -> int | None:
    """A whole number as agents write it; None if it is no amount."""
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        return None
    found = int(text)
    return found if found <= AMOUNT_MAX else None


# --- HAMi and Volcano ----------------------------------------------------------------------------

USE_MODEL, NO_MODEL = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
#: Name of the devices for plugin and scheduler.
KIND: Final = "NVIDIA"
HAMI_CORE: Final = "hami-core"
TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
ALLOCATING: Final = "allocating"


class VirtualGpuKeys(NamedTuple):
    """The annotations of one domain that are written to pods."""

    to_allocate: str
    allocated: str
    node: str
    time: str
    bind_time: str
    phase: str

    @classmethod
    def of(cls, domain: str, to_allocate: str, allocated: str) -> "VirtualGpuKeys":
        names = to_allocate, allocated, "vgpu-node", "vgpu-time", "bind-time", "bind-phase"
        return cls(*(f"{domain}/{name}" for name in names))


HAMI_KEYS: Final = VirtualGpuKeys.of(
    "hami.io", "vgpu-devices-to-allocate", "vgpu-devices-allocated"
)
VOLCANO_KEYS: Final = VirtualGpuKeys.of("volcano.sh", "devices-to-allocate", "vgpu-ids-new")


class VirtualGpus(Convention):
    """The common part of HAMi's and Volcano's."""

    keys: ClassVar[VirtualGpuKeys]

    def parts(self, pod: Pod, node: str, request: SharingRequest) -> Parts | None:
        annotations, keys = annotations_of(pod), self.keys
        if keys.allocated not in annotations or annotations.get(keys.node) != node:
            return None
        return decoded(annotations[keys.allocated], len(request.roles))

    def _annotations(self, node: str, devices: str, at_s: int, bound_s: int) -> dict[str, str]:
        values = devices, devices, node, str(at_s), str(bound_s), ALLOCATING
        return dict(zip(self.keys, values, strict=True))


def encoded(container: Sequence[DevicePart], kind: str) -> str:
    """`ID,KIND,MEMORY,CORES:` for each part, as HAMi and Volcano write it."""
    return "".join(f"{part.device},{kind},{part.memory},{part.cores}:" for part in container)


def decoded(text: str, places: int) -> Parts | None:
    """The inverse, for places joined by `;`; None if it is invalid."""
    places_read = []
    pieces = text.split(";", places + 1)
    if len(pieces) > places + 1 or any(pieces[places:]):
        return None
    for piece in pieces[:places]:
        parts = []
        for word in filter(None, piece.split(":")):
            fields = word.split(",")
            amounts = [number(field) for field in fields[2:4]]
            if len(amounts) < 2 or amounts[0] is None or amounts[1] is None:
                return None
            parts.append(DevicePart(fields[0], amounts[0], amounts[1]))
        places_read.append(tuple(parts))
    return tuple(places_read) + ((),) * (places - len(places_read))


def _check_policy(name: str, value: str) -> None:
    if value not in POLICIES:
        raise ValueError(f'{name} "{value}" is none of {", ".join(POLICIES)}')


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
        _check_policy("gpuSchedulerPolicy", self.gpu_scheduler_policy)
        _check_policy("nodeSchedulerPolicy", self.node_scheduler_policy)
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


VOLCANO_LOCK: Final = "hamivgpu"
VOLCANO_REGISTER: Final = "volcano.sh/node-vgpu-register"

VOLCANO_USE_ID, VOLCANO_NO_ID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
VOLCANO_MODE: Final = "volcano.sh/vgpu-mode"
#: Nodes whose times are stored; beyond that, times in the past are dropped.
WRITTEN_MAX: Final = 1024
GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"


@dataclass(frozen=True, slots=True)
class VolcanoVGPUArgs:
    """Names as in Volcano's device configuration.

    resource_count_name: the resource that is the number of devices
    resource_memory_name: the resource that is the memory of each device, in MiB
    resource_memory_percentage_name: the resource that is its percentage, 1 to 100
    resource_core_name: the resource that is the percentage of its cores, 0 to 100
    schedule_policy: `binpack` or `spread`: which node
    """

    resource_count_name: str = "volcano.sh/vgpu-number"
    resource_memory_name: str = "volcano.sh/vgpu-memory"
    resource_memory_percentage_name: str = "volcano.sh/vgpu-memory-percentage"
    resource_core_name: str = "volcano.sh/vgpu-cores"
    schedule_policy: str = BINPACK

    def __post_init__(self) -> None:
        _check_policy("schedulePolicy", self.schedule_policy)


class Volcano(VirtualGpus):
    """Volcano's vGPU device plugin."""

    keys = VOLCANO_KEYS
    reads = (USE_MODEL, NO_MODEL, VOLCANO_USE_ID, VOLCANO_NO_ID, VOLCANO_MODE, GROUP_POLICY)
    writes = keys

    def __init__(self, args: VolcanoVGPUArgs) -> None:
        self._args = args
        self._written_s: dict[str, int] = {}  # node -> the last time written to a pod there

    def request_of(self, pod: Pod) -> SharingRequest | None:
        annotations = annotations_of(pod)
        requests = tuple(self._request(container) for container in pod.spec.containers or ())
        if not any(requests):
            return None
        if len(requests) > CONTAINERS_MAX:
            return SharingRequest.of_too_many(len(requests))
        modes = frozenset({annotations.get(VOLCANO_MODE) or HAMI_CORE})
        models = listed(annotations, USE_MODEL)
        other_models = () if models else listed(annotations, NO_MODEL)
        rules = DeviceRules(
            models,
            other_models,
            listed(annotations, VOLCANO_USE_ID),
            listed(annotations, VOLCANO_NO_ID),
            modes,
        )
        several = sum(request is not None for request in requests) > 1
        roles = (Role.CONTAINER,) * len(requests)
        return SharingRequest(
            roles, requests, rules, problem=_volcano_problem(annotations, is_several=several)
        )

    def _request(self, container: Container) -> DeviceShareRequest | None:
        args = self._args
        devices = amount(container, args.resource_count_name)
        memory = amount(container, args.resource_memory_name)
        devices = devices or int(memory > 0)
        if not devices:
            return None
        percent = min(amount(container, args.resource_memory_percentage_name), WHOLE)
        if percent or not memory:
            memory, percent = 0, percent or WHOLE
        return DeviceShareRequest(
            devices, memory, percent, min(amount(container, args.resource_core_name), WHOLE)
        )

    def devices(self, node: Node) -> Sequence[SharedDevice]:
        devices = []
        for word in (
            (node.metadata.annotations or {}).get(VOLCANO_REGISTER, "").split(":")[:DEVICES_MAX]
        ):
            fields = word.split(",")
            amounts = [number(field) for field in fields[1:3]]
            if len(fields) < 6 or amounts[0] is None or amounts[1] is None:
                continue
            slots, memory = amounts[0], amounts[1]
            healthy, mode = fields[4] in TRUE, fields[5] or HAMI_CORE
            share = SharedDevice(fields[0], fields[3], slots, memory, WHOLE, 0, mode, healthy)
            devices.append(share)
        return tuple(devices)

    def written(self, node: Node, parts: Parts, now_s: float) -> Mapping[str, str]:
        devices = ";".join(encoded(container, KIND) for container in parts)
        # With equal times of two pods the plugin would not know which was first.
        at = max(int(now_s), self._written_s.get(node.name, 0) + 1)
        if len(self._written_s) > WRITTEN_MAX:
            self._written_s = {name: s for name, s in self._written_s.items() if s >= int(now_s)}
        self._written_s[node.name] = at
        return self._annotations(node.name, devices, at, int(now_s))


def _volcano_problem(annotations: Mapping[str, str], *, is_several: bool) -> str:
    if is_several:
        return "Volcano's device plugin serves one container of a pod, several ask for vGPUs"
    if annotations.get(VOLCANO_MODE, HAMI_CORE) != HAMI_CORE:
        return f'annotation {VOLCANO_MODE} "{annotations[VOLCANO_MODE]}" is not implemented'
    if GROUP_POLICY in annotations:
        return f"annotation {GROUP_POLICY} is not implemented"
    return ""


# --- gpushare -------------------------------------------------------------------------------------

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
