"""Who goes for a group: upstream's cases as a table, bounds, and the rule itself read slowly."""

import random
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import POD
from tests.unit.core.preemption.group_stage import (
    HIGH,
    LOW,
    MID,
    REFUSAL,
    GroupStage,
    Slots,
    a_budget,
    a_group,
    placed,
)

NOBODY = "No preemption victims found for incoming preemptor"


@dataclass(frozen=True)
class Case:
    """`slots`: behind these pods there is room for so many. `goes` None: `said` says why not."""

    name: str
    pods: str
    slots: dict[str, int]
    goes: str | None
    wants: int = 1
    priority: int = HIGH
    groups: tuple[Any, ...] = ()
    budgets: tuple[Any, ...] = ()
    said: str = NOBODY


SEPARATE = (a_group("pg1"), a_group("pg2"), a_group("pg3"))
WHOLE = (a_group("pg1", priority=LOW, whole=True),)
NO_FOO = (a_budget("foo", 0, app="foo"),)

#: By the facts of kube-scheduler v1.36's tests of the same rule.
CASES = [
    Case(
        "at one priority pods of groups are spared first",
        "p1@n1 low, p2@n2 low pg1, p3@n3 low pg2",
        {"p1": 1, "p2": 1, "p3": 1},
        "p1",
        groups=SEPARATE,
    ),
    Case(
        "priority goes before groups, and age before the rest",
        "p1@n1 low pg1 +1, p2@n2 low pg1 +0, p3@n3 mid",
        {"p1": 1, "p2": 1, "p3": 1},
        "p1",
        groups=SEPARATE,
    ),
    Case(
        "pods of one group go one by one unless it goes whole",
        "p1@n1 low pg1 +1, p2@n2 low pg1 +0",
        {"p1": 1, "p2": 1},
        "p1",
        groups=SEPARATE,
    ),
    Case(
        "three of five, none of them as important as the group",
        "p1@n1 low pg1 +2, p2@n2 low pg1 +1, p3@n3 low pg2 +0, p4@n4 mid, p5@n5 high pg3 +0",
        {"p1": 1, "p2": 1, "p3": 1, "p4": 1, "p5": 1},
        "p1 p2 p3",
        wants=3,
        groups=SEPARATE,
    ),
    Case(
        "whom a budget protects is spared first",
        "kept@n1 low pg1 app=foo, gone@n2 low pg1",
        {"kept": 1, "gone": 1},
        "gone",
        budgets=NO_FOO,
    ),
    Case("one pod of lower priority", "p1@n1 low", {"p1": 1}, "p1"),
    Case(
        "of three the lowest",
        "p1@n1 low, p2@n1 mid, p3@n1 high",
        {"p1": 1, "p2": 1, "p3": 1},
        "p1",
    ),
    Case(
        "as few as it takes",
        "p1@n1 low, p2@n1 low, p3@n1 low, p4@n1 low",
        {"p1 p2": 1, "p1": 1},
        "p1",
    ),
    Case(
        "a budget goes before age on one node, too",
        "kept@n1 low app=foo, gone@n1 low",
        {"kept": 1, "gone": 1},
        "gone",
        budgets=NO_FOO,
    ),
    Case(
        "where all are protected, the lowest",
        "p1@n1 low app=foo, p2@n1 mid app=foo",
        {"p1": 1, "p2": 1},
        "p1",
        budgets=NO_FOO,
    ),
    Case(
        "a group that goes whole does, wherever its pods are",
        "p1@n1 low pg1, p2@n2 low pg1",
        {"p1": 1},
        "p1 p2",
        groups=WHOLE,
    ),
    Case(
        "a pod by itself goes before a whole group of its priority",
        "p1@n1 low, g1@n1 low pg1, g2@n1 low pg1",
        {"g1 g2": 1, "p1": 1},
        "p1",
        groups=WHOLE,
    ),
    Case(
        "a whole group goes before a pod of higher priority",
        "g1@n1 low pg1, g2@n1 low pg1, p1@n1 mid",
        {"g1": 1},
        "g1 g2",
        groups=WHOLE,
    ),
    Case(
        "one protected pod protects its whole group",
        "g1@n1 low pg1 app=foo, g2@n1 low pg1, p1@n1 low",
        {"g1": 1, "p1": 1},
        "p1",
        groups=WHOLE,
        budgets=NO_FOO,
    ),
    Case("nobody of a higher priority goes", "p1@n1 high", {"p1": 1}, None, priority=MID),
    Case("nobody of the same priority goes", "p1@n1 mid", {"p1": 1}, None, priority=MID),
    Case("an empty cluster", "", {"nobody": 1}, None),
    Case(
        "the priority of a whole group is its own, lower than that of its pods",
        "p1@n1 high pg1, p2@n2 high pg1",
        {"p1": 1},
        "p1 p2",
        groups=(a_group("pg1", priority=MID, whole=True),),
    ),
    Case(
        "the priority of a whole group is its own, higher than that of its pods",
        "p1@n1 low pg1, p2@n2 low pg1",
        {"p1": 1},
        None,
        priority=MID,
        groups=(a_group("pg1", priority=MID, whole=True),),
    ),
    Case(
        "a group to which nobody gave a priority has none",
        "p1@n1 high pg1",
        {"p1": 1},
        "p1",
        priority=1,
        groups=(a_group("pg1", whole=True),),
    ),
    Case(
        "a whole group whose object is gone is pods like any other",
        "p1@n1 low pg1, p2@n2 low pg1",
        {"p1": 1},
        "p1",
    ),
    Case(
        "not even without all of them",
        "p1@n1 low, p2@n1 high",
        {"p1 p2": 1},
        None,
        said=REFUSAL,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_who_goes(case: Case) -> None:
    pods = [text for text in case.pods.split(", ") if text]
    stage = GroupStage(pods, case.groups, case.budgets)
    trial = stage.trial(a_group("crew", priority=case.priority), case.wants, case.slots)

    probe, victims = stage.victims(trial)

    if case.goes is None:
        assert (probe.status.message, victims) == (case.said, [])
    else:
        assert probe.status.is_success
        assert sorted(victims) == case.goes.split()
        assert set(probe.places) == {info.pod.uid for info in trial.pods}


def test_victims_are_named_the_most_important_one_first() -> None:
    pods = ["p1@n1 low +3", "p2@n1 mid", "g1@n1 low pg1 +9", "g2@n1 low pg1 +9", "p3@n1 low +2"]
    stage = GroupStage(pods, WHOLE)
    trial = stage.trial(a_group("crew", priority=HIGH), 1, {"p1 p2 p3 g1 g2": 1})
    assert stage.victims(trial)[1] == ["p2", "g1", "g2", "p3", "p1"]


def test_pods_of_the_preemptors_own_group_stay() -> None:
    stage = GroupStage(["own@n1 low crew", "other@n1 low"])
    trial = stage.trial(a_group("crew", priority=HIGH), 1, {"own": 1, "other": 1})
    assert stage.victims(trial)[1] == ["other"]
    trial = stage.trial(a_group("crew", priority=HIGH, whole=True), 1, {"own": 1})
    assert refused(stage, trial)


def refused(stage: GroupStage, trial: Any) -> bool:
    probe, victims = stage.victims(trial)
    return (probe.status.message, victims) == (REFUSAL, [])


def test_nobody_else_goes_while_enough_is_leaving() -> None:
    stage = GroupStage(["stays@n1 low +1", "leaves@n1 mid +1"])
    leaving = placed("leaves@n1 mid +1").metadata(deletionTimestamp="2026-01-01T01:00:00Z")
    stage.cluster.apply(Seen(POD, leaving.build()))
    trial = stage.trial(a_group("crew", priority=HIGH), 1, {"stays": 1, "leaves": 1})
    probe, victims = stage.victims(trial)
    assert probe.status.is_success
    assert not victims


def test_fewer_pods_than_the_gang_needs_evict_nobody() -> None:
    stage = GroupStage(["p1@n1 low"])
    trial = stage.trial(a_group("crew", priority=HIGH), 1, {"p1": 5})
    trial.needed = 2
    assert refused(stage, trial)
    assert not trial.asked


# --- the rule, read slowly -----------------------------------------------------------------------


@dataclass
class World:
    seed: int
    pods: list[str] = field(default_factory=list)
    slots: list[Slots] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        rng = self.rng
        size = rng.randint(1, 40)
        self.pods = [
            f"p{i}@n{rng.randint(1, 5)} {rng.choice(('low', 'mid'))} +{rng.randint(0, 50)}"
            for i in range(size)
        ]
        names = [text.split("@")[0] for text in self.pods]
        for _ in range(rng.randint(1, 12)):
            behind = frozenset(rng.sample(names, rng.randint(0, min(size, 4))))
            self.slots.append(Slots(rng.randint(1, 3), behind))
        self.wants = rng.randint(1, 6)

    def slowly(self) -> list[str] | None:
        """Everybody gone, then put back one by one."""
        line = sorted(
            self.pods, key=lambda text: (text.split()[1] == "low", int(text.split("+")[1]), text)
        )
        gone = {text.split("@")[0] for text in line}

        def fits() -> bool:
            return sum(s.count for s in self.slots if s.behind <= gone) >= self.wants

        if not fits():
            return None
        for text in line:
            name = text.split("@")[0]
            gone.discard(name)
            if not fits():
                gone.add(name)
        return sorted(gone)


@pytest.mark.parametrize("seed", range(60))
def test_as_if_each_was_put_back_by_itself(seed: int) -> None:
    world = World(seed)
    stage = GroupStage(world.pods)
    trial = stage.trial(a_group("crew", priority=HIGH), world.wants, world.slots)

    probe, victims = stage.victims(trial)

    expected = world.slowly()
    assert probe.status.is_success == (expected is not None)
    assert sorted(victims) == (expected or [])


def test_what_happened_meanwhile_is_looked_at_before_anybody_goes() -> None:
    """Others took the room while the trial paused: nobody is evicted for what is no more."""
    stage = GroupStage(["p1@n1 low", "p2@n1 low"])
    trial = stage.trial(a_group("crew", priority=HIGH), 1, {"p1": 1})
    fits_without = trial.fits_without

    def and_then_it_is_gone(gone: Any, hints: Any) -> Any:
        probe = yield from fits_without(gone, hints)
        if probe.status.is_success:
            trial.moves += 1
            trial.slots = ()
        return probe

    trial.fits_without = and_then_it_is_gone
    assert refused(stage, trial)
