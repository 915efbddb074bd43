"""Twin of NodeResourcesBalancedAllocation."""

from math import sqrt

from asched.core.config.args import NodeResourcesBalancedAllocationArgs
from asched.core.model.pod import Pod
from tests.conformance.twins import pod_requests
from tests.conformance.twins.node_resources_fit import offered
from tests.conformance.twins.picture import Picture, Place


def raw_score(
    pod: Pod, place: Place, picture: Picture, args: NodeResourcesBalancedAllocationArgs | None
) -> int | None:
    resources = (args or NodeResourcesBalancedAllocationArgs()).resources
    wanted = pod_requests.requested(pod)
    if not any(wanted.get(resource.name) for resource in resources):
        return None
    with_pod, without = [], []
    for resource in resources:
        name = resource.name
        total, own = offered(place.node, name), wanted.get(name, 0)
        if not total or (not own and name not in pod_requests.FIXED):
            continue
        used = pod_requests.held(place.pods, name)
        with_pod.append(min(1.0, (used + own) / total))
        without.append(min(1.0, used / total))
    return 50 + (50 + _balance(with_pod) - _balance(without)) // 2


def _balance(fractions: list[float]) -> int:
    if len(fractions) < 2:
        return 100
    if len(fractions) == 2:
        return int((1 - abs(fractions[0] - fractions[1]) / 2) * 100)
    mean = _sum(fractions) / len(fractions)
    deviation = sqrt(_sum([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - deviation) * 100)


def _sum(numbers: list[float]) -> float:
    """One after the other; Python's own sum of floats is more exact than upstream's."""
    total = 0.0
    for number in numbers:
        total += number
    return total
