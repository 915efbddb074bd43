"""Annotations of Volcano's vGPU device plugin.

    node   volcano.sh/node-vgpu-register    its devices: `ID,SLOTS,MEMORY,TYPE,HEALTH,MODE:` each
    pod    volcano.sh/devices-to-allocate   input of the plugin, which removes what it has assigned
           volcano.sh/vgpu-ids-new          the same, permanently
           volcano.sh/vgpu-node, vgpu-time, bind-phase, bind-time

The plugin serves the pod of its node that was written first and has as many devices to be assigned
as the kubelet requests at once, which is for one container. So a pod with requests in several
containers cannot be served, and pods are written one after the other (`turns.py`).

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
    encoded,
    listed,
    number,
)
from asched.hardware.sharing.devices import (
    BINPACK,
    CONTAINERS_MAX,
    DEVICES_MAX,
    POLICIES,
    WHOLE,
    DeviceRules,
    DeviceShareRequest,
    Parts,
    Role,
    SharedDevice,
    SharingRequest,
)

LOCK: Final = "hamivgpu"
REGISTER: Final = "volcano.sh/node-vgpu-register"
TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
ALLOCATED: Final = "volcano.sh/vgpu-ids-new"
NODE: Final = "volcano.sh/vgpu-node"
TIME: Final = "volcano.sh/vgpu-time"
BIND_TIME: Final = "volcano.sh/bind-time"
PHASE: Final = "volcano.sh/bind-phase"
ALLOCATING: Final = "allocating"

USE_ID, NO_ID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
MODE: Final = "volcano.sh/vgpu-mode"
GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"


@dataclass(frozen=True, slots=True)
class VolcanoVGPUArgs:
    """Names as in Volcano's device configuration."""

    resource_count_name: str = "volcano.sh/vgpu-number"
    resource_memory_name: str = "volcano.sh/vgpu-memory"
    resource_memory_percentage_name: str = "volcano.sh/vgpu-memory-percentage"
    resource_core_name: str = "volcano.sh/vgpu-cores"
    schedule_policy: str = BINPACK

    def __post_init__(self) -> None:
        if self.schedule_policy not in POLICIES:
            known = ", ".join(POLICIES)
            raise ValueError(f'schedulePolicy "{self.schedule_policy}" is none of {known}')


class Volcano(Convention):
    """See the module's documentation."""

    reads = (USE_MODEL, NO_MODEL, USE_ID, NO_ID, MODE, GROUP_POLICY)
    writes = (TO_ALLOCATE, ALLOCATED, NODE, TIME, BIND_TIME, PHASE)

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
        modes = frozenset({annotations[MODE]}) if annotations.get(MODE) else frozenset({HAMI_CORE})
        models = listed(annotations, USE_MODEL)
        other_models = () if models else listed(annotations, NO_MODEL)
        rules = DeviceRules(
            models, other_models, listed(annotations, USE_ID), listed(annotations, NO_ID), modes
        )
        several = sum(request is not None for request in requests) > 1
        roles = (Role.CONTAINER,) * len(requests)
        return SharingRequest(
            roles, requests, rules, problem=_problem(annotations, is_several=several)
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
        found = []
        for word in (node.metadata.annotations or {}).get(REGISTER, "").split(":")[:DEVICES_MAX]:
            fields = word.split(",")
            amounts = [number(field) for field in fields[1:3]]
            if len(fields) < 6 or amounts[0] is None or amounts[1] is None:
                continue
            slots, memory = amounts[0], amounts[1]
            healthy, mode = fields[4] in TRUE, fields[5] or HAMI_CORE
            found.append(SharedDevice(fields[0], fields[3], slots, memory, WHOLE, 0, mode, healthy))
        return tuple(found)

    def parts(self, pod: Pod, node: str, request: SharingRequest) -> Parts | None:
        return annotated_parts(pod, node, request, NODE, ALLOCATED)

    def written(self, pod: Pod, node: Node, parts: Parts, now_s: float) -> PodRecord:  # noqa: ARG002
        devices = ";".join(encoded(container, KIND) for container in parts)
        # With equal times of two pods the plugin would not know which was first.
        at = max(int(now_s), self._written_s.get(node.name, 0) + 1)
        if len(self._written_s) > WRITTEN_MAX:
            self._written_s = {name: s for name, s in self._written_s.items() if s >= int(now_s)}
        self._written_s[node.name] = at
        return PodRecord(
            {
                TO_ALLOCATE: devices,
                ALLOCATED: devices,
                NODE: node.name,
                TIME: str(at),
                BIND_TIME: str(int(now_s)),
                PHASE: ALLOCATING,
            }
        )


#: Nodes whose times are stored; beyond that, times in the past are dropped.
WRITTEN_MAX: Final = 1024


def _problem(annotations: Mapping[str, str], *, is_several: bool) -> str:
    if is_several:
        return "Volcano's device plugin serves one container of a pod, several ask for vGPUs"
    if annotations.get(MODE, HAMI_CORE) != HAMI_CORE:
        return f'annotation {MODE} "{annotations[MODE]}" is not implemented'
    if GROUP_POLICY in annotations:
        return f"annotation {GROUP_POLICY} is not implemented"
    return ""
