"""Extended resources that device classes stand for: which class, and which devices a pod requests.

A class names one with `spec.extendedResourceName`; besides, every class stands for
`deviceclass.resource.kubernetes.io/<its name>`. A pod's containers are turned into requests of one
claim; an init container that ends before others start uses their devices first.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extended
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from asched.core.model.claim import (
    ALLOCATION_RESULTS_MAX,
    EXACT_COUNT,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
)
from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import whole
from asched.core.model.requests import is_extended

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


class RequestMapping(NamedTuple):
    """The request of the claim that serves a container's resource."""

    container: str
    resource: str
    request: str


class ExtendedRequests(NamedTuple):
    """The requests of one claim for a pod's extended resources, by name."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[RequestMapping, ...]


def is_delegable(resource: str) -> bool:
    """Whether a device class may stand for a resource of this name."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended(resource)


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Resource name -> class that stands for it: of several the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for device_class in classes:
        found[IMPLICIT_PREFIX + device_class.metadata.name] = device_class
    oldest_first = sorted(
        classes,
        key=lambda c: (c.metadata.creation_timestamp or "", _Reversed(c.metadata.name)),
    )
    for device_class in oldest_first:
        if device_class.spec.extended_resource_name:
            found[device_class.spec.extended_resource_name] = device_class
    return found


class _Reversed(str):
    """A name with reversed order, so that the first by name wins with `max`."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str(self) > str(other)


class _ExtendedNeed:
    """One container's need of one resource: its request, unless earlier ones cover it."""

    def __init__(self, name: str, count: int, device_class: str) -> None:
        self.name = name
        self.count = count
        self.request = DeviceRequest(
            name=name,
            exactly=ExactDeviceRequest(
                device_class_name=device_class, allocation_mode=EXACT_COUNT, count=count
            ),
        )


def device_requests(pod: Pod, resources: Mapping[str, DeviceClass]) -> ExtendedRequests:
    """Requests and mappings for the pod's resources that devices serve."""
    inits = pod.spec.init_containers or ()
    containers = (*inits, *(pod.spec.containers or ()))
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        found = _for_resource(containers, len(inits), resource, resources[resource].metadata.name)
        requests += found.requests
        mappings += found.mappings
    return ExtendedRequests(tuple(sorted(requests, key=lambda r: r.name)), tuple(mappings))


def _for_resource(
    containers: tuple[Container, ...], init_count: int, resource: str, device_class: str
) -> ExtendedRequests:
    lasting: dict[int, _ExtendedNeed] = {}
    mappings: list[RequestMapping] = []
    passing: list[int] = []
    for index, container in enumerate(containers):
        if index < init_count and container.restart_policy != "Always":
            passing.append(index)
            continue
        asked = _need(index, container, resource, device_class, (), 0, mappings)
        if asked is not None:
            lasting[index] = asked
    largest: _ExtendedNeed | None = None
    replaced: set[str] = set()
    later: list[RequestMapping] = []
    ahead = deque(lasting)
    usable = deque(lasting.values())
    offered = sum(asked.count for asked in usable)
    for index in passing:
        while ahead and ahead[0] < index:
            ahead.popleft()
            offered -= usable.popleft().count
        asked = _need(index, containers[index], resource, device_class, usable, offered, later)
        if asked is not None:
            replaced.add(asked.name)
            if largest is None or largest.count < asked.count:
                largest = asked
    if largest is not None:
        # They run one after the other: the largest request serves all of them.
        later = [m._replace(request=largest.name) if m.request in replaced else m for m in later]
    chosen = ([largest] if largest is not None else []) + list(lasting.values())
    return ExtendedRequests(tuple(asked.request for asked in chosen), (*mappings, *later))


def _need(
    index: int,
    container: Container,
    resource: str,
    device_class: str,
    usable: Collection[_ExtendedNeed],
    offered: int,
    mappings: list[RequestMapping],
) -> _ExtendedNeed | None:
    """What a container needs beyond the `offered` devices of earlier containers; records what
    serves it.

    A claim of more than ALLOCATION_RESULTS_MAX requests is never allocated, so that the mappings
    beyond that number are not needed.
    """
    amounts = container.resources.requests or {}
    wanted = whole(amounts[resource]) if resource in amounts else 0
    if not wanted:
        return None
    covered = 0
    for other in islice(usable, ALLOCATION_RESULTS_MAX):
        covered += other.count
        mappings.append(RequestMapping(container.name, resource, other.name))
        if covered >= wanted:
            return None
    if offered >= wanted:
        return None
    name = f"container-{index}-request-{sorted(amounts).index(resource)}"
    mappings.append(RequestMapping(container.name, resource, name))
    return _ExtendedNeed(name, wanted - offered, device_class)
