"""Who goes for a group where amounts decide, and where other rules do as well: the rule again."""

import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from asched.core.framework.group_post_filter import Alike, Probe
from asched.core.framework.status import unschedulable
from asched.core.model.kinds import NODE, POD
from asched.core.preemption import sparing
from asched.core.state.facts import Seen
from asched.core.state.pods import PodInfo
from tests.builders import a_node
from tests.core.preemption.group_stage import (
    HIGH,
    REFUSAL,
    GroupStage,
    ThumbTrial,
    a_group,
    placed,
)


class Crew(ThumbTrial):
    """Pods that take so many cores each, of nodes some of which another rule closes to them for as
    long as certain pods (`closed_by`) are there.
    """

    cores: int
    closed_by: frozenset[str]

    def alike(self) -> list[Alike]:
        takes = {self.cluster.nodes.find_resource("cpu"): self.cores * 1000}
        anywhere = np.ones(self.cluster.nodes.height, dtype=np.bool_)
        return [Alike(tuple(info.pod.uid for info in self.pods), takes, anywhere)]

    def slots_without(self, gone: frozenset[str]) -> dict[str, int]:
        """How many have room, by node."""
        found = {}
        for row, node in self.cluster.nodes.nodes():
            staying = [
                info
                for info in self.cluster.pods_on(row).values()
                if info.pod.metadata.name not in gone
            ]
            held = sum(info.cls.accounted["cpu"] for info in staying)
            free = int(node.status.allocatable["cpu"]) * 1000 - held
            closed = any(info.pod.metadata.name in self.closed_by for info in staying)
            found[node.name] = 0 if closed else max(free // (self.cores * 1000), 0)
        return found

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Any, Any, Probe]:
        names = frozenset(info.pod.metadata.name for info in gone)
        self.asked.append(names)
        slots = self.slots_without(names)
        order = sorted(slots, key=lambda node: node not in hints.values())
        places = [node for node in order for _ in range(slots[node])][: self.size]
        if len(places) < self.size:
            return Probe(unschedulable(REFUSAL), steps=1.0)
        uids = [info.pod.uid for info in self.pods]
        return Probe(places=dict(zip(uids, places, strict=True)), steps=1.0)
        yield


def a_world(seed: int, *, closed: bool) -> tuple[GroupStage, Crew, list[str]]:
    """The pods' names come with the most important one first."""
    rng, stage = random.Random(seed), GroupStage(nodes=())
    nodes = [f"n{number}" for number in range(rng.randint(1, 6))]
    left = {name: rng.randint(3, 12) for name in nodes}
    for name in nodes:
        built = a_node(name).allocatable(cpu=str(left[name]), pods="110").build()
        stage.cluster.apply(Seen(NODE, built))
    line = []
    for number in range(rng.randint(1, 30)):
        name, cores = rng.choice(nodes), rng.randint(1, 3)
        if left[name] < cores:
            continue
        left[name] -= cores
        priority, start = rng.choice(("low", "mid")), rng.randint(0, 50)
        pod = placed(f"p{number}@{name} {priority} +{start}").requests(cpu=str(cores)).build()
        stage.cluster.apply(Seen(POD, pod))
        line.append((priority == "low", start, pod.uid, pod.metadata.name))
    names = [name for *_, name in sorted(line)]
    group, size = a_group("crew", priority=HIGH), rng.randint(1, 6)
    crew = Crew(stage.cluster, stage.nominator, group, size, ())
    crew.cores = rng.randint(1, 4)
    crew.closed_by = frozenset(rng.sample(names, len(names) // 4) if closed else ())
    return stage, crew, names


def by_the_rule(crew: Crew, line: Sequence[str]) -> frozenset[str] | None:
    """All gone, then put back one by one; None if that would not help."""
    gone = frozenset(line)
    if not line or sum(crew.slots_without(gone).values()) < crew.size:
        return None
    for name in line:
        if sum(crew.slots_without(gone - {name}).values()) >= crew.size:
            gone -= {name}
    return gone


@pytest.mark.parametrize("seed", range(0, 240, 8))
def test_those_go_whom_the_rule_names(seed: int) -> None:
    for number in range(seed, seed + 8):
        stage, crew, line = a_world(number, closed=bool(number % 2))
        probe, victims = stage.victims(crew)
        expected = by_the_rule(crew, line)
        assert probe.status.is_success == (expected is not None), number
        assert victims == [name for name in line if name in (expected or ())], number
        if not crew.closed_by:
            assert len(crew.asked) <= 1, "amounts tell, and one trial confirms it"


@pytest.mark.parametrize("seed", range(0, 160, 8))
def test_by_places_those_go_who_are_in_the_way_there(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparing, "LINE_MAX", 0)
    for number in range(seed, seed + 8):
        stage, crew, line = a_world(number, closed=bool(number % 4))
        probe, victims = stage.victims(crew)
        expected = by_the_rule(crew, line)
        assert probe.status.is_success == (expected is not None), number
        if expected is not None:
            gone = frozenset(victims)
            assert sum(crew.slots_without(gone).values()) >= crew.size, number
            assert sorted(gone, key=line.index) == victims
            needed = set(probe.places.values())
            on = {i.pod.metadata.name: i.pod.spec.node_name for i in stage.cluster.placed.values()}
            assert {on[name] for name in gone} <= needed or gone == expected, number


def test_pods_of_the_group_itself_make_no_room_for_it_and_nothing_is_tried() -> None:
    """Without them there would be."""
    stage = GroupStage(nodes=(), groups=[a_group("crew", priority=HIGH)])
    stage.cluster.apply(Seen(NODE, a_node("n1").allocatable(cpu="4", pods="110").build()))
    for text, cores in (("mate@n1 low crew", "3"), ("other@n1 low", "1")):
        stage.cluster.apply(Seen(POD, placed(text).requests(cpu=cores).build()))
    crew = Crew(stage.cluster, stage.nominator, a_group("crew", priority=HIGH), 1, ())
    crew.cores, crew.closed_by = 2, frozenset()
    probe, victims = stage.victims(crew)
    assert (probe.status.message, victims, crew.asked) == (REFUSAL, [], [])


def test_others_have_their_turn_while_those_who_are_supposed_gone_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In parts of ten; and nobody has one any more while those who go are."""
    monkeypatch.setattr(sparing, "UNITS_AT_ONCE", 10)
    pods = [f"p{number:02}@n1 low" for number in range(45)]
    stage = GroupStage(pods)
    trial = stage.trial(
        a_group("crew", priority=HIGH), 1, {" ".join(f"p{n:02}" for n in range(30)): 1}
    )
    charged: dict[bool, list[float]] = {False: [], True: []}

    def charge(steps: float, *, is_alone: bool = False) -> Iterator[None]:
        charged[is_alone].append(steps)
        return iter(())

    trial.charge = charge
    assert len(stage.victims(trial)[1]) == 30
    part = sparing.NAME_STEPS * 10
    assert charged[False].count(part) == sum(len(gone) // 10 for gone in trial.asked)
    assert charged[True] == [part] * (3 + 4)  # of the victims, and of all that are given up
