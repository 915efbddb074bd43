"""What is asked of whoever makes room for a group, and what becomes of the answer."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from asched.core.cycle import group_room
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.group import Outcome, Result
from asched.core.cycle.group_room import (
    REST_FACTOR,
    REST_S_MIN,
    VICTIM_STEPS,
    Supposed,
    Vain,
    make_room_for_group,
)
from asched.core.cycle.group_trial import TELL_STEPS, TRY_STEPS
from asched.core.cycle.history import Step
from asched.core.cycle.supposed import MOVE_STEPS
from asched.core.framework.effects import Pause
from asched.core.framework.group_post_filter import RoomMade
from asched.core.framework.order_free import POD_PLACE
from asched.core.framework.status import SUCCESS, PluginError, failure, unschedulable
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.state.budget import STEP_US, OutOfTurn
from asched.core.state.facts import Seen
from tests.builders import a_cluster, a_node, a_pod
from tests.core.cycle.attempts import KEY, GroupScene, members, run
from tests.core.cycle.test_gang_plays import a_group, a_member, room_for

#: So many steps are a rest of two seconds, twice the shortest one there is.
LONG = round(2 * REST_S_MIN / (STEP_US * 1e-6 * REST_FACTOR))


class Making:
    """Makes room, or says why not, as it is told."""

    def __init__(self, *rooms: RoomMade | Exception, steps: float = 0.0) -> None:
        self.rooms, self.steps = list(rooms), steps
        self.trials: list[Supposed] = []

    def group_post_filter(self, trial: Supposed) -> Generator[Any, Any, RoomMade]:
        self.trials.append(trial)
        yield from trial.charge(self.steps)
        room = self.rooms.pop(0)
        if isinstance(room, Exception):
            raise room
        return room


class Scene(GroupScene):
    """A group of two for which there was no place."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, making: Making | None, minimum: int | None = 2
    ) -> None:
        super().__init__(room_for(1), minimum=minimum)
        monkeypatch.setattr(group_room, "group_post_filter", lambda _plugins: making)
        self.makes_room(True)
        self.group_attempt = self.group(*members(2))
        self.outcome = Outcome(Result.UNSCHEDULABLE, "no place")

    def makes_room(self, makes_room: bool) -> None:
        queue = self.context.queue
        queue.gangs = replace(queue.gangs, makes_room=makes_room)

    def steps(self) -> Generator[Any, Any, None]:
        self.outcome = Outcome(Result.UNSCHEDULABLE, "no place")
        return make_room_for_group(self.context, self.group_attempt, self.outcome)

    def made(self) -> Outcome:
        run(self.steps())
        return self.outcome


@pytest.mark.parametrize("why", ["gate", "label", "fits", "error"])
def test_room_is_sought_for_groups_of_kubernetes_that_have_no_place(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    making = Making(RoomMade(SUCCESS))
    scene = Scene(monkeypatch, making)
    outcome = Outcome(Result.UNSCHEDULABLE, "no place")
    if why == "gate":
        scene.makes_room(False)
    elif why == "label":
        scene.group_attempt.is_coscheduled = True
    else:
        outcome.result = Result.SCHEDULED if why == "fits" else Result.ERROR
    before = outcome.result
    run(make_room_for_group(scene.context, scene.group_attempt, outcome))
    assert (outcome.result, outcome.message, making.trials) == (before, "no place", [])


def test_a_group_whose_object_went_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    making = Making()
    outcome = Scene(monkeypatch, making, minimum=None).made()
    assert outcome.result is Result.ERROR
    assert outcome.message == (
        'failed to get pod group object: podgroup.scheduling.k8s.io "crew" not found'
    )
    assert not making.trials


def test_what_is_said_of_it_is_told_and_an_error_instead_of_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = unschedulable("nobody may go"), failure("the budget is broken")
    making = Making(*map(RoomMade, said), PluginError("a mistake", "Making", "post"))
    scene = Scene(monkeypatch, making)
    outcomes = [scene.made() for _ in range(3)]
    assert [(one.result, one.message) for one in outcomes] == [
        (Result.UNSCHEDULABLE, "no place, nobody may go"),
        (Result.ERROR, "the budget is broken"),
        (Result.ERROR, "a mistake"),
    ]
    assert not any(one.asks_again or one.room for one in outcomes)


def test_after_a_long_search_in_vain_nobody_is_asked_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    making = Making(*[RoomMade(unschedulable("nobody may go"))] * 3, steps=LONG)
    scene = Scene(monkeypatch, making)
    first = scene.made()
    assert (first.message, first.asks_again) == ("no place, nobody may go", False)
    scene.context.now_s += 1.9
    again = scene.made()
    assert (again.message, again.asks_again) == ("no place, nobody may go", True)
    assert again.result is Result.UNSCHEDULABLE
    assert len(making.trials) == 1
    scene.context.now_s += 0.2
    assert not scene.made().asks_again
    assert len(making.trials) == 2


def test_room_that_was_made_is_written_down_with_whom_it_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_room, "VICTIMS_AT_ONCE", 2)
    victims = ("default/v0", "default/v1", "default/gone", "default/v2")
    room = RoomMade(SUCCESS, places={"uid-p1": "n1"}, victims=victims)
    scene = Scene(monkeypatch, Making(room))
    for number in range(3):
        pod = a_pod(f"v{number}").priority(number).on("room-for-1")
        scene.cluster.apply(Seen(POD, pod.build()))
    told: list[Any] = []
    counted: list[int] = []
    monkeypatch.setattr(SchedulerContext, "tell", lambda _, *about: told.append(about))
    scene.context.observer.preempting = counted.append  # type: ignore[method-assign]
    spent = scene.cluster.budget.spent

    outcome = scene.made()

    assert (outcome.result, outcome.room) == (Result.WAITING_ON_PREEMPTION, room)
    assert outcome.message == "no place"
    known = (("default/v0", 0), ("default/v1", 1), ("default/v2", 2))
    assert told == [(scene.group_attempt.attempts[1], Step.NOMINATED, ("n1", known))]
    assert counted == [4]
    assert scene.cluster.budget.spent - spent == pytest.approx(4 * VICTIM_STEPS + 2 * TELL_STEPS)


def test_where_nobody_has_to_go_any_more_nobody_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, Making(RoomMade(SUCCESS)))
    counted: list[int] = []
    scene.context.observer.preempting = counted.append  # type: ignore[method-assign]
    assert scene.made().result is Result.WAITING_ON_PREEMPTION
    assert not counted


def test_nobody_has_a_turn_between_the_room_and_its_telling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, Making(RoomMade(SUCCESS, victims=("default/v0",))))
    steps, pauses, making = scene.steps(), [], scene.cluster.budget
    making.open(0)
    for effect in steps:
        assert isinstance(effect, Pause)
        pauses.append(effect.is_alone)
        making.open(0)
    assert pauses == [False, True, True, True], "the search's, the victims', and those of two pods"


def test_before_anybody_is_asked_all_pods_are_in_line_in_as_many_turns_as_that_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    making = Making(RoomMade(SUCCESS))
    scene = Scene(monkeypatch, making)
    turns: list[int] = []

    def catch_up(_: Any) -> None:
        turns.append(len(making.trials))
        if len(turns) < 3:
            raise OutOfTurn

    monkeypatch.setattr(PodsByPriority, "catch_up", catch_up)
    effects = list(scene.steps())
    assert turns == [0, 0, 0]
    assert [effect.is_alone for effect in effects] == [False, False]
    assert len(making.trials) == 1


# --- who is remembered ---------------------------------------------------------------------------


def test_a_group_is_remembered_by_uid_for_as_long_as_its_search_was_worth() -> None:
    vain, group = Vain(a_cluster()), a_group()
    vain.note(group, "nobody", 100.0, 2 * LONG)
    assert [vain.words(group, now_s) for now_s in (100.0, 103.9, 104.1)] == ["nobody", "nobody", ""]
    other = replace(group, metadata=replace(group.metadata, uid="anew"))
    assert vain.words(other, 100.0) == ""
    vain.note(group, "nobody", 200.0, LONG)
    assert vain.words(group, 200.9) == "nobody"
    vain.note(group, "nobody", 200.5, 0.4 * LONG)
    assert vain.words(group, 200.6) == "", "the last one was short"


def test_so_many_groups_are_remembered_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_room, "VAIN_MAX", 2)
    vain = Vain(a_cluster())
    groups = [a_group(name) for name in "abc"]
    for name in "abac":
        vain.note(a_group(name), "nobody", 0.0, 100 * LONG)
    assert [vain.words(group, 1.0) for group in groups] == ["nobody", "", "nobody"]


# --- the trial -----------------------------------------------------------------------------------


def supposed(scene: GroupScene, *pods: Any) -> Supposed:
    group = scene.group(*pods)
    known = scene.cluster.get(POD_GROUP, KEY)
    return Supposed(scene.context, group, known or a_group(min_count=None), "no place")


@pytest.mark.parametrize(
    ("minimum", "awaits", "needed"), [(3, True, 2), (1, True, 1), (3, False, 1), (None, True, 1)]
)
def test_so_many_more_of_a_gang_need_places_as_its_profile_waits_for(
    minimum: int | None, awaits: bool, needed: int
) -> None:
    """One of them has its place already."""
    scene = GroupScene(room_for(9), placed=(a_member("there").on("room-for-9"),), minimum=minimum)
    permits = scene.context.runners["default-scheduler"].profile.permits
    assert [getattr(permit, "awaits_pods", False) for permit in permits].count(True) == 1
    for permit in permits:
        permit.awaits_pods = awaits and getattr(permit, "awaits_pods", False)
    assert supposed(scene, *members(4)).needed == needed


def test_pods_that_no_rule_tells_apart_are_told_together() -> None:
    scene = GroupScene(
        a_node("n1").allocatable(cpu="1", pods="9"),
        a_node("n2").allocatable(cpu="9", pods="9").taints("a=b:NoSchedule"),
        a_node("full").allocatable(cpu="9", pods="1"),
        placed=(a_pod("there").on("full"),),
        minimum=2,
    )
    plain, alike = members(2, cpu="2")
    vip = a_member("vip", cpu="2").priority(9)
    small = a_member("small", cpu="500m").spec(tolerations=[{"operator": "Exists"}])
    found = supposed(scene, plain, vip, alike, small).alike()
    assert [one.uids for one in found] == [("uid-p0", "uid-p1"), ("uid-vip",), ("uid-small",)]
    assert [one.takes[0] for one in found] == [2000, 2000, 500]
    assert {one.takes[POD_PLACE] for one in found} == {1}
    names = [node.name for node in scene.cluster.nodes.node_at]
    rows = [[names[row] for row in np.flatnonzero(one.rows)] for one in found]
    assert rows == [["n1", "full"], ["n1", "full"], ["n1", "n2", "full"]], "whoever is there"


def test_a_rule_that_fails_leaves_every_row_to_the_trial() -> None:
    scene = GroupScene(
        room_for(1), a_node("n2").allocatable(cpu="1", pods="9").taints("a=b:NoSchedule"), minimum=2
    )
    trial = supposed(scene, *members(1))
    assert trial.alike()[0].rows.tolist() == [True, False]

    def fails(_info: Any) -> Any:
        raise PluginError("broken", "Some", "filter")

    scene.context.runners["default-scheduler"].fitting = fails  # type: ignore[method-assign]
    (found,) = trial.alike()
    assert (found.uids, found.rows.tolist()) == (("uid-p0",), [True, True])
    assert found.takes[0] == 1000


def test_a_trial_counts_what_it_took_and_whether_anything_happened_meanwhile() -> None:
    scene = GroupScene(room_for(1), placed=(a_pod("there").requests(cpu="1"),), minimum=1)
    there = a_pod("gone").requests(cpu="1").on("room-for-1")
    scene.cluster.apply(Seen(POD, there.build()))
    trial = supposed(scene, *members(1))
    run(trial.charge(7.0))
    assert trial.spent == 7.0
    probe = run(trial.fits_without([scene.cluster.placed["uid-gone"]], {}))
    assert probe.places == {"uid-p0": "room-for-1"}
    assert probe.steps == 2 * MOVE_STEPS + TRY_STEPS
    assert trial.spent == 7.0 + probe.steps
    failed = run(trial.fits_without([], {}))
    assert (failed.places, failed.steps) == ({}, TRY_STEPS)
    assert not failed.status.is_success
    assert trial.moves == 0
    for number, meanwhile in enumerate((False, True, True), 1):
        scene.cluster.budget.open(0)
        steps = trial.charge(1.0)
        next(steps)
        if meanwhile:
            scene.cluster.apply(Seen(NODE, a_node(f"more-{number}").build()))
        run(steps)
    assert trial.moves == 2


def test_hints_are_tried_first_and_forgotten_with_the_next_trial() -> None:
    scene = GroupScene(
        *(a_node(f"n{at}").allocatable(cpu="1", pods="9") for at in range(4)), minimum=1
    )
    trial = supposed(scene, *members(1))
    for node in ("n3", "n0", "n2"):
        assert run(trial.fits_without([], {"uid-p0": node})).places == {"uid-p0": node}
    assert trial._attempt.nominated == {"uid-p0": "n2"}
    run(trial.fits_without([], {}))
    assert trial._attempt.nominated == {}


@pytest.mark.parametrize("tries_placements", [False, True])
def test_a_trial_ends_once_it_is_known_that_the_group_fits(tries_placements: bool) -> None:
    scene = GroupScene(room_for(5), minimum=2)
    queue = scene.context.queue
    queue.gangs = replace(queue.gangs, tries_placements=tries_placements)
    probe = run(supposed(scene, *members(5)).fits_without([], {}))
    assert probe.status.is_success
    assert probe.steps == 2 * TRY_STEPS
