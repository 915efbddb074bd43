"""What follows a failed attempt: where the pod goes, what is written, and what is not."""

from typing import Any

from asched.core.cluster.facts import Refused, Seen
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.failure import NOTE_BYTES_MAX, fail, status_patch
from asched.core.cycle.unit import KEPT, Failure, error
from asched.core.framework.effects import Bind, Effect, EmitEvent, PatchPodStatus
from asched.core.framework.points import Nomination
from asched.core.model.kinds import POD
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, ours


def patch(pod: PodBuilder, nomination: Nomination = KEPT, **more: Any) -> PatchPodStatus | None:
    return status_patch(pod.build(), "Unschedulable", "no room", nomination, 1000.0, **more)


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


def test_an_event_about_an_error_has_no_advice() -> None:
    attempted = Attempted()
    attempted.context.advises = True
    (event, *_) = attempted.fails(error("etcd is away"))
    assert isinstance(event, EmitEvent)
    assert event.note == "etcd is away"


def test_a_nomination_is_noted_before_it_is_written() -> None:
    attempted = Attempted()
    attempted.fails(Failure("no room", "Unschedulable", nomination=Nomination("n1")))
    assert attempted.context.nominator.node_of("uid-web") == "n1"


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
