"""Limits of a pod: the sum of its containers' limits, or more while it starts.

Like requests (`requests.py`), with one exception: overhead is added only to limited resources,
because an unlimited resource stays unlimited. A limit of zero is no limit.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go
        (PodLimits)
"""

from collections.abc import Mapping

from asched.core.model.pod import Pod, ResourceRequirements
from asched.core.model.requests import nano


def exact_limits(pod: Pod) -> dict[str, int]:
    """Limits in billionths of a unit."""
    spec = pod.spec
    total: dict[str, int] = {}
    for container in spec.containers or ():
        _add(total, _limits(container.resources))
    sidecars: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for container in spec.init_containers or ():
        wanted = _limits(container.resources)
        if container.restart_policy == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            _add(wanted, sidecars)
        for name, limit in wanted.items():
            peaks[name] = max(peaks.get(name, 0), limit)
    for name, limit in peaks.items():
        total[name] = max(total.get(name, 0), limit)
    total.update(_limits(spec.resources))
    for name, amount in (spec.overhead or {}).items():
        if total.get(name):
            total[name] += nano(amount)
    return total


def _limits(resources: ResourceRequirements | None) -> dict[str, int]:
    if resources is None or not resources.limits:
        return {}
    return {name: nano(amount) for name, amount in resources.limits.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
