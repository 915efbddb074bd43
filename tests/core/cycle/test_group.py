"""A pod group on its way through one attempt: who takes part, in which order, what it is told."""

from types import SimpleNamespace
from typing import Any

from asched.core.cycle.context import Attempt
from asched.core.cycle.failure import error, unschedulable
from asched.core.cycle.group import GroupAttempt, Outcome, Result, Tried, gather
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.model.kinds import POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_node
from tests.core.cycle.playbook import Play, ours
from tests.core.cycle.test_gang_plays import GANGS, a_member, seen_group

PLAIN: dict[str, Any] = {"schedulerName": "plain"}


def a_play() -> Play:
    return Play(a_node("n1"), profiles=[*GANGS["profiles"], PLAIN])


def attempt(play: Play, pod: PodBuilder, id_: int = 1) -> Attempt:
    """A pod that was popped, and waits for its group no more."""
    seen = ours(Seen(POD, pod.build()))
    assert isinstance(seen, Seen)
    info = play.parts.cluster.classes.info_of(seen.obj)
    runner = play.machine.context.runners[info.pod.spec.scheduler_name]
    queued = QueuedPod(info.pod, 0.0)
    queued.gang = play.machine.context.gangs.key_of(info.pod)
    return Attempt(id_, queued, info, runner, 5.0)


def gathered(play: Play, popped: PodBuilder, *mates: PodBuilder) -> tuple[GroupAttempt, list[str]]:
    """The attempt, and the names in the order in which they are tried."""
    play.machine.is_active = False  # nobody is tried before we ask
    seen_group(play, min_count=1)
    play.turn(*(Seen(POD, pod.build()) for pod in (popped, *mates)))
    context = play.machine.context

    def begin(queued: QueuedPod) -> Attempt:
        info = play.parts.cluster.classes.info_of(queued.pod)
        return Attempt(9, queued, info, context.runners[queued.pod.spec.scheduler_name], 0.0)

    first = attempt(play, popped, id_=7)
    first.queued.initial_attempt_s = play.now_s
    play.machine.context.queue.delete(first.pod)
    group = gather(context, first, begin)
    return group, [one.pod.metadata.name for one in group.attempts]


def born(name: str, hour: int) -> PodBuilder:
    return a_member(name).metadata(creationTimestamp=f"2026-01-01T{hour:02}:00:00Z")


def test_all_of_the_group_come_along_and_nobody_else() -> None:
    play = a_play()
    group, names = gathered(play, a_member("b"), a_member("a"), a_member("x", group="other"))
    assert names == ["a", "b"]
    assert (group.key, group.id, group.pod.metadata.name) == ("default/crew", 7, "b")
    assert group.started_s == 5.0


def test_the_more_important_are_tried_first_then_the_older_then_by_name() -> None:
    play = a_play()
    _, names = gathered(
        play, born("c", 3), born("b", 3), born("old", 1), born("first", 5).priority(10)
    )
    assert names == ["first", "old", "b", "c"]


def test_who_was_there_before_goes_before_who_is_older() -> None:
    play = a_play()
    play.machine.is_active = False
    seen_group(play, min_count=1)
    play.turn(Seen(POD, born("young", 9).build()))
    play.turn(after_s=5.0)
    _, names = gathered(play, born("old", 1), born("older", 0))
    assert names == ["young", "older", "old"]


def test_whom_nobody_begins_with_is_left_out() -> None:
    play = a_play()
    play.turn(Seen(POD, a_member("a").build()), Seen(POD, a_member("b").build()))
    first = attempt(play, a_member("b"))
    play.machine.context.queue.delete(first.pod)
    group = gather(play.machine.context, first, lambda _: None)
    assert [one.pod.metadata.name for one in group.attempts] == ["b"]


def a_group(*attempts: Attempt) -> GroupAttempt:
    return GroupAttempt("default/crew", list(attempts), 1, attempts[0].pod, 0.0)


def test_pods_that_name_several_schedulers_are_at_odds() -> None:
    play = a_play()
    own, equal = attempt(play, a_member("a")), attempt(play, a_member("b"))
    other = attempt(play, a_member("c").spec(schedulerName="plain"))
    assert a_group(own, equal).disagreement == ""
    assert a_group(own, equal, other).disagreement == (
        "all pods in a single pod group should have the same .spec.schedulerName set,"
        ' got: "default-scheduler" and "plain"'
    )


def test_one_pod_that_asks_an_extender_makes_its_group_ask() -> None:
    quiet, asking = (SimpleNamespace(consults=consults, pod=None) for consults in (False, True))
    assert a_group(quiet, asking).consults  # type: ignore[arg-type]
    assert not a_group(quiet, quiet).consults  # type: ignore[arg-type]


def test_a_place_and_a_failure_tell_what_a_trial_came_to() -> None:
    play = a_play()
    one, decision = attempt(play, a_member("a")), object()
    fits = Tried(one, decision=decision)  # type: ignore[arg-type]
    room = Tried(one, decision=decision, failure=unschedulable("no room"))  # type: ignore[arg-type]
    fails = Tried(one, failure=unschedulable("no room"))
    assert [tried.fits for tried in (fits, room, fails)] == [True, False, False]
    assert [tried.needs_room for tried in (fits, room, fails)] == [False, True, False]


def test_a_pod_with_a_place_is_told_who_waits() -> None:
    one = attempt(a_play(), a_member("a"))
    waits = Status(Code.WAIT, ("waiting for two more",))
    assert Tried(one).unschedulable().message == "pod group is unschedulable, "
    assert Tried(one, permit=SUCCESS).unschedulable().message == "pod group is unschedulable, "
    assert Tried(one, permit=waits).unschedulable().message == (
        "pod group is unschedulable, waiting for two more,"
        " one or more plugins asked to wait and no plugin rejected pod"
    )


def test_a_proof_is_told_of_a_group_that_has_no_places_alone() -> None:
    proof = "no node has 3 cpu"
    assert Outcome(Result.UNSCHEDULABLE, "no", proof=proof).told == "no: no node has 3 cpu"
    assert Outcome(Result.UNSCHEDULABLE, "no").told == "no"
    assert Outcome(Result.WAITING_ON_PREEMPTION, "soon", proof=proof).told == "soon"


def test_an_error_of_the_group_is_one_of_its_pods() -> None:
    failed = Outcome(Result.ERROR, "oops").failure
    assert failed == error("oops")
    rejected = Outcome(Result.UNSCHEDULABLE, "no").failure
    assert not rejected.is_error
    assert rejected.nomination.node is None  # what was promised to a pod stays
