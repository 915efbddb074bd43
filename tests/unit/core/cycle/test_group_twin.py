"""The cycle of pod groups against its slow twin, on random clusters and random groups."""

import random
from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind, EmitEvent, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE as _NODE
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup
from tests.builders import a_node, a_pod
from tests.conformance.twins.pod_group import Answer, Group, Machine, Member, answers
from tests.playbook import Play
from tests.unit.core.cycle.group_attempts import FirstRow

ZONE = "topology.kubernetes.io/zone"
MIB = 1 << 20


def a_play(*, by_zone: bool) -> Play:
    enabled = ["GangScheduling", "FirstRow"]
    if by_zone:
        enabled += ["TopologyPlacementGenerator", "PodGroupPodsCount"]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": name} for name in enabled],
                "disabled": [{"name": "DefaultPreemption"}, {"name": "DynamicResources"}],
            },
            "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "FirstRow"}]},
        },
    }
    return Play(plugins=[FirstRow], profiles=[profile])


class History:
    """One cluster, and groups that come one after the other; the twin keeps its own books."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.by_zone = seed % 2 == 1
        self.play = a_play(by_zone=self.by_zone)
        self.play.machine.context.gang_search_steps = 0
        self.machines: list[Machine] = []
        for number in range(self.rng.randint(1, 7)):
            self._add_machine(f"n{number}")

    def _add_machine(self, name: str) -> None:
        rng = self.rng
        machine = Machine(
            name,
            rng.choice(("", "a", "b", "c")),
            rng.randint(1, 6) * 500,
            rng.randint(1, 6) * 512 * MIB,
            rng.randint(1, 6),
        )
        self.machines.append(machine)
        node = a_node(name).offering_only(
            cpu=f"{machine.cpu}m", memory=str(machine.memory), pods=str(machine.pods)
        )
        if machine.zone:
            node.labels({ZONE: machine.zone})
        self.play.turn(Seen(_NODE, node.build()))

    def a_group(self, name: str) -> None:
        """A group comes; what becomes of it must be one of the twin's answers."""
        rng = self.rng
        count = rng.randint(1, 6)
        members = [
            Member(
                f"{name}-{i}",
                rng.randint(1, 4) * 250,
                rng.randint(1, 4) * 256 * MIB,
                rng.choice((0, 0, 5)),
            )
            for i in range(count)
        ]
        min_count = rng.choice((None, rng.randint(1, count)))
        group = Group(min_count, self.by_zone and rng.random() < 0.8)
        expected = answers(self.machines, group, members)
        if self.by_zone and not group.by_zone:  # one placement of all nodes
            expected = [_in_one_placement(answer) for answer in expected]
        told = self._meet(name, group, members)
        assert told in expected, f"{group} {members}\n{self.machines}\n{told}\n{expected}"
        for member in members:
            where = told.nodes.get(member.name)
            for machine in self.machines:
                if machine.name == where:
                    machine.held.append((member.cpu, member.memory))

    def _meet(self, name: str, group: Group, members: list[Member]) -> Answer:
        for member in members:
            pod = a_pod(member.name).requests(cpu=f"{member.cpu}m", memory=str(member.memory))
            pod.priority(member.priority).spec(schedulingGroup={"podGroupName": name})
            self.play.see(pod)
        policy: dict[str, Any] = (
            {"basic": {}} if group.min_count is None else {"gang": {"minCount": group.min_count}}
        )
        spec: dict[str, Any] = {"schedulingPolicy": policy}
        if group.by_zone:
            spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
        obj = {"metadata": {"namespace": "default", "name": name}, "spec": spec}
        effects = list(self.play.turn(Seen(POD_GROUP, decode(PodGroup, obj))))
        while self.play.machine.next_deadline_s() == 0.0:
            effects += self.play.turn()
        self.play.effects = effects
        patches = [e for e in self.play.of(Patch) if e.kind is POD_GROUP]
        conditions = [patch.body["status"]["conditions"][0] for patch in patches]
        # It stays once it is true; this play does not show the object again.
        condition = next((c for c in conditions if c["status"] == "True"), conditions[-1])
        return Answer(
            {bind.pod.name: bind.node for bind in self.play.of(Bind)},
            {
                e.regarding.name: e.note
                for e in self.play.of(EmitEvent)
                if e.reason == "FailedScheduling"
            },
            (condition["reason"], condition["message"]),
        )


def _in_one_placement(answer: Answer) -> Answer:
    reason, message = answer.condition
    if reason == "Unschedulable":
        message = f"0/1 placements are available, first placement status: {message}"
    return Answer(answer.nodes, answer.said, (reason, message))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_the_twin_would_have_done_it(seed: int) -> None:
    history = History(seed)
    for number in range(6):
        history.a_group(f"g{number}")
