"""What the pods of a group are told that has no place, and what goes on for them."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.config.args import CoschedulingArgs
from asched.core.cycle import group_cycle
from asched.core.cycle.failure import Failure, error, unschedulable
from asched.core.cycle.group import Outcome, Result, Tried
from asched.core.cycle.group_trial import TELL_STEPS
from asched.core.framework.effects import Patch, PatchPodStatus, Pause
from asched.core.framework.group_post_filter import RoomMade
from asched.core.framework.points import Nomination
from asched.core.framework.status import SUCCESS
from tests.core.cycle.attempts import GroupScene, members
from tests.core.cycle.test_gang_plays import a_member, room_for


class Scene(GroupScene):
    def __init__(self, *, makes_room: bool = True, **more: Any) -> None:
        super().__init__(room_for(1), minimum=2, **more)
        queue = self.context.queue
        queue.gangs = replace(queue.gangs, makes_room=makes_room)
        self.one = self.attempt(a_member("a"))

    def failure(self, outcome: Outcome, **tried: Any) -> Failure:
        return group_cycle._failure(self.context, outcome, Tried(self.one, **tried))


OWN = Failure("too small", "Unschedulable", frozenset({"Fit"}), nomination=Nomination())
BROKEN = error("broken")


def outcome(result: Result, message: str = "no place", **more: Any) -> Outcome:
    return Outcome(result, message, **more)


def test_a_promise_of_an_attempt_before_ends_where_none_was_made() -> None:
    """Where the group makes room as a whole; a pod of its own keeps what it has."""
    refused = outcome(Result.UNSCHEDULABLE)
    assert Scene().failure(refused, failure=OWN).nomination.node == ""
    assert Scene(makes_room=False).failure(refused, failure=OWN).nomination.node is None
    scene = Scene()
    scene.one.info = scene.cluster.classes.info_of(members(1)[0].spec(schedulingGroup=None).build())
    assert scene.failure(refused, failure=OWN).nomination.node is None
    room = RoomMade(SUCCESS, places={"uid-a": "n7"})
    made = outcome(Result.WAITING_ON_PREEMPTION, room=room)
    assert Scene().failure(made, failure=OWN).nomination.node == "n7"


@pytest.mark.parametrize(
    ("result", "makes_room", "asks_again", "failure", "comes_back"),
    [
        (Result.SCHEDULED, True, False, OWN, True),
        (Result.SCHEDULED, False, False, OWN, False),
        (Result.SCHEDULED, True, False, BROKEN, False),
        (Result.UNSCHEDULABLE, True, False, OWN, False),
        (Result.UNSCHEDULABLE, True, True, OWN, True),
        (Result.UNSCHEDULABLE, False, True, OWN, True),
        (Result.ERROR, True, True, BROKEN, False),
    ],
)
def test_who_may_ask_for_itself_comes_back(
    result: Result, makes_room: bool, asks_again: bool, failure: Failure, comes_back: bool
) -> None:
    """Whom the group does without, and whose group was told the same again unasked."""
    told = Scene(makes_room=makes_room).failure(
        outcome(result, asks_again=asks_again), failure=failure
    )
    assert told.comes_back is comes_back
    assert told.message == failure.message


def test_an_error_of_its_own_is_told_before_that_of_the_group() -> None:
    scene, failed = Scene(), outcome(Result.ERROR, "another is broken")
    assert scene.failure(failed, failure=BROKEN).message == "broken"
    assert scene.failure(failed, failure=OWN).message == "another is broken"
    assert scene.failure(failed).message == "another is broken"


def test_what_keeps_pods_with_places_from_starting_is_told_to_those_alone() -> None:
    scene, refusal = Scene(), unschedulable("short of minResources")
    refused = outcome(Result.UNSCHEDULABLE, refusal=refusal)
    assert scene.failure(refused).message == "short of minResources"
    assert scene.failure(refused, failure=OWN).message == "too small"


def test_whom_to_hear_from_how_long_to_wait_and_what_to_say_is_added() -> None:
    assert group_cycle._with(frozenset(), OWN, 0.0) is OWN
    added = group_cycle._with(frozenset({"Gang"}), OWN, 5.0, "; later")
    assert (added.rejectors, added.pause_s, added.message) == (
        {"Fit", "Gang"},
        5.0,
        "too small; later",
    )
    assert group_cycle._with(frozenset({"Gang"}), OWN, 0.0).rejectors == {"Fit", "Gang"}
    assert group_cycle._with(frozenset(), OWN, 5.0).pause_s == 5.0
    assert group_cycle._with(frozenset(), OWN, 0.0, "; later").message == "too small; later"


def test_a_start_is_looked_for_if_only_places_are_wanting() -> None:
    scene = Scene()
    group = scene.group(*members(2))
    asked: list[Any] = []

    def promise(_context: Any, attempts: Any) -> Any:
        asked.append(attempts)
        yield from ()
        return "; soon"

    def promised(refused: Outcome) -> str:
        steps = group_cycle._promised(scene.context, group, refused)
        with pytest.raises(StopIteration) as end:
            next(steps)
        said: str = end.value.value
        return said

    scene.context.promise = None
    assert promised(outcome(Result.UNSCHEDULABLE)) == ""
    scene.context.promise = promise
    assert promised(outcome(Result.UNSCHEDULABLE)) == "; soon"
    assert asked == [group.attempts]
    assert promised(outcome(Result.WAITING_ON_PREEMPTION)) == ""
    assert promised(outcome(Result.UNSCHEDULABLE, refusal=OWN)) == ""
    assert len(asked) == 1


def test_groups_of_a_label_are_tried_in_one_piece_unless_a_plugin_serves_all() -> None:
    scene = Scene()
    group, queue = scene.group(*members(2)), scene.context.queue
    for tries_placements in (False, True):
        queue.gangs = replace(queue.gangs, tries_placements=tries_placements)
        group.is_coscheduled = False
        assert group_cycle._tries_placements(scene.context, group) is tries_placements
        group.is_coscheduled = True
        assert group_cycle._tries_placements(scene.context, group) is False


def scheduled(scene: Scene, group: Any) -> Any:
    """What follows, and all that was said; nobody has to answer."""
    said: list[Any] = []
    steps = group_cycle.schedule_group(scene.context, group)
    try:
        while True:
            said.append(next(steps))
    except StopIteration as end:
        return end.value, said


def test_how_an_attempt_ended_and_how_long_it_took_is_told() -> None:
    scene = Scene()
    clock = iter(range(1, 10_000))
    scene.context.counter_s = lambda: float(next(clock))
    algorithm: list[float] = []
    ended: list[tuple[str, str, float]] = []
    observer: Any = scene.context.observer
    observer.group_algorithm_ran = algorithm.append
    observer.group_attempt_ended = lambda *told: ended.append(told)
    _, said = scheduled(scene, scene.group(*members(2)))
    assert len([effect for effect in said if isinstance(effect, PatchPodStatus)]) == 2
    ((result, profile, took_s),) = ended
    assert (result, profile) == ("unschedulable", "default-scheduler")
    assert 0 < algorithm[0] < took_s


def test_who_needs_no_attempt_any_more_is_left_out_and_alone_it_is_none() -> None:
    scene = Scene()
    ended: list[Any] = []
    scene.context.observer.group_attempt_ended = lambda *told: ended.append(told)  # type: ignore[method-assign]
    group = scene.group(*members(2))
    for attempt in group.attempts:
        scene.cluster.assume(attempt.info, "room-for-1")
    assert scheduled(scene, group)[0] == []
    assert (group.attempts, ended) == ([], [])


def test_a_promise_that_its_pods_lost_is_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    group = scene.group(*members(3))
    freed: list[tuple[str, str]] = []
    monkeypatch.setattr(
        group_cycle,
        "room_is_free",
        lambda _context, pod, node: freed.append((pod.metadata.name, node)),
    )
    nodes = ("room-for-1", "elsewhere", "room-for-1")
    for attempt, node in zip(group.attempts, nodes, strict=True):
        scene.context.nominator.add(attempt.pod, node)

    def stays(context: Any, _group: Any) -> Any:
        for attempt in group.attempts:
            context.nominator.delete(attempt.pod.uid)
        context.nominator.add(group.attempts[0].pod, "room-for-1")
        context.cluster.assume(group.attempts[2].info, "room-for-1")
        yield from ()
        return []

    monkeypatch.setattr(group_cycle, "_schedule", stays)
    scheduled(scene, group)
    assert freed == [("p1", "elsewhere")]


@pytest.mark.parametrize("is_at_odds", [False, True])
def test_nobody_has_a_turn_while_a_group_is_told(is_at_odds: bool) -> None:
    scene = Scene()
    group, budget = scene.group(*members(3)), scene.cluster.budget
    if is_at_odds:  # they name different schedulers: nobody is tried
        group.attempts[2].runner = SimpleNamespace(profile=SimpleNamespace(scheduler_name="x"))  # type: ignore[assignment]
    durations: list[float] = []
    clock = iter(range(1, 10_000))
    scene.context.counter_s = lambda: float(next(clock))
    scene.context.observer.attempt_ended = lambda *told: durations.append(told[2])  # type: ignore[method-assign]
    pauses: list[bool] = []
    budget.open(0)
    for effect in group_cycle.schedule_group(scene.context, group):
        if isinstance(effect, Pause):
            pauses.append(effect.is_alone)
        budget.open(0)
    assert pauses.count(True) >= 3
    told_of_room = [] if is_at_odds else [False]  # pods of others have their turn meanwhile
    assert pauses[-3 - len(told_of_room) :] == [True] * 3 + told_of_room
    assert len(durations) == 3
    assert min(durations) > 0
    assert max(durations) < 10 if is_at_odds else all(took_s > 2 for took_s in durations)


def test_telling_takes_steps_of_the_slice() -> None:
    spent = []
    for count in (2, 3):
        scene = Scene()
        group = scene.group(*members(count))
        for attempt in group.attempts[1:]:
            attempt.runner = SimpleNamespace(profile=SimpleNamespace(scheduler_name="x"))  # type: ignore[assignment]
        before = scene.cluster.budget.spent
        scheduled(scene, group)
        spent.append(scene.cluster.budget.spent - before)
    assert spent == [2 * TELL_STEPS, 3 * TELL_STEPS]


def test_a_start_that_is_promised_is_told_to_pods_and_in_the_condition_of_the_group() -> None:
    scene = Scene(makes_room=False)

    def promise(_context: Any, _attempts: Any) -> Any:
        yield from ()
        return "; expected soon"

    scene.context.promise = promise
    _, said = scheduled(scene, scene.group(*members(2)))
    told = [e.condition["message"] for e in said if isinstance(e, PatchPodStatus)]
    assert [text.endswith("; expected soon") for text in told] == [True, True]
    (patch,) = (e for e in said if isinstance(e, Patch))
    assert "; expected soon" in str(patch.body)


def test_places_that_others_saw_taken_are_told_to_be_free_once_its_pods_rest() -> None:
    scene = Scene()
    group, moves = scene.group(*members(2)), list[str]()

    def move(change: Any, _now_s: float, **_: Any) -> int:
        resting = scene.context.queue.places.unschedulable
        moves.append(f"{change.old.spec.node_name} {len(list(resting))}")
        return 0

    scene.context.queue.move = move  # type: ignore[method-assign]
    steps = group_cycle.schedule_group(scene.context, group)
    scene.cluster.budget.open(0)
    for _ in steps:
        scene.cluster.budget.open(0)
    assert [told.split()[0] for told in moves] == ["room-for-1"]


def test_once_it_fits_nobody_waits_for_its_start_and_each_binding_has_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(group_cycle, "started", lambda _context, pod: begun.append(pod))
    scene = Scene()
    group = scene.group(*members(2, cpu="500m"))
    follows, _ = scheduled(scene, group)
    assert begun == [group.pod]
    assert len(follows) == 2
    assert all(attempt.line is not None for attempt in group.attempts)


@pytest.mark.parametrize(
    ("is_coscheduled", "is_old", "blames_gate"),
    [(False, True, False), (False, False, True), (True, True, True)],
)
def test_where_a_minimum_may_change_whoever_asks_for_it_is_heard_from(
    monkeypatch: pytest.MonkeyPatch, is_coscheduled: bool, is_old: bool, blames_gate: bool
) -> None:
    monkeypatch.setattr(group_cycle, "is_of_1_36", lambda _: is_old)
    scene = Scene()
    group = scene.group(*members(2))
    group.is_coscheduled = is_coscheduled
    refused = outcome(Result.UNSCHEDULABLE, tried=[Tried(scene.one, failure=OWN)])
    blamed = group_cycle._blamed(scene.context, group, refused)
    assert blamed == ({"Fit", "GangScheduling"} if blames_gate else {"Fit"})
    refused.result = Result.ERROR
    assert group_cycle._blamed(scene.context, group, refused) == frozenset()


def test_only_groups_of_a_label_wait_as_long_as_coscheduling_says() -> None:
    scene = Scene()
    group, queue = scene.group(*members(2)), scene.context.queue
    args = CoschedulingArgs(pod_group_backoff_s=7)
    queue.gangs = replace(queue.gangs, coscheduled={"default-scheduler": args})
    assert group_cycle._pause_s(scene.context, group) == 0.0
    group.is_coscheduled = True
    assert group_cycle._pause_s(scene.context, group) == 7.0
    queue.gangs = replace(queue.gangs, coscheduled={})
    assert group_cycle._pause_s(scene.context, group) == 0.0
