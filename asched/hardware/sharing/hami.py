"""Annotations of HAMi's device plugin for NVIDIA.

    node   hami.io/node-nvidia-register       its devices: JSON, or the text of older versions
           hami.io/device-cordon              ids of devices without new pods
           hami.io/mutex.lock                 a pod is getting its devices (`turns.py`)
    pod    hami.io/vgpu-devices-to-allocate   input of the plugin, which removes what it has
           assigned hami.io/vgpu-devices-allocated     the same, permanently hami.io/vgpu-node,
           -time, bind-phase, bind-time

Deliberate differences: sidecars count beside the other containers, not as init containers; devices
in the mode `mig` are left out; namespaces' quotas of GPU memory are ignored.

Source  Project-HAMi/HAMi 2.10 pkg/device/nvidia/device.go, pkg/device/devices.go,
        pkg/scheduler/scheduler.go, pkg/device-plugin/nvidiadevice/nvinternal/plugin
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from asched.core.model.decode import MalformedError, parse
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.hardware.sharing.convention import (
    HAMI_CORE,
    KIND,
    NO_MODEL,
    TRUE,
    USE_MODEL,
    Convention,
    PodRecord,
    amount,
    annotated_parts,
    annotations_of,
    containers_of,
    encoded,
    listed,
    number,
)
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

LOCK: Final = "hami.io/mutex.lock"
REGISTER: Final = "hami.io/node-nvidia-register"
CORDON: Final = "hami.io/device-cordon"
TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
NODE: Final = "hami.io/vgpu-node"
TIME: Final = "hami.io/vgpu-time"
BIND_TIME: Final = "hami.io/bind-time"
PHASE: Final = "hami.io/bind-phase"

USE_ID, NO_ID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
MODE: Final = "nvidia.com/vgpu-mode"
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


_registered: Final = msgspec.json.Decoder(tuple[Registered, ...])


@dataclass(frozen=True, slots=True)
class HamiVGPUArgs:
    """Names as in HAMi's device configuration; policies of pods without their own."""

    resource_count_name: str = "nvidia.com/gpu"
    resource_memory_name: str = "nvidia.com/gpumem"
    resource_memory_percentage_name: str = "nvidia.com/gpumem-percentage"
    resource_core_name: str = "nvidia.com/gpucores"
    default_memory: int = 0
    default_cores: int = 0
    gpu_scheduler_policy: str = SPREAD
    node_scheduler_policy: str = BINPACK

    def __post_init__(self) -> None:
        for name, value in (
            ("gpu", self.gpu_scheduler_policy),
            ("node", self.node_scheduler_policy),
        ):
            if value not in POLICIES:
                known = ", ".join(POLICIES)
                raise ValueError(f'{name}SchedulerPolicy "{value}" is none of {known}')
        if self.default_memory < 0 or not 0 <= self.default_cores <= WHOLE:
            raise ValueError("defaultMemory must not be negative, defaultCores is within 0..100")


class Hami(Convention):
    """See the module's documentation."""

    reads = (USE_MODEL, NO_MODEL, USE_ID, NO_ID, MODE, ONE_ZONE, POLICY, NODE_POLICY, WEIGHTS)
    writes = (TO_ALLOCATE, ALLOCATED, NODE, TIME, BIND_TIME, PHASE)
    writes_labels: ClassVar[tuple[str, ...]] = (NODE,)

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
            listed(annotations, USE_ID),
            listed(annotations, NO_ID),
            modes_in(annotations.get(MODE, "")),
            MUTEX in policies,
            annotations.get(ONE_ZONE, "") in TRUE,
        )
        policy = next((p for p in policies if p in POLICIES), "")
        return SharingRequest(
            roles, requests, rules, policy, annotations.get(NODE_POLICY, ""), _problem(annotations)
        )

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
        text, cordoned = annotations.get(REGISTER, ""), listed(annotations, CORDON)
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
            for device in registered(text)[:DEVICES_MAX]
        )

    def parts(self, pod: Pod, node: str, request: SharingRequest) -> Parts | None:
        return annotated_parts(pod, node, request, NODE, ALLOCATED)

    def written(self, pod: Pod, node: Node, parts: Parts, now_s: float) -> PodRecord:  # noqa: ARG002
        devices = "".join(f"{encoded(container, KIND)};" for container in parts)
        at = str(int(now_s))
        annotations = {
            TO_ALLOCATE: devices,
            ALLOCATED: devices,
            NODE: node.name,
            TIME: at,
            BIND_TIME: at,
            PHASE: "allocating",
        }
        return PodRecord(annotations, {NODE: node.name})


def _problem(annotations: Mapping[str, str]) -> str:
    if WEIGHTS in annotations:
        return f"annotation {WEIGHTS} is not implemented"
    for policy in listed(annotations, POLICY):
        if policy not in (*POLICIES, MUTEX):
            return f'annotation {POLICY} "{policy}" is not implemented'
    policy = annotations.get(NODE_POLICY, "")
    if policy and policy not in POLICIES:
        return f'annotation {NODE_POLICY} "{policy}" is not implemented'
    modes = annotations.get(MODE, "")
    if modes and not modes_in(modes) - {MIG}:
        return f'annotation {MODE} "{modes}" is not implemented'
    return ""


def modes_in(text: str) -> frozenset[str]:
    """The modes of devices that an annotation allows; a mode counts at any position."""
    return frozenset(mode for mode in (HAMI_CORE, "mps", MIG) if mode in text)


def registered(text: str) -> Sequence[Registered]:
    """Empty if it is invalid."""
    if text.startswith("["):
        try:
            return parse(_registered.decode, text)
        except MalformedError:
            return ()
    found = [_registered_before(word) for word in text.split(":") if word]
    return [device for device in found if device is not None] if all(found) else ()


def _registered_before(word: str) -> Registered | None:
    """ID, count, memory, cores, type, NUMA zone, health; newer ones have index and mode."""
    fields = word.split(",")
    if len(fields) not in {7, 9}:
        return None
    amounts = [number(field) for field in fields[1:4]]
    zone = number(fields[5])
    if None in amounts or zone is None:
        return None
    count, memory, cores = (value or 0 for value in amounts)
    mode = fields[8] if len(fields) == 9 else HAMI_CORE
    health = fields[6] in TRUE
    return Registered(fields[0], 0, count, memory, cores, fields[4], zone, mode, health)
