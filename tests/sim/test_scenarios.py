"""A few seeds of each scenario; and broken machines, to see that the scenarios would notice."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any, Final

import pytest

from asched.batch.groups import (
    cycle as group_cycle,
)
from asched.batch.groups import (
    incomplete as group_waiting,
)
from asched.batch.groups import (
    preemption as group_room,
)
from asched.batch.groups import (
    search as group_search,
)
from asched.batch.groups.dry_run import GangLooks
from asched.batch.placement import phases
from asched.core.cycle import binding
from asched.core.framework.effects import Bind
from asched.core.framework.status import SUCCESS, Status
from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup, CoschedulingStatus
from asched.core.plugins.gang_scheduling import GangScheduling
from asched.core.queue import looking
from asched.core.queue.queue import SchedulingQueue
from asched.core.state.changes import ASSIGNED_POD, Change
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Refused, Unknown
from asched.core.state.pods import PodInfo
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS
from tests.sim.findings import findings

#: One more is lived through, and repeated, in test_recordings.py.
SEEDS = range(1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, seed: int) -> None:
    world = play(SCENARIOS[name], seed)

    assert world.ledger.bound_count, f"seed {seed}: nothing was bound, so nothing was tried"
    assert list(world.trace) == elsewhere()[name, seed], "another process lives another life"


@cache
def elsewhere() -> dict[tuple[str, int], list[str]]:
    """The lives of `test_scenario` in another process: whatever order Python keeps sets of strings
    or of tasks in, and however fast it is, a life is the same.
    """
    text = """
import json, sys
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS
for name, kind in SCENARIOS.items():
    for seed in map(int, sys.argv[1:]):
        print(json.dumps([name, seed, list(play(kind, seed).trace)]))
"""
    told = subprocess.run(
        [sys.executable, "-c", text, *map(str, SEEDS)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        check=True,
    ).stdout
    return {(name, seed): trace for name, seed, trace in map(json.loads, told.splitlines())}


#: Lives in which a rule is broken by the code as it was before a defect was mended.
FOUND: Final = [
    ("NodeFlapping", 21),  # a lost binding was sent once more to a node that had become ill
    ("NodeFlapping", 24),  # ... or whose room a stranger had taken
    ("SideBySide", 27),
    ("BusyDevices", 61),  # devices were given back while it was unknown who got them
    ("BusyDevices", 62),  # what was in doubt was given back, and nobody heard of it
    ("BusyDevices", 73),  # a claim that an attempt of its own had left was gone, and it slept
    ("Gangs", 13),  # the judge counted a nominated pod of a gang twice
    ("StrangersApart", 301),  # a pod came near one that wanted to be alone
    ("ResizedGangs", 3),  # fewer pods were enough now, and a gang that had found no room slept
    ("IncidentN4", 300),  # a claim was bound to a volume on another node than its pod's
]


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found_once_stays_mended(name: str, seed: int) -> None:
    play(SCENARIOS[name], seed)


def test_a_lost_answer_taken_for_a_refusal_overcommits(monkeypatch: pytest.MonkeyPatch) -> None:
    def rash(_bind: Bind, _cluster: Cluster, _tell: object, answer: Any, _fits: object) -> Any:
        yield from ()
        return Refused(0, 0, "no answer") if isinstance(answer, Unknown) else answer

    monkeypatch.setattr(binding, "follow", rash)

    found = findings("BurningServer", range(6))

    assert found.startswith("scenario BurningServer, seed ")
    assert "overcommits" in found


def test_a_pod_that_is_not_assumed_overcommits(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(self: Cluster, info: PodInfo, row: int, sign: int) -> None:
        if not info.assumed:
            counted(self, info, row, sign)
        else:
            members = self._rows[row]
            members.update({info.pod.uid: info}) if sign > 0 else members.pop(info.pod.uid)

    counted = Cluster._count
    monkeypatch.setattr(Cluster, "_count", blind)

    assert "overcommits" in findings("RollingDrain", range(4))


def test_a_gang_that_keeps_what_it_cannot_use_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (group_cycle, group_room, group_search):
        monkeypatch.setattr(room, "let_go", lambda *_: iter(()))
    monkeypatch.setattr(group_cycle, "release", lambda *_: iter(()))  # gives back what is left

    assert "is still assumed" in findings("Gangs", range(2))


def test_a_gang_whose_pods_go_one_by_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no group had a policy: whoever fits is bound."""
    monkeypatch.setattr(GangScheduling, "permit", lambda *_: (SUCCESS, 0.0))

    assert "is bound while its gang has no quorum" in findings("Gangs", range(3))


def test_pods_whose_group_nobody_serves_any_more_are_no_single_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if a group that nobody knows bound nobody together."""
    gate, permit = GangScheduling.pre_enqueue, GangScheduling.permit

    def open_gate(self: GangScheduling, pod: Pod) -> Status:
        is_known = self.key_of(pod) in self._cluster.pod_groups.gangs
        return gate(self, pod) if is_known else SUCCESS

    def let_go(self: GangScheduling, info: PodInfo, node: str) -> tuple[Status, float]:
        is_known = self.key_of(info.pod) in self._cluster.pod_groups.gangs
        return permit(self, info, node) if is_known else (SUCCESS, 0.0)

    monkeypatch.setattr(GangScheduling, "pre_enqueue", open_gate)
    monkeypatch.setattr(GangScheduling, "permit", let_go)

    assert "is bound while its gang has no quorum" in findings("VanishingVersions", range(6))


def test_gangs_that_are_all_tried_for_one_place_are_a_storm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if nobody looked whether there is room before a gang is tried."""
    monkeypatch.setattr(looking.Looking, "rests_on", lambda *_: False)
    monkeypatch.setattr(GangLooks, "has_no_places", lambda *_: False)

    assert "attempts in vain of one process" in findings("ActivationStorm", range(2))


def test_a_leader_that_nobody_tells_what_it_waits_for_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_waiting, "why_incomplete", lambda *_: "")

    assert "was told nothing" in findings("LeaderFirst", range(1))


def test_members_that_die_unseen_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody looked at a gang any more once it was said to run."""
    step = phases.next_status

    def blind(group: CoschedulingGroup, members: Any) -> CoschedulingStatus:
        return group.status if group.status.phase == phases.RUNNING else step(group, members)

    monkeypatch.setattr(phases, "next_status", blind)

    assert "is told to have" in findings("DyingMembers", range(1))


def test_a_missed_wake_up_leaves_a_sleeper(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(self: SchedulingQueue, change: Change, now_s: float, **more: Any) -> int:
        return 0 if change.trigger.resource == ASSIGNED_POD else heard(self, change, now_s, **more)

    heard = SchedulingQueue.move
    monkeypatch.setattr(SchedulingQueue, "move", deaf)

    found = findings("BurningServer", range(6))
    assert "sleeps" in found or "was not woken" in found
