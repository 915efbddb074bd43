"""What Volcano's device plugin for vGPUs writes to nodes, and reads from pods.

    node   volcano.sh/node-vgpu-register      its devices: `ID,SLOTS,MEMORY,TYPE,HEALTH,MODE:` each
    pod    volcano.sh/devices-to-allocate     input of the plugin, which removes what it has served
           volcano.sh/vgpu-ids-new            the same, permanently
           volcano.sh/vgpu-node, vgpu-time, bind-phase, bind-time

The plugin serves the pod of its node that was written first and has as many devices to be assigned
as the kubelet requests at once, which is for one container. So a pod with requests in several
containers cannot be served, and pods are written one after the other (`ServingTurns`).

Deliberate difference: containers without requests have an empty place of their own in the
annotation, without which the plugin would mistake another container for the requesting one.

Source  volcano-sh/volcano pkg/scheduler/api/devices/nvidia/vgpu, Project-HAMi/
        volcano-vgpu-device-plugin pkg/util/util.go, pkg/plugin/server.go
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.hardware.sharing.conventions import amount, annotations_of, listed, number
from asched.hardware.sharing.devices import (
    BINPACK,
    CONTAINERS_MAX,
    DEVICES_MAX,
    WHOLE,
    DeviceRules,
    DeviceShareRequest,
    Parts,
    Role,
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

VOLCANO_KEYS: Final = VirtualGpuKeys.of("volcano.sh", "devices-to-allocate", "vgpu-ids-new")
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
        check_policy("schedulePolicy", self.schedule_policy)


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
