"""A machine that makes room for groups, driven by hand: what is shown to it, and all it said."""

from typing import Any

from asched.core.cluster.facts import Done, Gone, Seen
from asched.core.framework.effects import (
    Bind,
    DeletePod,
    Effect,
    EmitEvent,
    MarkVictim,
    Patch,
    PatchPodStatus,
)
from asched.core.model.kinds import POD, POD_GROUP
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play
from tests.unit.core.preemption.group_stage import a_group

GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}


def cpus(name: str, count: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(count), memory="8Gi", pods="32")


def low(name: str, node: str = "n1", cpu: str = "1", priority: int = 10) -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).priority(priority).on(node)


def member(name: str, group: str = "crew", cpu: str = "1", priority: int = 100) -> PodBuilder:
    pod = a_pod(name).requests(cpu=cpu).priority(priority)
    return pod.spec(schedulingGroup={"podGroupName": group})


class Stage:
    """A machine, and everything it has said since the last look."""

    def __init__(self, *nodes: NodeBuilder, **config: Any) -> None:
        gates = {**GATES, **config.pop("gates", {})}
        self.play = Play(*nodes, gates=gates, **config)
        self.play.machine.context.gang_search_steps = 0
        self.said: list[Effect] = []
        self._asked: list[Any] = []
        self.shown: dict[str, PodBuilder] = {}

    def go(self, *facts: Any, after_s: float = 0.0) -> list[Effect]:
        effects = list(self.play.turn(*facts, after_s=after_s))
        while self.play.machine.next_deadline_s() == 0.0:
            effects += self.play.turn()
        self.said += effects
        self._asked += [e for e in effects if isinstance(e, (MarkVictim, DeletePod))]
        return effects

    def show(self, *pods: PodBuilder) -> list[Effect]:
        self.shown.update({pod.json["metadata"]["name"]: pod for pod in pods})
        return self.go(*(Seen(POD, pod.build()) for pod in pods))

    def group(self, name: str = "crew", **spec: Any) -> list[Effect]:
        return self.go(Seen(POD_GROUP, a_group(name, **spec)))

    def crew(self, *names: str, priority: int = 100, **spec: Any) -> None:
        """Pods that wait for their group, which then comes."""
        self.show(*(member(name) for name in names))
        self.said.clear()
        self.group(priority=priority, **spec)

    def evict(self, *, leave: bool = True) -> list[str]:
        """Carry the evictions out; who was deleted. `leave`: they are gone at once."""
        gone = []
        while asked := self._asked:
            self._asked = []
            gone += [e.pod.name for e in asked if isinstance(e, DeletePod)]
            self.go(*(Done(e.id) for e in asked))
        for name in gone if leave else ():
            self.lose(name)
        return gone

    def lose(self, name: str) -> list[Effect]:
        return self.go(Gone(POD, self.shown[name].build()))

    def of(self, kind: Any) -> list[Any]:
        return [effect for effect in self.said if isinstance(effect, kind)]

    def bound(self) -> set[str]:
        return {bind.pod.name for bind in self.of(Bind)}

    def notes(self, reason: str = "FailedScheduling") -> dict[str, str]:
        return {e.regarding.name: e.note for e in self.of(EmitEvent) if e.reason == reason}

    def condition(self) -> str:
        """What the group was told last."""
        told = [patch for patch in self.of(Patch) if patch.kind is POD_GROUP]
        message: str = told[-1].body["status"]["conditions"][0]["message"]
        return message

    def nominated(self) -> dict[str, str]:
        found = {e.pod.name: e.nominated_node_name for e in self.of(PatchPodStatus)}
        return {name: node for name, node in found.items() if node is not None}
