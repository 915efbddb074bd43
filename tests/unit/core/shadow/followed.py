"""Decisions of another scheduler that a shadow follows."""

from collections.abc import Iterable
from typing import Any

from asched.core.framework.points import FilterPlugin
from asched.insight.shadow.finding import FindingTally
from asched.insight.shadow.following import Shadow
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play

NAME = "default-scheduler"


class Looking:
    """A machine that is never active, and what its shadow found."""

    def __init__(self, *nodes: NodeBuilder, **config: Any) -> None:
        self.play = Play(*nodes, **config)
        self.play.machine.is_active = False
        self.tally = FindingTally()
        self.shadow = Shadow(self.play.machine.context, self.tally)
        self.play.machine.context.shadow = self.shadow

    def waits(self, *pods: PodBuilder) -> None:
        for pod in pods:
            self.play.see(pod)
            assert self.play.effects == []

    def binds(self, pod: PodBuilder, node: str) -> None:
        self.play.see(pod.build().on(node))
        assert self.play.effects == []

    def refuses(self, pod: PodBuilder, message: str, nominated: str = "") -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod.status(conditions=[{**condition, "message": message}]).metadata(resourceVersion="2")
        if nominated:
            pod.status(nominatedNodeName=nominated)
        self.waits(pod)

    def later(self, after_s: float) -> None:
        self.play.turn(after_s=after_s)
        while self.shadow.look_again(self.play.now_s):
            pass

    def found(self, verdict: str = "placed") -> dict[str, int]:
        profiles = self.tally.as_json()["profiles"]
        found: dict[str, int] = profiles.get(NAME, {}).get(verdict, {}).get("outcomes", {})
        return found

    def example(self) -> dict[str, Any]:
        (only,) = self.tally.as_json()["examples"]
        found: dict[str, Any] = only
        return found


def equal(*names: str, cpu: str = "4", pods: str = "110") -> Iterable[NodeBuilder]:
    return [a_node(name).allocatable(cpu=cpu, memory="8Gi", pods=pods) for name in names]


def small(name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu="1", memory="1Gi")


PACKS = {
    "schedulerName": NAME,
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                }
            },
        }
    ],
}


def of_size(name: str, size: int) -> PodBuilder:
    return a_pod(name).requests(cpu=str(size), memory=f"{2 * size}Gi")


REFUSED = "0/1 nodes are available: 1 Insufficient cpu."


IN_VAIN = (
    " no new claims to deallocate, preemption: 0/1 nodes are available:"
    " 1 Preemption is not helpful for scheduling."
)


class Broken(FilterPlugin):
    name = "Broken"

    def filter(self, *_: Any) -> Any:
        raise ValueError("no idea")

    def explain(self, *_: Any) -> Any:
        raise ValueError("no idea")
