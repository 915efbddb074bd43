"""What HAMi's device plugin and Volcano's, which is derived from it, have in common."""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from asched.core.model.pod import Pod
from asched.hardware.sharing.conventions import Convention, annotations_of, number
from asched.hardware.sharing.devices import POLICIES, DevicePart, Parts, SharingRequest

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


def check_policy(name: str, value: str) -> None:
    if value not in POLICIES:
        raise ValueError(f'{name} "{value}" is none of {", ".join(POLICIES)}')
