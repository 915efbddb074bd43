"""What follows a failed attempt: where the pod goes, what is written, and what is not."""

from collections.abc import Mapping
from typing import Any

import pytest

from asched.core.cycle.context import Attempt
from asched.core.cycle.decided import Refused as RefusedLine
from asched.core.cycle.decided import read
from asched.core.cycle.failure import (
    CLEARED,
    KEPT,
    NOTE_BYTES_MAX,
    Failure,
    error,
    fail,
    note,
    status_patch,
    unschedulable,
)
from asched.core.cycle.history import Step
from asched.core.framework.effects import Bind, Effect, EmitEvent, PatchPodStatus
from asched.core.framework.points import Nomination
from asched.core.model.kinds import POD
from asched.core.state.facts import Gone, Refused, Seen
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import Play, ours
from tests.core.cycle.recording import Recorder

SAID: Mapping[str, Any] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no room",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_a_note_holds_so_many_bytes_and_whole_characters() -> None:
    assert note("short") == "short"
    assert note("x" * NOTE_BYTES_MAX) == "x" * NOTE_BYTES_MAX
    cut = note("ä" * NOTE_BYTES_MAX)
    assert len(cut.encode()) <= NOTE_BYTES_MAX
    assert cut.endswith("ä ...")
    odd = note("x" + "ä" * NOTE_BYTES_MAX)
    assert len(odd.encode()) == NOTE_BYTES_MAX - 1, "half of a character is left out"
    assert odd.endswith("ä ...")


def test_an_error_is_told_from_a_rejection() -> None:
    assert error("etcd is away").is_error
    assert not unschedulable("no room").is_error
    failure = unschedulable("no room", KEPT)
    assert failure.nomination.node is None
    assert (failure.message, failure.reason) == ("no room", "Unschedulable")


def patch(pod: PodBuilder, nomination: Nomination = KEPT, **more: Any) -> PatchPodStatus | None:
    return status_patch(pod.build(), "Unschedulable", "no room", nomination, 1000.0, **more)


def test_what_the_pod_says_already_is_not_written() -> None:
    assert patch(a_pod("web").status(conditions=[dict(SAID)])) is None


def test_of_a_condition_only_what_is_new_is_written() -> None:
    old = {**SAID, "message": "no node"}
    made = patch(a_pod("web").status(conditions=[old]))
    assert made is not None
    assert made.condition == {"type": "PodScheduled", "message": "no room"}
    assert made.nominated_node_name is None
    assert not made.wants_answer


def test_a_first_condition_is_written_whole_with_its_place_among_the_others() -> None:
    other = {"type": "example.com/ready", "status": "True"}
    made = patch(a_pod("web").status(conditions=[other]))
    assert made is not None
    assert made.condition is not None
    assert made.condition["status"] == "False"
    assert made.condition["reason"] == "Unschedulable"
    assert made.condition_types == ("example.com/ready", "PodScheduled")
    assert made.pod.uid == "uid-web"


def test_conditions_keep_their_order_and_the_first_one_of_all_needs_none() -> None:
    first = patch(a_pod("web"))
    assert first is not None
    assert first.condition_types == ()
    other = {"type": "example.com/ready", "status": "True"}
    again = patch(a_pod("web").status(conditions=[{**SAID, "message": "no node"}, other]))
    assert again is not None
    assert again.condition_types == ("PodScheduled", "example.com/ready")


def test_the_condition_says_of_which_generation_it_speaks() -> None:
    made = patch(a_pod("web").metadata(generation=3))
    assert made is not None
    assert made.condition is not None
    assert made.condition["observedGeneration"] == 3
    none = patch(a_pod("web").metadata(generation=0))
    assert none is not None
    assert "observedGeneration" not in (none.condition or ())


@pytest.mark.parametrize(
    ("shown", "nomination", "was_nominated", "written"),
    [
        ("", KEPT, False, None),
        ("n1", KEPT, False, None),
        ("n1", CLEARED, False, ""),
        ("", CLEARED, False, None),
        ("", CLEARED, True, ""),  # ours, which the watch has not shown yet
        ("", Nomination("n1"), False, "n1"),
        ("n1", Nomination("n1"), False, None),
        ("n1", Nomination("n2"), False, "n2"),
    ],
)
def test_a_nomination_is_written_where_it_differs(
    shown: str, nomination: Nomination, was_nominated: bool, written: str | None
) -> None:
    pod = a_pod("web").status(conditions=[dict(SAID)], nominatedNodeName=shown)
    made = patch(pod, nomination, was_nominated=was_nominated)
    assert (None if made is None else made.nominated_node_name) == written


class Attempted:
    """A pod that was taken from the queue: its attempt is about to fail."""

    def __init__(self) -> None:
        self.play = Play(a_node("n1"))
        self.context = self.play.machine.context
        self.pod = ours(Seen(POD, a_pod("web").build())).obj  # type: ignore[attr-defined]
        self.context.cluster.apply(Seen(POD, self.pod))
        self.context.queue.add(self.pod, 1000.0)
        queued = self.context.queue.pop(1000.0)
        assert queued is not None
        info = self.context.cluster.classes.info_of(self.pod)
        runner = self.context.runners["default-scheduler"]
        self.attempt = Attempt(1, queued, info, runner, 0.0)

    def fails(self, failure: Failure) -> list[Effect]:
        effects = list(fail(self.context, self.attempt, failure))
        assert len(self.context.queue.in_flight) == 0, "the queue was told"
        return effects

    @property
    def where(self) -> str:
        queued = self.context.queue.places.get("default/web")
        return "" if queued is None else self.context.queue.places.name_of(queued)


def test_a_rejected_pod_rests_under_its_rejectors() -> None:
    attempted = Attempted()
    failure = Failure("no room", "Unschedulable", frozenset(("NodeResourcesFit",)))
    event, patch = attempted.fails(failure)
    assert isinstance(event, EmitEvent)
    assert (event.type, event.reason, event.note) == ("Warning", "FailedScheduling", "no room")
    assert isinstance(patch, PatchPodStatus)
    assert attempted.where == "unschedulable"


def test_a_pod_that_says_all_of_it_already_is_told_by_an_event_alone() -> None:
    attempted = Attempted()
    pod = a_pod("web").spec(schedulerName="default-scheduler").status(conditions=[dict(SAID)])
    attempted.context.cluster.apply(Seen(POD, pod.build()))
    (event,) = attempted.fails(unschedulable("no room"))
    assert isinstance(event, EmitEvent)


@pytest.mark.parametrize(
    ("failure", "result"), [(error("away"), "error"), (unschedulable("away"), "unschedulable")]
)
def test_metrics_and_log_hear_of_each_failure_and_how_long_it_took(
    failure: Failure, result: str
) -> None:
    attempted = Attempted()
    context, ear = attempted.context, Recorder()
    context.observer, context.counter_s, attempted.attempt.started_s = ear, lambda: 7.0, 5.0
    attempted.fails(failure)
    assert ear.of("attempt_ended") == [(result, "default-scheduler", 2.0)]
    assert ear.of("scheduling_failed") == [("default/web", failure.reason, "away")]


def test_the_queue_hears_who_rejected_it_and_how_it_is_to_wait() -> None:
    attempted = Attempted()
    failure = Failure(
        "no room",
        "Unschedulable",
        frozenset(("NodeResourcesFit",)),
        frozenset(("GangScheduling",)),
        is_patient=True,
        pause_s=7.0,
    )
    attempted.fails(failure)
    queued = attempted.attempt.queued
    assert queued.rejected_by == {"NodeResourcesFit"}
    assert queued.pending_on == {"GangScheduling"}
    assert (queued.is_patient, queued.is_promised) == (True, False)
    assert queued.backoff_until_s == attempted.context.now_s + 7.0


@pytest.mark.parametrize("more", [{"comes_back": True}, {"nomination": Nomination("n1")}])
def test_a_pod_for_which_there_may_be_room_soon_is_promised_to_the_queue(more: Any) -> None:
    attempted = Attempted()
    attempted.fails(Failure("no room", "Unschedulable", frozenset(("NodeResourcesFit",)), **more))
    queued = attempted.attempt.queued
    assert (queued.is_promised, queued.is_patient) == (True, False)


def test_the_history_tells_an_error_by_its_words_and_a_rejection_by_its_nodes() -> None:
    attempted = Attempted()
    attempted.fails(error("etcd is away"))
    histories = attempted.context.histories
    ((_, number, step, said),) = histories.of("default/web")
    assert (number, step, said) == (1, Step.ERROR, "etcd is away")
    before = histories._bytes
    attempted.play.see(a_pod("big").requests(cpu="99"))
    (line,) = histories.of("default/big")
    refused = read(line)
    assert isinstance(refused, RefusedLine)
    assert [(one["plugin"], one["named"]) for one in refused.told()["reasons"]] == [
        ("NodeResourcesFit", ["n1"])
    ]
    assert histories._bytes > before


def test_event_and_condition_may_end_with_how_to_ask() -> None:
    attempted = Attempted()
    attempted.context.advises = True
    message = "x" * 2_000
    event, patch = attempted.fails(Failure(message, "Unschedulable", frozenset(("Fit",))))
    assert isinstance(event, EmitEvent)
    assert event.note.endswith(" ... Ask why: kubectl asched explain -n default web")
    assert len(event.note) == NOTE_BYTES_MAX
    assert isinstance(patch, PatchPodStatus)
    assert patch.condition is not None
    advice = " Ask why: kubectl asched explain -n default web"
    assert patch.condition["message"] == message + advice


def test_long_words_count_in_the_history() -> None:
    """An extender may say anything, at each attempt."""
    attempted = Attempted()
    before = attempted.context.histories._bytes
    attempted.fails(error("x" * 100_000))
    assert attempted.context.histories._bytes - before >= 100_000


def test_an_event_about_an_error_has_no_advice() -> None:
    attempted = Attempted()
    attempted.context.advises = True
    (event, *_) = attempted.fails(error("etcd is away"))
    assert isinstance(event, EmitEvent)
    assert event.note == "etcd is away"


def test_a_pod_that_met_an_error_is_tried_again_after_a_pause() -> None:
    attempted = Attempted()
    attempted.fails(error("etcd is away"))
    assert attempted.where == "backoff"


def test_a_nomination_is_noted_before_it_is_written() -> None:
    attempted = Attempted()
    attempted.fails(Failure("no room", "Unschedulable", nomination=Nomination("n1")))
    assert attempted.context.nominator.node_of("uid-web") == "n1"


@pytest.mark.parametrize(
    ("promised", "nomination", "freed"),
    [
        ("n1", CLEARED, ["n1"]),
        ("n1", Nomination("n2"), ["n1"]),
        ("n1", Nomination("n1"), []),
        ("", Nomination("n1"), []),
    ],
)
def test_others_hear_of_room_that_a_failure_gives_back(
    promised: str, nomination: Nomination, freed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempted, told = Attempted(), list[Any]()
    attempted.context.nominator.add(attempted.pod, promised)

    def move(change: Any, _now_s: float, *, except_uid: str) -> None:
        assert except_uid == attempted.pod.uid, "its own promise was never in its way"
        told.append(change)

    monkeypatch.setattr(attempted.context.queue, "move", move)
    attempted.fails(Failure("no room", "Unschedulable", nomination=nomination))
    assert [change.old.spec.node_name for change in told] == freed


@pytest.mark.parametrize("end", ["gone", "anew", "placed", "assumed"])
def test_a_pod_that_is_nobody_s_business_any_more_is_left_alone(end: str) -> None:
    attempted = Attempted()
    cluster = attempted.context.cluster
    if end == "gone":
        cluster.apply(Gone(POD, attempted.pod))
    elif end == "anew":
        cluster.apply(Seen(POD, a_pod("web").metadata(uid="anew").build()))
    elif end == "placed":
        cluster.apply(Seen(POD, attempted.pod.on("n1")))
    else:
        cluster.assume(attempted.attempt.info, "n1")
    assert attempted.fails(unschedulable("no room")) == []
    assert attempted.where == ""


def test_a_pod_whose_profile_went_is_told_and_not_kept() -> None:
    attempted = Attempted()
    attempted.context.runners = {}
    event, patch = attempted.fails(
        Failure("no room", "Unschedulable", nomination=Nomination("n1"), was_nominated=True)
    )
    assert isinstance(event, EmitEvent)
    assert isinstance(patch, PatchPodStatus)
    assert patch.nominated_node_name == "", "what we promised is promised no more"
    assert attempted.where == ""
    assert attempted.context.nominator.node_of("uid-web") is None


def test_a_pod_that_the_api_says_is_elsewhere_is_left_alone_before_the_watch_tells() -> None:
    """1. Another scheduler wins, our answer overtakes the watch. 2. Nobody writes over its True.
    3. Should the watch never tell, the pod is tried again.
    """
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    bind = play.the(Bind)
    play.answer(Refused(bind.id, 409, 'pod web is already assigned to node "n2"', "Conflict"))
    assert play.of(PatchPodStatus) == []
    assert play.of(EmitEvent) == []
    assert play.node_of(bind.pod.uid) == ""
    play.turn(after_s=2.1)
    assert play.the(Bind).pod == bind.pod
