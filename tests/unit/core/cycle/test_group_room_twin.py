"""Room for pod groups, through the machine, against its slow twin on random clusters."""

import random
from typing import Any

import pytest

from asched.core.cluster.facts import Done, Gone, Seen
from asched.core.framework.effects import Bind, DeletePod, Effect, Lane
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET, POD_GROUP
from tests.builders import PodBuilder, a_node, a_pod
from tests.conformance.twins.group_preemption import (
    Machine,
    Member,
    Running,
    Team,
    evicted,
    fits,
    line_of,
)
from tests.playbook import Play
from tests.unit.core.cycle.group_attempts import FirstRow
from tests.unit.core.preemption.group_stage import a_budget, a_group

GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
STAMP = "2026-01-01T02:00:00Z"
PORT = 8080


def a_play(**gates: bool) -> Play:
    enabled = ["GangScheduling", "FirstRow"]
    if gates.get("TopologyAwareWorkloadScheduling"):
        enabled += ["TopologyPlacementGenerator", "PodGroupPodsCount"]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": name} for name in enabled]},
            "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "FirstRow"}]},
        },
    }
    play = Play(plugins=[FirstRow], profiles=[profile], gates={**GATES, **gates})
    play.machine.context.gang_search_steps = 0
    return play


class World:
    def __init__(self, seed: int, *, alike: bool) -> None:
        self.rng = rng = random.Random(seed)
        self.play = a_play(TopologyAwareWorkloadScheduling=seed % 3 == 0)
        self.machines = [
            Machine(f"n{n}", rng.randint(2, 8), rng.randint(2, 8)) for n in range(rng.randint(1, 6))
        ]
        for machine in self.machines:
            node = a_node(machine.name)
            node.offering_only(cpu=str(machine.cpu), pods=str(machine.pods), memory="1Gi")
            self.play.turn(Seen(NODE, node.build()))
        self.budgets = {app: rng.randint(0, 2) for app in "ab" if rng.random() < 0.5}
        for app, allowed in self.budgets.items():
            self.play.turn(Seen(POD_DISRUPTION_BUDGET, a_budget(f"for-{app}", allowed, app=app)))
        self.teams = [Team(f"t{t}", rng.randint(0, 12), rng.random() < 0.6) for t in range(3)]
        for team in self.teams:
            group = a_group(team.name, priority=team.priority, whole=team.is_whole)
            self.play.turn(Seen(POD_GROUP, group))
        self.running: list[Running] = []
        for _ in range(rng.randint(0, 16)):
            self._run()
        count = rng.randint(1, 5)
        first = self._member()
        self.members = [first if alike else self._member() for _ in range(count)]
        self.needed = rng.randint(1, count)
        self.is_gang = rng.random() < 0.8
        if not self.is_gang:
            self.needed = 1

    def _member(self) -> Member:
        return Member(self.rng.randint(1, 4), self.rng.choice((0, 0, PORT)))

    def _run(self) -> None:
        rng = self.rng
        machine, cpu = rng.choice(self.machines), rng.randint(1, 3)
        there = [r for r in self.running if r.machine == machine.name]
        port = rng.choice((0, 0, PORT))
        if sum(r.cpu for r in there) + cpu > machine.cpu or len(there) >= machine.pods:
            return
        if port and any(r.port for r in there):
            return
        number = len(self.running)
        team = rng.choice((None, None, *self.teams))
        app, is_leaving = rng.choice("abc"), rng.random() < 0.08
        one = Running(
            f"p{number:02}",
            machine.name,
            cpu,
            rng.randint(0, 11),
            team,
            rng.randint(0, 59),
            app,
            port,
            is_leaving,
        )
        self.running.append(one)
        self.play.see(self._pod(one))

    def _pod(self, one: Running) -> PodBuilder:
        pod = a_pod(one.name).requests(cpu=str(one.cpu)).priority(one.priority).on(one.machine)
        pod.labels(app=one.app).status(startTime=f"2026-01-01T00:{one.start:02}:00Z")
        if one.team is not None:
            pod.spec(schedulingGroup={"podGroupName": one.team.name})
        if one.port:
            pod.host_port(one.port)
        if one.is_leaving:
            pod.metadata(deletionTimestamp=STAMP)
        return pod

    def arrive(self, priority: int) -> list[Effect]:
        """The group and its pods come; what follows."""
        group = a_group("crew", priority=priority, min_count=self.needed if self.is_gang else None)
        waiting = []
        for number, member in enumerate(self.members):
            pod = a_pod(f"crew-{number}").requests(cpu=str(member.cpu))
            pod.spec(schedulingGroup={"podGroupName": "crew"})
            if member.port:
                pod.host_port(member.port)
            waiting.append(Seen(POD, pod.build()))
        return self.go(*waiting, Seen(POD_GROUP, group))

    def go(self, *facts: Any, after_s: float = 0.0) -> list[Effect]:
        """Turns until nothing is left to be done at once; all effects of theirs."""
        effects = list(self.play.turn(*facts, after_s=after_s))
        while self.play.machine.next_deadline_s() == 0.0:
            effects += self.play.turn()
        return effects

    def settle(self, effects: list[Effect]) -> tuple[list[str], set[str]]:
        """(names of those who were evicted, pods of the group that are bound then)."""
        told, gone = list(effects), []
        while asked := [e for e in effects if e.wants_answer and e.answers and _is_write(e)]:
            gone += [e.pod.name for e in asked if isinstance(e, DeletePod)]
            effects = self.go(*(Done(e.id) for e in asked))
            told += effects
        for one in self.running:
            if one.name in gone or one.is_leaving:
                told += self.go(Gone(POD, self._pod(one).build()))
        told += self.go(after_s=3)
        return gone, {e.pod.name for e in told if isinstance(e, Bind)}


def _is_write(effect: Effect) -> bool:
    return effect.lane is Lane.WRITE


def expectation(world: World, priority: int) -> tuple[list[list[Running]], list[str] | None]:
    """(who may have to go, in line; the names of those who do)."""
    if fits(world.machines, world.running, world.members, world.needed):
        return [], []
    line = line_of(world.running, priority, world.budgets)
    units = evicted(world.machines, world.running, world.members, world.needed, priority, line)
    return line, None if units is None else sorted(r.name for unit in units for r in unit)


@pytest.mark.parametrize("seed", range(30))
def test_the_same_pods_go_for_a_group_of_equals(seed: int) -> None:
    world = World(seed, alike=True)
    priority = world.rng.randint(1, 13)
    _, expected = expectation(world, priority)

    gone, bound = world.settle(world.arrive(priority))

    # A pod that leaves already needs nobody to tell it so.
    asked_to = [r.name for r in world.running if r.is_leaving]
    assert sorted(gone) == [name for name in expected or [] if name not in asked_to]
    if expected is not None:
        assert len(bound) >= world.needed


def first_difference(line: list[list[Running]], ours: list[str], theirs: list[str]) -> str:
    """Who goes, of the two, at the first unit about which they do not agree."""
    for unit in line:
        name = unit[0].name
        if (name in ours) != (name in theirs):
            return "theirs" if name in theirs else "ours"
    return ""


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_no_more_important_pods_go_for_a_group_of_different_pods(seed: int) -> None:
    """With first-fit more room may be worse: then, and only then, fewer units go here, or less
    important ones, for which the group was tried all the same.
    """
    world = World(seed, alike=False)
    priority = world.rng.randint(1, 13)
    line, expected = expectation(world, priority)

    gone, bound = world.settle(world.arrive(priority))

    if expected is None and not gone:
        return
    leaving = [r.name for r in world.running if r.is_leaving]
    wanted = [name for name in expected or [] if name not in leaving]
    assert expected is None or first_difference(line, gone, wanted) in ("", "theirs")
    assert len(bound) >= world.needed
