"""Twin of NodeResourcesFit."""

from itertools import pairwise

from asched.core.config.args import NodeResourcesFitArgs
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import milli, whole
from tests.conformance.twins import pod_requests
from tests.conformance.twins.picture import Picture, Place, Rejection

PREFIX = "deviceclass.resource.kubernetes.io/"


def reject(
    pod: Pod, place: Place, picture: Picture, args: NodeResourcesFitArgs | None
) -> Rejection | None:
    reasons = []
    resolvable = True
    if len(place.pods) + 1 > offered(place.node, "pods"):
        reasons.append("Too many pods")
    wanted = pod_requests.requested(pod)
    others = sorted(name for name in wanted if name not in pod_requests.FIXED)
    for name in (*pod_requests.FIXED, *others):
        amount, here = wanted.get(name, 0), offered(place.node, name)
        if not amount or _is_ignored(name, args) or (not here and _is_delegated(name, picture)):
            continue
        if amount > here - pod_requests.held(place.pods, name):
            reasons.append(f"Insufficient {name}")
            resolvable = resolvable and amount <= here
    return (reasons, resolvable) if reasons else None


def raw_score(
    pod: Pod, place: Place, picture: Picture, args: NodeResourcesFitArgs | None
) -> int | None:
    strategy = (args or NodeResourcesFitArgs()).scoring_strategy
    parts: list[tuple[int, int]] = []  # (points, weight)
    for resource in strategy.resources:
        name, total = resource.name, offered(place.node, resource.name)
        if name in ("cpu", "memory"):
            used = sum(pod_requests.scored(p, name, pod_level=True) for p in place.pods)
            used += pod_requests.scored(pod, name, pod_level=False)
        else:
            own = pod_requests.requested(pod, pod_level=False).get(name, 0)
            if not own and name != "ephemeral-storage":
                continue
            used = pod_requests.held(place.pods, name) + own
        if not total:
            continue
        if strategy.type == "LeastAllocated":
            points = 0 if used > total else (total - used) * 100 // total
        elif strategy.type == "MostAllocated":
            points = min(used, total) * 100 // total
        else:
            points = _on_curve(args, 100 if used > total else used * 100 // total)
            if points <= 0:
                continue
        parts.append((points, resource.weight))
    total_points = sum(points * weight for points, weight in parts)
    total_weight = sum(weight for _, weight in parts)
    if not total_weight:
        return 0
    if strategy.type == "RequestedToCapacityRatio":
        return int(total_points / total_weight + 0.5)
    return total_points // total_weight


def offered(node: Node, name: str) -> int:
    amount = (node.status.allocatable or {}).get(name, 0)
    return milli(amount) if name == "cpu" else whole(amount)


def _is_ignored(name: str, args: NodeResourcesFitArgs | None) -> bool:
    if args is None or "/" not in name or "kubernetes.io/" in name:
        return False
    return name in args.ignored_resources or name.split("/", 1)[0] in args.ignored_resource_groups


def _is_delegated(name: str, picture: Picture) -> bool:
    return any(
        name in (c.spec.extended_resource_name, PREFIX + c.metadata.name)
        for c in picture.device_classes
    )


def _on_curve(args: NodeResourcesFitArgs | None, utilization: int) -> int:
    assert args is not None
    ratio = args.scoring_strategy.requested_to_capacity_ratio
    assert ratio is not None
    corners = [(point.utilization, point.score * 10) for point in ratio.shape]
    if utilization <= corners[0][0]:
        return corners[0][1]
    for (x1, y1), (x2, y2) in pairwise(corners):
        if utilization <= x2:
            return y1 + int((y2 - y1) * (utilization - x1) / (x2 - x1))
    return corners[-1][1]
