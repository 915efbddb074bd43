"""Twin of the sums of requests: fractions of units, added up container by container."""

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import parse

#: Resources with room of their own; others count if their name has a domain or is special.
FIXED = ("cpu", "memory", "ephemeral-storage")


def requested(pod: Pod, *, pod_level: bool = True) -> dict[str, int]:
    """Milli-CPU, bytes and devices; names that nobody counts are left out."""
    found = {name: amount(pod, name, pod_level=pod_level) for name in _names(pod) if counts(name)}
    return {name: value for name, value in found.items() if value}


def _names(pod: Pod) -> set[str]:
    """Everything that is named somewhere, with whatever amount."""
    found = set(pod.spec.overhead or {})
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        found |= set(container.resources.requests or {})
    return found | set((pod.spec.resources.requests if pod.spec.resources else None) or {})


def scored(pod: Pod, name: str, *, pod_level: bool) -> int:
    """Cpu or memory with 100m and 200Mi for each container that does not name it."""
    default = "100m" if name == "cpu" else "200Mi"
    whole = pod.spec.resources.requests if pod_level and pod.spec.resources else None
    if whole and name in _names(pod):
        return amount(pod, name, pod_level=True)
    return amount(pod, name, pod_level=pod_level, default=default)


def amount(pod: Pod, name: str, *, pod_level: bool, default: str = "0") -> int:
    def of(container: Container) -> Fraction:
        return parse((container.resources.requests or {}).get(name, default))

    total = sum((of(c) for c in pod.spec.containers or ()), Fraction(0))
    sidecars = peak = Fraction(0)
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            total += of(container)
            sidecars += of(container)
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + of(container))
    total = max(total, peak)
    whole = (pod.spec.resources.requests if pod.spec.resources else None) or {}
    if pod_level and name in whole and (name in FIXED[:2] or name.startswith("hugepages-")):
        total = parse(whole[name])
    total += parse((pod.spec.overhead or {}).get(name, 0))
    return ceil(total * 1000) if name == "cpu" else ceil(total)


def counts(name: str) -> bool:
    return name in FIXED or "/" in name or name.startswith("hugepages-")


def held(pods: Iterable[Pod], name: str) -> int:
    """What pods on a node hold of a resource."""
    return sum(amount(pod, name, pod_level=True) for pod in pods)
