"""What device plugins of one kind write to nodes, and read from pods."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import whole
from asched.hardware.sharing.devices import (
    AMOUNT_MAX,
    DevicePart,
    Parts,
    Role,
    SharedDevice,
    SharingRequest,
)

#: After this time a device plugin, or a lock, counts as dead; as in HAMi and Volcano.
GIVEN_UP_S: Final = 300.0

# Common to HAMi's plugin and Volcano's, which is derived from it.
USE_MODEL, NO_MODEL = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
#: Name of the devices for plugin and scheduler.
KIND: Final = "NVIDIA"
HAMI_CORE: Final = "hami-core"
TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})


class PodRecord(NamedTuple):
    """Annotations and labels written to a pod before it is bound."""

    annotations: Mapping[str, str]
    labels: Mapping[str, str] = {}


class Convention(ABC):
    """One kind of device plugin. Invalid amounts count as absent."""

    #: Annotations of a pod that affect its request.
    reads: ClassVar[tuple[str, ...]] = ()
    #: Annotations set by `written`: removed if the pod is not bound.
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
    def written(self, pod: Pod, node: Node, parts: Parts, now_s: float) -> PodRecord: ...


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


def annotated_parts(
    pod: Pod, node: str, request_of: SharingRequest, node_key: str, parts_key: str
) -> Parts | None:
    """The devices of a pod on a node, according to these two annotations."""
    annotations = annotations_of(pod)
    if parts_key not in annotations or annotations.get(node_key) != node:
        return None
    return decoded(annotations[parts_key], len(request_of.roles))


def encoded(container: Sequence[DevicePart], kind: str) -> str:
    """`ID,KIND,MEMORY,CORES:` for each part, as HAMi and Volcano write it."""
    return "".join(f"{part.device},{kind},{part.memory},{part.cores}:" for part in container)


def decoded(text: str, places: int) -> Parts | None:
    """The inverse, for places joined by `;`; None if it is invalid."""
    found = []
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
        found.append(tuple(parts))
    return tuple(found) + ((),) * (places - len(found))
