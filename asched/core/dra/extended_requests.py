"""Extended resources that device classes stand for: which class, and which devices a pod requests.

A class names one with `spec.extendedResourceName`; besides, every class stands for
`deviceclass.resource.kubernetes.io/<its name>`. A pod's containers are turned into requests of
one claim; an init container that ends before others start uses their devices first.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extended
"""

from collections import deque
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import msgspec

from asched.core.dra.ledger import IMPLICIT_PREFIX
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


class RequestMapping(NamedTuple):
    """The request of the claim that serves a container's resource."""

    container: str
    resource: str
    request: str


class ExtendedRequests(NamedTuple):
    """The requests of one claim for a pod's extended resources, by name."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[RequestMapping, ...]


@lru_cache(maxsize=4096)
def is_delegable(resource: str) -> bool:
    """Whether a device class may stand for a resource of this name."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended(resource)


class _ExtendedNeed(msgspec.Struct, frozen=True):
    """One container's need of one resource: its request, unless earlier ones cover it."""

    name: str
    count: int


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
        needed = _need(index, container, resource, (), 0, mappings)
        if needed is not None:
            lasting[index] = needed
    largest: _ExtendedNeed | None = None
    replaced: set[str] = set()
    later: list[RequestMapping] = []
    usable = deque(lasting.items())
    offered = sum(needed.count for needed in lasting.values())
    for index in passing:
        while usable and usable[0][0] < index:
            offered -= usable.popleft()[1].count
        needed = _need(index, containers[index], resource, usable, offered, later)
        if needed is not None:
            replaced.add(needed.name)
            if largest is None or largest.count < needed.count:
                largest = needed
    if largest is not None:
        # They run one after the other: the largest request serves all of them.
        later = [m._replace(request=largest.name) if m.request in replaced else m for m in later]
    chosen = ([largest] if largest is not None else []) + list(lasting.values())
    requests = (
        DeviceRequest(
            name=need.name,
            exactly=ExactDeviceRequest(device_class, allocation_mode=EXACT_COUNT, count=need.count),
        )
        for need in chosen
    )
    return ExtendedRequests(tuple(requests), (*mappings, *later))


def _need(
    index: int,
    container: Container,
    resource: str,
    usable: Collection[tuple[int, _ExtendedNeed]],
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
    for _, other in islice(usable, ALLOCATION_RESULTS_MAX):
        covered += other.count
        mappings.append(RequestMapping(container.name, resource, other.name))
        if covered >= wanted:
            return None
    if offered >= wanted:
        return None
    name = f"container-{index}-request-{sorted(amounts).index(resource)}"
    mappings.append(RequestMapping(container.name, resource, name))
    return _ExtendedNeed(name, wanted - offered)
