"""Shared devices, the requests of pods, and which devices a pod gets.

        node     SharedDevice: slots, memory, cores         (a convention reads them)
        pod      SharingRequest: one DeviceShareRequest for each of its containers
        result   Parts: for each container, its parts of devices

Containers run together; init containers one after the other, before them; sidecars run with both.
So a pod takes of a device what its sidecars take, plus the larger of what its containers and what
its largest init container take.

Source  input of device plugins: Project-HAMi/HAMi pkg/device, volcano-sh/volcano
        pkg/scheduler/api/devices/nvidia/vgpu
Bounds  DEVICES_MAX of a node are considered; a pod of more than CONTAINERS_MAX gets none:
        nodes are checked one by one, container by container.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from enum import Enum
from typing import Final, NamedTuple, Self

DEVICES_MAX: Final = 64
#: A guess: pods have three or four, and annotations have no room for the devices of hundreds.
CONTAINERS_MAX: Final = 64
#: The cores of a whole device, in percent.
WHOLE: Final = 100
#: Larger amounts are invalid: device plugins store 32 bits.
AMOUNT_MAX: Final = 2**31 - 1

BINPACK, SPREAD = "binpack", "spread"
POLICIES: Final = (BINPACK, SPREAD)


class SharedDevice(NamedTuple):
    """`memory` in the unit of requests; `cores` in percent, 0: not counted."""

    id: str
    model: str = ""
    slots: int = 1
    memory: int = 0
    cores: int = 0
    numa: int = 0
    mode: str = ""
    is_healthy: bool = True


class Role(Enum):
    CONTAINER = "container"
    SIDECAR = "sidecar"
    INIT = "init"


class DeviceShareRequest(NamedTuple):
    """Request of one container, for each of `number` devices: `memory`, or `percent` of the memory
    if that is 0; `cores` in percent.
    """

    number: int
    memory: int = 0
    percent: int = 0
    cores: int = 0

    def memory_of(self, total: int) -> int:
        return self.memory or total * self.percent // 100


class DeviceRules(NamedTuple):
    """Allowed devices. Models are matched by a part of their name, in any case; empty is any."""

    models: tuple[str, ...] = ()
    other_models: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    other_ids: tuple[str, ...] = ()
    modes: frozenset[str] = frozenset()
    is_alone: bool = False  # only unused devices
    is_in_one_zone: bool = False  # all devices of a container in one NUMA zone

    def allow_kind(self, model: str, mode: str) -> bool:
        upper = model.upper()
        if self.modes and mode not in self.modes:
            return False
        if self.models and not any(part.upper() in upper for part in self.models):
            return False
        return not any(part.upper() in upper for part in self.other_models)

    def allow(self, device: SharedDevice) -> bool:
        return (
            self.allow_kind(device.model, device.mode)
            and (not self.ids or device.id in self.ids)
            and device.id not in self.other_ids
        )


class SharingRequest(NamedTuple):
    """Request of a pod: for each place in its annotation the role of the container, and its
    request, if any. `problem`: why no node can satisfy it.
    """

    roles: tuple[Role, ...]
    requests: tuple[DeviceShareRequest | None, ...]
    rules: DeviceRules = DeviceRules()
    policy: str = ""  # of the devices of a node; "": the profile's
    node_policy: str = ""
    problem: str = ""

    @property
    def device_requests(self) -> list[DeviceShareRequest]:
        return [request for request in self.requests if request is not None]

    @classmethod
    def of_too_many(cls, containers: int) -> Self:
        """For a pod with so many containers, some with requests."""
        why = f"no more than {CONTAINERS_MAX} containers may share devices, it has {containers}"
        return cls((), (), problem=why)

    @property
    def is_simple(self) -> bool:
        """Whether it fits a node if enough devices of the node fit."""
        return len(self.device_requests) == 1 and not (self.rules.ids or self.rules.is_in_one_zone)


class DevicePart(NamedTuple):
    """A container's part of one device."""

    device: str
    memory: int
    cores: int


#: For each place in a pod's annotation, its parts.
Parts = tuple[tuple[DevicePart, ...], ...]


class HeldShare(NamedTuple):
    """A pod's share of one device."""

    slots: int = 0
    memory: int = 0
    cores: int = 0

    def with_more(self, slots: int, memory: int, cores: int) -> "HeldShare":
        return HeldShare(self.slots + slots, self.memory + memory, self.cores + cores)


def held_by(roles: Sequence[Role], parts: Parts) -> dict[str, HeldShare]:
    """Share by device that a pod takes."""
    sums: dict[Role, dict[str, HeldShare]] = {role: {} for role in Role}
    for at, container in enumerate(parts):
        role = roles[at] if at < len(roles) else Role.CONTAINER
        shares = sums[role]
        for part in container:
            before = shares.get(part.device, HeldShare())
            if role is Role.INIT:
                memory, cores = max(before.memory, part.memory), max(before.cores, part.cores)
                shares[part.device] = HeldShare(1, memory, cores)
            else:
                shares[part.device] = before.with_more(1, part.memory, part.cores)
    total = {}
    for device in {device for shares in sums.values() for device in shares}:
        with_sidecars, running, first = (sums[role].get(device, HeldShare()) for role in _ORDER)
        more = (max(pair) for pair in zip(running, first, strict=True))
        total[device] = with_sidecars.with_more(*more)
    return total


_ORDER: Final = (Role.SIDECAR, Role.CONTAINER, Role.INIT)


class FreeDevices:
    """Free amounts of a node's devices: lists by device. Never below zero."""

    __slots__ = ("cores", "devices", "memory", "place", "slots")

    def __init__(self, devices: Sequence[SharedDevice]) -> None:
        self.devices = devices
        self.place = {device.id: at for at, device in enumerate(devices)}
        self.slots = [device.slots for device in devices]
        self.memory = [device.memory for device in devices]
        self.cores = [device.cores for device in devices]

    def copy(self) -> "FreeDevices":
        found = copy(self)
        found.slots, found.memory, found.cores = self.slots[:], self.memory[:], self.cores[:]
        return found

    def take(self, held: Mapping[str, HeldShare]) -> None:
        """Amounts are clipped at zero; removed devices are skipped."""
        for device, (slots, memory, cores) in held.items():
            at = self.place.get(device)
            if at is not None:
                self.slots[at] = max(self.slots[at] - slots, 0)
                self.memory[at] = max(self.memory[at] - memory, 0)
                self.cores[at] = max(self.cores[at] - cores, 0)

    def confirmed(self, pod_request: SharingRequest, annotated: Parts) -> Parts | None:
        """Check the devices in a pod's annotations, with the amounts of its spec: its owner can
        change annotations at any time, while the spec was admitted. None if their number is not the
        requested one, or the node does not have them.
        """
        confirmed = []
        for request, parts in zip(pod_request.requests, annotated, strict=True):
            ids = dict.fromkeys(part.device for part in parts)
            number = 0 if request is None else request.number
            if not len(parts) == len(ids) == number or not ids.keys() <= self.place.keys():
                return None
            confirmed.append(
                tuple([self._part(self.place[device], request) for device in ids])
                if request is not None
                else ()
            )
        return tuple(confirmed)

    def has_room_for(self, held: Mapping[str, HeldShare]) -> bool:
        """Whether the devices, which the node has, are free to this extent."""
        for device, (slots, memory, cores) in held.items():
            at = self.place[device]
            counted = cores if self.devices[at].cores else 0
            if slots > self.slots[at] or memory > self.memory[at] or counted > self.cores[at]:
                return False
        return True

    def take_somewhere(self, pod_request: SharingRequest, policy: str) -> None:
        """Subtract a pod whose devices are unknown, once: from devices that it would get, whatever
        its rules, which its owner may have changed. If too little is free it is subtracted from the
        devices with most memory left; what one does not have is taken from the next.
        """
        parts = self.choose(pod_request._replace(rules=DeviceRules(), policy=""), policy)
        if parts is not None:
            self.take(held_by(pod_request.roles, parts))
            return
        order = sorted(range(len(self.devices)), key=lambda at: (-self.memory[at], at))
        parts = tuple(
            tuple([self._part(at, request) for at in order[: request.number]]) if request else ()
            for request in pod_request.requests
        )
        for held in held_by(pod_request.roles, parts).values():
            for free, amount in zip((self.slots, self.memory, self.cores), held, strict=True):
                _take_in_order(free, order, amount)

    def choose(self, pod_request: SharingRequest, policy: str) -> Parts | None:
        """Choose devices for a pod; None if there are not enough.

        Containers choose one after the other, sidecars first. Among allowed devices `binpack` takes
        those with least memory left, `spread` those with most; of equals the first.
        """
        chosen: list[tuple[DevicePart, ...]] = [()] * len(pod_request.requests)
        with_sidecars = self.copy()
        for role in (Role.SIDECAR, Role.CONTAINER, Role.INIT):
            free = with_sidecars if role is Role.SIDECAR else with_sidecars.copy()
            for at, request in enumerate(pod_request.requests):
                if request is None or pod_request.roles[at] is not role:
                    continue
                if role is Role.INIT:
                    free = with_sidecars.copy()
                parts = free.parts_for(request, pod_request.rules, pod_request.policy or policy)
                if parts is None:
                    return None
                chosen[at] = parts
                free.take({p.device: HeldShare(1, p.memory, p.cores) for p in parts})
        return tuple(chosen)

    def _part(self, at: int, request: DeviceShareRequest) -> DevicePart:
        device = self.devices[at]
        return DevicePart(device.id, request.memory_of(device.memory), request.cores)

    def parts_for(
        self, request: DeviceShareRequest, rules: DeviceRules, policy: str
    ) -> tuple[DevicePart, ...] | None:
        """The parts of devices that one container gets; None if there are not enough."""
        fitting = [at for at in range(len(self.devices)) if self._fits(at, request, rules)]
        sign = 1 if policy == BINPACK else -1
        fitting.sort(key=lambda at: (sign * self.memory[at], at))
        groups = [fitting]
        if rules.is_in_one_zone:
            zones = sorted({self.devices[at].numa for at in fitting})
            groups = [[at for at in fitting if self.devices[at].numa == zone] for zone in zones]
        for group in groups:
            if len(group) >= request.number:
                return tuple([self._part(at, request) for at in group[: request.number]])
        return None

    def _fits(self, at: int, request: DeviceShareRequest, rules: DeviceRules) -> bool:
        """A request for all cores requires an unused device; a device whose cores are all taken is
        full, even for requests of no cores.
        """
        device, cores = self.devices[at], self.cores[at]
        is_used = self.slots[at] < device.slots
        if not device.is_healthy or self.slots[at] < 1 or not rules.allow(device):
            return False
        if is_used and (rules.is_alone or request.cores >= WHOLE == device.cores):
            return False
        if device.cores and (request.cores > cores or not cores):
            return False
        device_requests = request.memory_of(device.memory)
        return device_requests <= self.memory[at]


def _take_in_order(free: list[int], order: Sequence[int], amount: int) -> None:
    """Subtract an amount from devices, one after the other, down to zero."""
    for at in order:
        taken = min(free[at], amount)
        free[at] -= taken
        amount -= taken
