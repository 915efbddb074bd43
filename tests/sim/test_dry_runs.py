"""A look at a waiting pod or gang says no only where an attempt without memory came to nothing."""

import random
from collections.abc import Mapping

import pytest

from asched.core.cluster.facts import Bound, Fact, Gone, Seen
from asched.core.framework.effects import Bind
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import NoNodesError, Runner, run_alone
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.host.assemble import build_runners
from tests.builders import PodBuilder, a_node
from tests.playbook import GANGS, Play, a_group, a_member
from tests.sim.labelled import Labelled

STEPS = 60


class Judged(Labelled):
    """After each step, every pod at rest is looked at, and tried without any memory."""

    def judge(self) -> tuple[int, int]:
        """(looks that said no, looks that did not)."""
        context = self.machine.context
        dry_runner = context.queue.due_filter._dry_runner
        assert dry_runner is not None
        fresh = build_runners(self._effective, self.parts)
        said = [0, 0]
        for queued in list(context.queue.places.unschedulable):
            if queued.is_gated or queued.stands_apart:
                continue
            verdict = dry_runner(queued)
            said[verdict is None] += 1
            if verdict is not None:
                rejection = self.tried(queued.pod, fresh)
                assert rejection is not None, f"{queued} fits"
                assert rejection.unschedulable_plugins == verdict.rejectors, queued
        return said[0], said[1]

    def tried(self, pod: Pod, runners: Mapping[str, Runner]) -> Rejection | None:
        """Its rejection, where nobody makes room."""
        runner = runners[pod.spec.scheduler_name]
        info = self.parts.cluster.classes.info_of(pod)
        try:
            found = run_alone(runner.schedule(info, 0))
        except NoNodesError:
            return None
        if not isinstance(found, Rejection):
            return None
        waiting = self.parts.cluster.singleton(WaitingPods.of)
        trial = runner.trial(runner.cache.state_of(info), waiting, 0, self.now_s)
        result = run_alone(runner.post_filter(info, found, trial))
        assert not result.nomination.node, f"{pod.key} would make room on {result.nomination.node}"
        assert result.background is None, f"{pod.key} would make room"
        return found


@pytest.mark.parametrize("seed", [0, 3])
def test_a_look_says_of_a_pod_what_an_attempt_would(seed: int) -> None:
    world = Judged(seed)
    told = [0, 0]
    for _ in range(STEPS):
        chosen = world.rng.choice((None, Labelled.add_pod, Labelled.drop_pod))
        if chosen is None:
            world.change()
        else:
            chosen(world)
        told = [a + b for a, b in zip(told, world.judge(), strict=True)]
        world.now_s += world.rng.choice((0.0, 3.0))
        world.turn()
    assert told[0] > 20, "pods are looked at"


class Crews:
    """Gangs of several sizes on a few nodes; running pods go one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes = {
            name: a_node(name).allocatable(
                cpu=str(self.rng.randint(1, 6)), memory="8Gi", pods=str(self.rng.randint(2, 9))
            )
            for name in ("n1", "n2", "n3")
        }
        self.play = Play(*self.nodes.values(), **GANGS)
        self.groups: dict[str, int] = {}
        self.pods: dict[str, tuple[str, PodBuilder]] = {}
        self.placed: dict[str, str] = {}

    def come(self) -> None:
        group = f"g{len(self.groups)}"
        size = self.rng.randint(1, 5)
        self.groups[group] = self.rng.randint(1, size)
        self.turn(Seen(POD_GROUP, a_group(group, self.groups[group])))
        alike = self.rng.random() < 0.5
        amount = self.rng.randint(3, 15)
        for number in range(size):
            name = f"{group}-{number}"
            amount = amount if alike else self.rng.randint(3, 15)
            pod = a_member(name, group, f"{amount}00m").labels(group=group, index=name)
            priority = self.rng.choice((0, 0, 0, 5))
            self.pods[name] = group, pod.spec(priority=priority, preemptionPolicy="Never")
            self.turn(Seen(POD, self.pods[name][1].build()))

    def go(self) -> None:
        if self.placed:
            name = self.rng.choice(sorted(self.placed))
            node = self.placed.pop(name)
            _, pod = self.pods.pop(name)
            self.turn(Gone(POD, pod.on(node).build()))

    def turn(self, *facts: Fact, after_s: float = 0.0) -> None:
        """With all answers, until nothing is left to do at once."""
        self.play.turn(*facts, after_s=after_s)
        while True:
            answers: list[Fact] = []
            for effect in self.play.effects:
                if isinstance(effect, Bind):
                    name = effect.pod.name
                    self.placed[name] = effect.node
                    answers.append(Bound(effect.id))
                    answers.append(Seen(POD, self.pods[name][1].on(self.placed[name]).build()))
            if not answers and self.play.machine.next_deadline_s() != 0.0:
                return
            self.play.turn(*answers)

    def fits(self, group: str) -> bool:
        """Whether a scheduler that knows nothing but this gang and the nodes binds any of it."""
        play = Play(*self.nodes.values(), **GANGS)
        play.turn(Seen(POD_GROUP, a_group(group, self.groups[group])))
        members = {name: pod for name, (of, pod) in self.pods.items() if of == group}
        placed = [
            Seen(POD, pod.on(self.placed[name]).build())
            for name, (_, pod) in self.pods.items()
            if name in self.placed
        ]
        play.turn(*placed)
        waits = [Seen(POD, pod.build()) for name, pod in members.items() if name not in self.placed]
        play.turn(*waits)
        while play.machine.next_deadline_s() == 0.0:
            play.turn()
        return any(play.node_of(one.obj.metadata.uid) for one in waits)

    def waiting_groups(self) -> set[str]:
        return {of for name, (of, _) in self.pods.items() if name not in self.placed}


@pytest.mark.parametrize("seed", range(3))
def test_no_gang_sleeps_although_it_would_fit(seed: int) -> None:
    crews = Crews(seed)
    for step in range(40):
        crews.rng.choice((crews.come, crews.go, crews.go))()
        for _ in range(12):
            crews.turn(after_s=1.0)
        for group in sorted(crews.waiting_groups()):
            assert not crews.fits(group), f"seed {seed}, step {step}: {group} sleeps"
    assert len(crews.groups) > 5
