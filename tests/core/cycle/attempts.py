"""Attempts at groups made by hand: pods that wait, on a machine that tries nobody by itself."""

from collections.abc import Generator
from typing import Any

from asched.batch.groups.attempt import GroupAttempt
from asched.core.cycle.context import Attempt
from asched.core.framework.effects import Pause
from asched.core.framework.points import Plugin
from asched.core.model.kinds import POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Seen
from tests.builders import NodeBuilder, PodBuilder
from tests.core.cycle.gang_plays import a_member, seen_group
from tests.core.cycle.playbook import Play

KEY = "default/crew"


class GroupScene:
    """Nodes, pods that are placed, and a group whose pods have been taken from the queue."""

    def __init__(
        self,
        *nodes: NodeBuilder,
        placed: tuple[PodBuilder, ...] = (),
        minimum: int | None = None,
        plugins: tuple[type[Plugin], ...] = (),
    ) -> None:
        enabled = [{"name": name} for name in ("GangScheduling", *(one.name for one in plugins))]
        profile = {"schedulerName": "default-scheduler"}
        profiles = [{**profile, "plugins": {"multiPoint": {"enabled": enabled}}}]
        self.play = Play(*nodes, plugins=plugins, profiles=profiles)
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.play.turn(*(Seen(POD, pod.build()) for pod in placed))
        if minimum is not None:
            seen_group(self.play, minimum)

    def attempt(self, pod: PodBuilder, number: int = 1) -> Attempt:
        built = pod.spec(schedulerName="default-scheduler").build()
        self.play.turn(Seen(POD, built))
        info = self.cluster.classes.info_of(built)
        runner = self.context.runners["default-scheduler"]
        return Attempt(number, QueuedPod(built, 0.0), info, runner, 0.0)

    def group(self, *pods: PodBuilder) -> GroupAttempt:
        attempts = [self.attempt(pod, number) for number, pod in enumerate(pods, 1)]
        return GroupAttempt(KEY, attempts, 1, attempts[0].pod, 0.0)

    def row(self, name: str) -> int:
        return self.cluster.nodes.row_of[name]


def members(count: int, cpu: str = "1", prefix: str = "p") -> list[PodBuilder]:
    return [a_member(f"{prefix}{number}", cpu=cpu) for number in range(count)]


def run(steps: Generator[Any, Any, Any]) -> Any:
    """What steps come to that ask nobody outside; they may pause."""
    try:
        while True:
            effect = next(steps)
            assert isinstance(effect, Pause), effect
    except StopIteration as end:
        return end.value
