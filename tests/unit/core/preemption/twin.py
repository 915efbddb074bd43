"""The rules of preemption again, for pods that need room alone: node by node, in plain Python."""

from collections.abc import Iterable

from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.pod import Pod
from asched.core.model.quantity import milli, whole
from asched.core.model.requests import pod_requests
from tests.unit.core.preemption.stage import Stage

Found = dict[str, tuple[list[str], int]]


def candidates(stage: Stage, pod: Pod, nodes: Iterable[str]) -> Found:
    """Node to (victims, the most important one first; violated budgets)."""
    found = {}
    for name in nodes:
        row = stage.cluster.nodes.row_of[name]
        running = [info.pod for info in stage.cluster.pods_on(row).values()]
        result = _victims(stage, pod, name, running)
        if result is not None:
            found[name] = result
    return found


def best(found: Found, stage: Stage) -> set[str]:
    """The nodes that may be chosen."""
    by_key = {info.pod.key: info.pod for info in stage.cluster.placed.values()}

    def cost(name: str) -> tuple[int, int, int, int, float]:
        keys, violations = found[name]
        pods = [by_key[key] for key in keys]
        top = max(pod.priority for pod in pods)
        oldest = min(_start(pod) for pod in pods if pod.priority == top)
        total = sum(pod.priority + 2**31 for pod in pods)
        return violations, top, total, len(pods), -_age(oldest)

    lowest = min((cost(name) for name in found), default=None)
    return {name for name in found if cost(name) == lowest}


def _victims(stage: Stage, pod: Pod, name: str, running: list[Pod]) -> tuple[list[str], int] | None:
    lower = [other for other in running if other.priority < pod.priority]
    staying = [other for other in running if other.priority >= pod.priority]
    if not lower or not _fits(stage, pod, name, staying):
        return None
    lower.sort(key=lambda other: (-other.priority, _start(other), other.uid))
    violating = _violating(stage, lower)
    victims = []
    for other in [*violating, *(o for o in lower if o not in violating)]:
        if _fits(stage, pod, name, [*staying, other]):
            staying.append(other)
        else:
            victims.append(other)
    ordered = [other.key for other in lower if other in victims]
    return ordered, sum(victim in violating for victim in victims)


def _fits(stage: Stage, pod: Pod, name: str, pods: list[Pod]) -> bool:
    """Beside these, and beside those that wait for the node."""
    nominated_amounts = [
        other
        for other in stage.nominator.on(name).values()
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
    return _has_room(stage, name, [*pods, pod]) and _has_room(
        stage, name, [*pods, *nominated_amounts, pod]
    )


def _has_room(stage: Stage, name: str, pods: list[Pod]) -> bool:
    node = stage.cluster.node_of(name)
    assert node is not None
    offered = node.status.allocatable or {}
    wanted = [pod_requests(pod) for pod in pods]
    return (
        len(pods) <= whole(offered["pods"])
        and sum(amounts.get("cpu", 0) for amounts in wanted) <= milli(offered["cpu"])
        and sum(amounts.get("memory", 0) for amounts in wanted) <= whole(offered["memory"])
    )


def _violating(stage: Stage, lower: list[Pod]) -> list[Pod]:
    left = {}
    found = []
    for pod in lower:
        violates = False
        for key, budget in stage.cluster.all(POD_DISRUPTION_BUDGET).items():
            wanted = budget.spec.selector.match_labels
            speaks = budget.metadata.namespace == pod.metadata.namespace and all(
                pod.labels.get(label) == value for label, value in wanted.items()
            )
            if speaks and pod.metadata.name not in (budget.status.disrupted_pods or {}):
                left[key] = left.get(key, budget.status.disruptions_allowed) - 1
                violates |= left[key] < 0
        if violates:
            found.append(pod)
    return found


def _start(pod: Pod) -> str:
    return pod.status.start_time or "9999"


def _age(start: str) -> float:
    return float("".join(filter(str.isdigit, start)))
