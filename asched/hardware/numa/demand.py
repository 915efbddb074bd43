"""Requests of pods against NUMA zones, by container, and which pods own resources exclusively.

Source  kubernetes/kubernetes v1.36 pkg/apis/core/v1/helper/qos; kubernetes-sigs/scheduler-plugins
        pkg/util/resource.go, pkg/noderesourcetopology/resourcerequests/exclusive.go
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import Quantity
from asched.core.model.requests import nano
from asched.hardware.numa.topology import CPU, units

MEMORY: Final = "memory"
Request = Mapping[str, int]
#: A guess: pods have three or four, and each is compared with every zone in one go.
CONTAINERS_MAX: Final = 32


class QoS(Enum):
    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True)
class NumaDemand:
    """Requests of one pod: `whole` together, `inits` and `containers` one by one; milli-CPU, bytes,
    devices. Explicit zeros are kept.
    """

    qos: QoS
    whole: Request
    inits: tuple[Request, ...]
    containers: tuple[Request, ...]
    has_non_native: bool

    @property
    def is_guaranteed(self) -> bool:
        return self.qos is QoS.GUARANTEED

    @property
    def is_indifferent(self) -> bool:
        """Whether topology managers ignore the pod."""
        return self.qos is QoS.BEST_EFFORT and not self.has_non_native

    @property
    def is_beyond(self) -> bool:
        """Whether it has more containers than are compared one by one."""
        return len(self.inits) + len(self.containers) > CONTAINERS_MAX

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for pods with the same result."""
        each = (self.whole, *self.inits, *self.containers)
        return (self.qos, len(self.inits), *(tuple(sorted(request.items())) for request in each))


def demand_of(pod: Pod) -> NumaDemand:
    spec = pod.spec
    inits = tuple(_request(container) for container in spec.init_containers or ())
    containers = tuple(_request(container) for container in spec.containers or ())
    has_non_native = any(
        not is_native(name) for request in (*inits, *containers) for name in request
    )
    whole = Counter[str]()
    for request in containers:
        whole.update(request)
    for request in inits:
        for name, amount in request.items():
            whole[name] = max(whole.get(name, amount), amount)
    whole.update({name: units(name, more) for name, more in (spec.overhead or {}).items()})
    return NumaDemand(qos_of(pod), whole, inits, containers, has_non_native)


def qos_of(pod: Pod) -> QoS:
    """The quality-of-service class, as computed by the API server."""
    spec = pod.spec
    if spec.resources is not None:
        requests, limits = _positive(spec.resources.requests), _positive(spec.resources.limits)
        is_guaranteed = limits.keys() >= {CPU, MEMORY}
    else:
        requests, limits, is_guaranteed = Counter(), Counter(), True
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            allowed = _positive(container.resources.limits)
            requests.update(_positive(container.resources.requests))
            limits.update(allowed)
            is_guaranteed &= allowed.keys() >= {CPU, MEMORY}
    if not requests and not limits:
        return QoS.BEST_EFFORT
    if is_guaranteed and requests == limits:
        return QoS.GUARANTEED
    return QoS.BURSTABLE


def owns_exclusively(pod: Pod, listed: Collection[str]) -> bool:
    """Whether a container other than a plain init container owns resources exclusively: whole
    cores, memory or devices of a guaranteed pod, or a device that zones list.
    """
    qos = qos_of(pod)
    sidecars = (c for c in pod.spec.init_containers or () if c.restart_policy == "Always")
    for container in (*sidecars, *(pod.spec.containers or ())):
        for name, amount in _request(container).items():
            if not is_native(name):
                if name in listed:
                    return True
            elif qos is QoS.GUARANTEED and amount > 0:
                if name == CPU and amount % 1000 == 0:
                    return True
                if name == MEMORY or name.startswith("hugepages-"):
                    return True
    return False


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_host_level(name: str) -> bool:
    """Resources that zones need not list."""
    return name in {"ephemeral-storage", "storage"} or not is_native(name)


def is_affine(name: str) -> bool:
    """Resources that pods which are not guaranteed get from any zone."""
    return name in {CPU, MEMORY} or name.startswith("hugepages-")


def _request(container: Container) -> Request:
    return {
        name: units(name, quantity)
        for name, quantity in (container.resources.requests or {}).items()
    }


def _positive(amounts: Mapping[str, Quantity] | None) -> Counter[str]:
    """Positive amounts of cpu and memory, in billionths."""
    return +Counter({name: nano((amounts or {}).get(name, 0)) for name in (CPU, MEMORY)})
