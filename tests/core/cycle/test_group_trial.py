"""The trial of a group: pods one after the other, places held, and everything given back."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.trial import (
    LET_GO_STEPS,
    ROOM_STEPS,
    let_go,
    pause_if_due,
    seen,
    tell_freed,
    try_group,
    try_plan,
    undo,
)
from asched.core.framework.effects import Pause
from asched.core.state.audit import recount
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.cluster import CannotAssumeError
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import GroupScene, members, run
from tests.core.cycle.gang_plays import a_member

HOST = "kubernetes.io/hostname"


def room(name: str, cpu: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="20").labels({HOST: name})


class Scene(GroupScene):
    def __init__(self, *nodes: NodeBuilder, minimum: int | None = 3, **more: Any) -> None:
        super().__init__(*(nodes or (room("n0", 2), room("n1", 1))), minimum=minimum, **more)

    def tried(self, *pods: PodBuilder, **how: Any) -> tuple[GroupAttempt, GroupOutcome]:
        group = self.group(*pods)
        return group, run(try_group(self.context, group, **how))

    def mask(self, *names: str) -> Any:
        mask = np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        mask[[self.row(name) for name in names]] = True
        return mask

    def places(self) -> dict[str, str]:
        placed = self.cluster.placed.values()
        return {info.pod.metadata.name: info.node_name for info in placed}


def test_a_gang_that_fits_holds_its_places() -> None:
    scene = Scene()
    _, outcome = scene.tried(*members(3))
    assert (outcome.result, outcome.message) == (Result.SCHEDULED, "")
    assert sorted(scene.places().values()) == ["n0", "n0", "n1"]
    assert all(scene.context.waiting.get(f"uid-p{n}") is not None for n in range(3))


def test_one_that_does_not_fit_is_unschedulable_and_the_others_are_tried_all_the_same() -> None:
    scene = Scene()
    _, outcome = scene.tried(*members(4), a_member("small", cpu="0"))
    assert outcome.result is Result.SCHEDULED, "three are enough"
    assert [tried.decision is not None for tried in outcome.tried] == [True] * 3 + [False, True]
    assert Scene(minimum=4).tried(*members(4))[1].result is Result.UNSCHEDULABLE


def test_once_it_is_known_nobody_else_is_tried_if_that_is_the_question() -> None:
    scene = Scene(room("n0", 9))
    _, outcome = scene.tried(*members(5), only_whether=True)
    assert (outcome.result, len(outcome.tried)) == (Result.SCHEDULED, 3)


def test_within_some_nodes_and_where_the_plan_has_them() -> None:
    scene = Scene(room("n0", 9), room("n1", 9), room("n2", 9))
    scene.tried(*members(3), within=scene.mask("n1"))
    assert set(scene.places().values()) == {"n1"}
    scene = Scene(room("n0", 9), room("n1", 9), room("n2", 9))
    plan = {"uid-p2": scene.mask("n2"), "uid-p0": scene.mask("n0")}
    _, outcome = scene.tried(*members(3), plan=plan, within=scene.mask("n1"))
    assert scene.places() == {"p0": "n0", "p1": "n1", "p2": "n2"}
    assert [t.attempt.pod.metadata.name for t in outcome.tried] == ["p2", "p0", "p1"]


def test_who_cannot_go_where_the_plan_has_it_goes_elsewhere() -> None:
    scene = Scene(room("n0", 1), room("n1", 9))
    group = scene.group(*members(3))
    plan = dict.fromkeys([f"uid-p{n}" for n in range(3)], scene.mask("n0"))
    outcome = run(try_plan(scene.context, group, plan, None))
    assert outcome.result is Result.SCHEDULED
    assert all(tried.fits for tried in outcome.tried)
    assert sorted(scene.places().values()) == ["n0", "n1", "n1"]


def low(node: str = "n0") -> PodBuilder:
    return a_pod("low").requests(cpu="1").priority(-5).on(node)


def test_room_that_others_have_to_leave_is_noted_and_nobody_goes_yet() -> None:
    scene = Scene(placed=(low(),))
    group, outcome = scene.tried(*members(3))
    assert outcome.result is Result.WAITING_ON_PREEMPTION
    assert outcome.needs_room
    room_for = [tried for tried in outcome.tried if tried.needs_room]
    assert [len(tried.room.victims) for tried in room_for if tried.room is not None] == [1]
    assert all(tried.room and tried.room.background is not None for tried in room_for)
    assert not any(tried.fits for tried in room_for)
    run(undo(scene.context, group, outcome))
    assert scene.places() == {"low": "n0"}
    assert [t.room for t in outcome.tried] == [None] * 3
    assert recount(scene.cluster) == []


def test_a_look_for_room_costs_the_budget_a_fifth_of_a_slice() -> None:
    """A gang of hundreds looks for it once a pod, on all nodes: others have their turn between."""
    spent = []
    for plan in (None, {}):
        scene = Scene(placed=(low(),))
        before = scene.cluster.budget.spent
        scene.tried(*members(3), plan=plan)
        spent.append(scene.cluster.budget.spent - before)

    assert spent[0] - spent[1] >= ROOM_STEPS == SLICE_STEPS / 5


def test_with_a_plan_nobody_is_evicted() -> None:
    scene = Scene(placed=(low(),))
    _, outcome = scene.tried(*members(3), plan={})
    assert outcome.result is Result.UNSCHEDULABLE
    assert not outcome.needs_room


def test_the_last_place_is_given_back_first_and_all_of_them_are() -> None:
    scene = Scene()
    group, outcome = scene.tried(*members(3))
    forgotten = []
    real = scene.cluster.forget
    scene.cluster.forget = lambda info: forgotten.append(info.pod.uid) or real(info)  # type: ignore[method-assign]
    run(let_go(scene.context, group, outcome))
    assert forgotten == ["uid-p2", "uid-p1", "uid-p0"]
    assert scene.places() == {}
    assert all(scene.context.waiting.get(f"uid-p{n}") is None for n in range(3))
    assert all(tried.waiting is None for tried in outcome.tried)
    assert recount(scene.cluster) == []


@pytest.mark.parametrize("was_seen", [False, True])
@pytest.mark.parametrize("give", [let_go, undo])
def test_who_may_have_seen_the_places_taken_hears_that_they_are_free(
    give: Callable[..., Any], was_seen: bool
) -> None:
    scene = Scene()
    group, outcome = scene.tried(*members(3))
    group.was_seen = was_seen
    moves: list[str] = []
    scene.context.queue.move = lambda change, _now_s: moves.append(change.old.spec.node_name)  # type: ignore[method-assign,assignment]
    run(give(scene.context, group, outcome))
    assert (moves, scene.places()) == ([], {}), "not in the midst of their attempt"
    run(tell_freed(scene.context, group))
    assert sorted(moves) == (["n0"] if was_seen else []), "of equals one, whatever their nodes"
    run(tell_freed(scene.context, group))
    assert len(moves) == (1 if was_seen else 0), "it is reported once"


def test_a_pause_while_places_are_given_back_counts_as_well() -> None:
    scene = Scene()
    group, outcome = scene.tried(*members(3))
    scene.cluster.budget.open(LET_GO_STEPS)
    steps = seen(group, let_go(scene.context, group, outcome))
    assert isinstance(next(steps), Pause)
    assert sorted(scene.places()) == ["p0", "p1"]
    scene.cluster.budget.open()
    run(steps)
    (change,) = group.freed.take()
    assert change.old.spec.node_name == "n0"


def test_what_was_promised_to_its_pods_binds_nobody_among_themselves() -> None:
    scene = Scene(room("n0", 3))
    group = scene.group(*(pod.priority(5) for pod in members(3)))
    for number in range(3):
        scene.context.nominator.add(scene.cluster.pods_seen[f"default/p{number}"], "n0")
    outcome = run(try_group(scene.context, group))
    assert outcome.result is Result.SCHEDULED
    assert group.nominated == {f"uid-p{number}": "n0" for number in range(3)}
    assert len(scene.context.nominator) == 0


def near(name: str) -> PodBuilder:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return a_member(name).spec(affinity=affinity)


def test_who_wants_to_be_near_a_later_one_is_tried_again() -> None:
    scene = Scene(room("n0", 2), minimum=2)
    _, outcome = scene.tried(near("a"), a_member("b").labels(app="db"))
    assert outcome.result is Result.SCHEDULED
    assert scene.places() == {"a": "n0", "b": "n0"}
    assert all(tried.fits for tried in outcome.tried)
    alone = Scene(room("n0", 1), minimum=2)
    assert alone.tried(near("a"), a_member("b").labels(app="db"))[1].result is Result.UNSCHEDULABLE


def test_an_error_ends_the_trial_and_is_told_to_all() -> None:
    scene = Scene()
    group = scene.group(*members(3))

    class Broken:
        calls: ClassVar[int] = 0

    real = scene.cluster.assume

    def assume(info: Any, node: str) -> None:
        Broken.calls += 1
        if Broken.calls == 2:
            raise CannotAssumeError("there already")
        real(info, node)

    scene.cluster.assume = assume  # type: ignore[method-assign]
    outcome = run(try_group(scene.context, group))
    assert outcome.result is Result.ERROR
    assert outcome.message == "failed to schedule other pod from a pod group: there already"
    assert len(outcome.tried) == 2


def test_it_pauses_between_two_pods_once_the_slice_is_used_up() -> None:
    scene = Scene()
    budget = scene.cluster.budget
    budget.open(3)
    assert list(pause_if_due(scene.context, 3)) == []
    (pause,) = pause_if_due(scene.context, 1)
    assert isinstance(pause, Pause)
    assert budget.spent >= 4
