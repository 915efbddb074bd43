"""The interface of a convention: what device plugins of one kind write and read."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import whole
from asched.hardware.sharing.devices import AMOUNT_MAX, Parts, Role, SharedDevice, SharingRequest

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
