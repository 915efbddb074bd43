"""Pods that leave while other pods wait for their room."""

from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.dry_runs import DryRuns
from asched.core.model.kinds import (
    POD,
)
from asched.core.queue.queued import QueuedPod
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play


class Scene:
    """No pod is tried; dry runs alone."""

    def __init__(self, *nodes: NodeBuilder, plugins: Any = ()) -> None:
        self.play = Play(*(nodes or (a_node("n1").allocatable(cpu="2"),)), plugins=plugins)
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.dry_runs = DryRuns()
        self.dry_runs.of(self.context)

    def dry_run(self, pod: PodBuilder, **fields: Any) -> Any:
        """(rejectors, whether of the class), or None."""
        built = pod.spec(schedulerName="default-scheduler").build()
        self.cluster.apply(Seen(POD, built))
        queued = QueuedPod(built, 0.0)
        for name, value in fields.items():
            setattr(queued, name, value)
        found = self.dry_runs(queued)
        return None if found is None else (set(found.rejectors), found.is_of_class)

    def place(self, name: str, node: str = "n1", cpu: str = "2") -> None:
        self.cluster.apply(Seen(POD, a_pod(name).requests(cpu=cpu).priority(50).on(node).build()))


def wants(cpu: str = "2", name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu)


class Leaving(Scene):
    """Pods leave nodes, and pods that wait are asked whether that may help them."""

    def rests(self, pod: PodBuilder, *rejectors: str, **fields: Any) -> QueuedPod:
        built = pod.spec(schedulerName="default-scheduler").build()
        self.cluster.apply(Seen(POD, built))
        queued = QueuedPod(built, 0.0)
        queued.rejected_by = frozenset(rejectors or ("NodeResourcesFit",))
        queued.class_key = self.cluster.classes.class_of(built).key
        for name, value in fields.items():
            setattr(queued, name, value)
        return queued

    def may_help(self, pod: PodBuilder, node: str, *rejectors: str, **fields: Any) -> bool:
        return self.dry_runs.may_help(self.rests(pod, *rejectors, **fields), node)

    def leaves(self, name: str, node: str) -> None:
        self.cluster.apply(Gone(POD, a_pod(name).on(node).build()))
