"""The binding cycle step by step: who is asked, what is told, and what is given back on the way."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import (
    Bind,
    CallPlugin,
    Patch,
    PatchPodStatus,
    WaitFor,
)
from asched.core.framework.meter import SAMPLE_EVERY, Meter
from asched.core.framework.points import (
    PostBindPlugin,
)
from asched.core.framework.status import SKIP, SUCCESS, Code, Status, failure, unschedulable
from asched.core.framework.waiting import Stage
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import (
    Done,
    Gone,
    Seen,
)
from tests.builders import a_node, a_pod
from tests.core.cycle.binding_scene import Scene, flow
from tests.core.cycle.playbook import Play
from tests.core.cycle.recording import Recorder

POINTS = ("PreBindPreFlight", "PreBind", "Bind", "PostBind")


def late(*effects: Any, status: Status = SUCCESS) -> Callable[[], Any]:
    """Steps that yield these and end so."""

    def steps() -> Generator[Any, Any, Status]:
        for effect in effects:
            _ = yield effect
        return status

    return steps


WAITS = (Status(Code.WAIT), 60.0)


def test_a_pod_is_bound_and_everybody_hears_of_it() -> None:
    scene = Scene(pre_flight=SUCCESS)
    assert scene.asked == ["Flow.reserve", "Flow.permit", "Flow.pre_flight", "Flow.pre_bind"]
    (bind,) = scene.play.of(Bind)
    assert bind.node == "n1"
    waiting = scene.context.waiting.get("uid-web")
    assert waiting is not None
    assert waiting.stage is Stage.BINDING, "nobody takes it back any more"
    scene.play.now_s += 4.0
    scene.play.bound(bind)
    assert scene.play.notes() == ["Scheduled: Successfully assigned default/web to n1"]
    assert scene.steps() == [DecisionStep.BOUND]
    assert scene.context.waiting.get("uid-web") is None
    assert scene.ear.points(*POINTS) == [
        ("PreBindPreFlight", "Success"),
        ("PreBind", "Success"),
        ("Bind", "Success"),
        ("PostBind", "Success"),
    ]
    assert scene.ear.of("pod_bound") == [("default/web", "n1", 1, 1)]
    assert scene.ear.of("pod_scheduled") == [("default-scheduler", 1, 4.0, False)]
    assert [given[0] for given in scene.ear.of("attempt_ended")] == ["scheduled"]


def test_who_has_nothing_to_do_before_the_binding_is_not_asked_to() -> None:
    scene = Scene(pre_flight=SKIP)
    assert "Flow.pre_bind" not in scene.asked
    assert not scene.play.of(PatchPodStatus), "nothing takes long: nobody is told where it goes"
    assert scene.ear.points("PreBindPreFlight", "PreBind") == [
        ("PreBindPreFlight", "Skip"),
        ("PreBind", "Success"),
    ]


@pytest.mark.parametrize("says", [{"pre_flight": SUCCESS}, {"permit": WAITS}])
def test_where_it_goes_is_told_before_that_takes_long(says: dict[str, Any]) -> None:
    (patch,) = Scene(**says).play.of(PatchPodStatus)
    assert patch.nominated_node_name == "n1"
    assert not patch.wants_answer


def test_nobody_is_told_twice_nor_where_that_is_switched_off() -> None:
    scene = Scene(pre_flight=SUCCESS)
    scene.context.announces_places = False
    scene.play.see(a_pod("quiet"))
    assert not scene.play.of(PatchPodStatus)
    scene.context.announces_places = True
    scene.play.see(a_pod("told").status(nominatedNodeName="n1"))
    assert not scene.play.of(PatchPodStatus)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"pre_flight": failure("disk on fire")}, 'running PreBindPreFlight "Flow": disk on fire'),
        ({"pre_flight": unschedulable("x")}, 'PreBindPreFlight Flow returned "Unschedulable"'),
        (
            {"pre_flight": SUCCESS, "pre_bind": failure("no volume")},
            'running PreBind plugin "Flow": no volume',
        ),
    ],
)
def test_an_error_on_the_way_gives_the_place_back_and_says_whose(
    says: dict[str, Any], words: str
) -> None:
    scene = Scene(**says)
    assert words in scene.said()
    assert scene.place == ""
    assert scene.asked[-1] == "Flow.unreserve"
    assert not scene.play.of(Bind)
    assert scene.steps() == [DecisionStep.FAILED, DecisionStep.ERROR]
    assert scene.ear.of("binding_failed")[0][:2] == ("default/web", "n1")
    assert [given[0] for given in scene.ear.of("attempt_ended")] == ["error"]
    assert scene.context.waiting.get("uid-web") is None


def test_a_late_rejection_is_told_without_its_plugin() -> None:
    scene = Scene(pre_flight=SUCCESS, pre_bind=unschedulable("taken meanwhile"))
    assert scene.said() == "taken meanwhile"
    assert [given[0] for given in scene.ear.of("attempt_ended")] == ["unschedulable"]
    cleared = [patch.nominated_node_name for patch in scene.play.of(PatchPodStatus)]
    assert cleared == ["n1", ""]


def test_what_was_reserved_is_given_back_in_reverse_and_to_the_end() -> None:
    words = "could not undo it"
    scene = Scene(
        flow("First"),
        flow("Second", unreserve=late(status=failure(words))),
        flow("Third", pre_flight=failure("oops"), unreserve=lambda: 1 / 0),
    )
    undone = [asked for asked in scene.asked if asked.endswith("unreserve")]
    assert undone == ["Third.unreserve", "Second.unreserve", "First.unreserve"]
    assert scene.ear.of("plugin_raised")[0][:2] == ("Third", "reserve")
    lines = [line.details for line in scene.context.histories.of("default/web")]
    assert words in lines
    assert scene.place == ""


def test_the_first_that_does_not_skip_binds() -> None:
    scene = Scene(flow(bind=SUCCESS), binders=["Flow", "DefaultBinder"])
    assert not scene.play.of(Bind)
    assert scene.steps() == [DecisionStep.BOUND]
    scene = Scene(flow(bind=SKIP), binders=["Flow", "DefaultBinder"])
    assert len(scene.play.of(Bind)) == 1
    scene = Scene(flow(bind=SKIP), binders=["Flow"])
    assert scene.said() == "every bind plugin skipped the pod"
    scene = Scene(flow(bind=failure("refused")), binders=["Flow", "DefaultBinder"])
    assert scene.said() == 'running Bind plugin "Flow": refused'
    assert scene.ear.points("Bind") == [("Bind", "Error")]


def test_what_a_pod_missed_counts_until_nothing_can_reject_it_any_more() -> None:
    scene = Scene(permit=WAITS)
    assert "uid-web" in scene.context.queue.in_flight
    waiting(scene).allow("Flow")
    scene.play.turn()
    assert len(scene.play.of(Bind)) == 1
    assert "uid-web" not in scene.context.queue.in_flight


def test_where_no_plugin_works_before_a_binding_that_is_told() -> None:
    play = Play(a_node("n1"))
    ear = play.machine.context.observer = Recorder()
    play.see(a_pod("web"))
    assert ear.points("PreBindPreFlight", "PreBind") == [
        ("PreBindPreFlight", "Skip"),
        ("PreBind", "Success"),
    ]
    scene = Scene(pre_flight=failure("oops"))
    assert scene.ear.points("PreBindPreFlight", "Bind") == [("PreBindPreFlight", "Error")]


def test_each_plugin_is_told_of_with_its_point_in_attempts_that_are_sampled() -> None:
    scene = Scene(pre_flight=SUCCESS)
    runner = scene.context.runners["default-scheduler"]
    runner.meter = Meter(scene.ear, "default-scheduler", lambda: 0.0)
    for number in range(SAMPLE_EVERY):
        assert not scene.ear.of("plugin_ran")
        scene.play.see(a_pod(f"p{number}"))
    scene.play.bound(scene.play.the(Bind))
    told = {given[:3] for given in scene.ear.of("plugin_ran")}
    assert told >= {
        ("Flow", "PreBindPreFlight", "Success"),
        ("Flow", "PreBind", "Success"),
        ("DefaultBinder", "Bind", "Success"),
    }


def test_the_conditions_that_a_pod_has_stay_when_its_place_is_told() -> None:
    scene = Scene(pre_flight=SUCCESS)
    scene.play.see(a_pod("told").status(conditions=[{"type": "Mine", "status": "True"}]))
    (patch,) = scene.play.of(PatchPodStatus)
    assert patch.condition_types == ("Mine",)


def test_durations_are_those_of_the_attempt_and_of_the_wait() -> None:
    scene = Scene()
    scene.context.counter_s = lambda: scene.play.now_s
    scene.play.now_s += 1.0
    scene.play.see(a_pod("second").priority(5))
    first, second = scene.play.of(Bind)[0], scene.play.of(Bind)[-1]
    assert second.pod.name == "second"
    scene.play.now_s += 4.0
    scene.play.bound(second)
    assert scene.ear.of("attempt_ended")[-1] == ("scheduled", "default-scheduler", 4.0)
    assert first.pod.name in ("web", "second")
    scene = Scene(permit=WAITS)
    scene.context.counter_s = lambda: scene.play.now_s
    scene.play.see(a_pod("second"))
    scene.context.waiting.get("uid-second").allow("Flow")  # type: ignore[union-attr]
    scene.play.turn(after_s=3.0)
    assert scene.ear.of("permit_waited") == [("Success", 3.0)]


def test_a_node_that_is_chosen_is_noted_for_what_strangers_do_there() -> None:
    scene = Scene()
    refusals = scene.play.parts.cluster.refusals
    scene.play.turn(Seen(POD, a_pod("stranger").on("n1").spec(schedulerName="other").build()))
    assert refusals.overlaps == 1


# --- waiting on Permit ---------------------------------------------------------------------------


def waiting(scene: Scene) -> Any:
    found = scene.context.waiting.get("uid-web")
    assert found is not None
    return found


def test_a_pod_waits_until_it_is_allowed() -> None:
    scene = Scene(permit=WAITS)
    assert (waiting(scene).stage, scene.context.waiting.held) == (Stage.PERMIT, 1)
    assert scene.steps() == [DecisionStep.WAITING]
    assert not scene.play.of(Bind)
    waiting(scene).allow("Flow")
    scene.play.turn(after_s=3.0)
    assert len(scene.play.of(Bind)) == 1
    assert scene.context.waiting.held == 0
    assert [given[0] for given in scene.ear.of("permit_waited")] == ["Success"]


def test_a_pod_whose_time_is_up_is_rejected_by_whom_it_waited_for() -> None:
    scene = Scene(permit=WAITS)
    scene.play.turn(after_s=59.9)
    assert scene.place == "n1"
    scene.play.turn(after_s=0.1)
    assert "rejected due to timeout after waiting 1m0s at plugin Flow" in scene.said()
    assert (scene.place, scene.context.waiting.held) == ("", 0)
    assert [given[0] for given in scene.ear.of("permit_waited")] == ["Unschedulable"]
    (cleared,) = scene.play.of(PatchPodStatus)
    assert cleared.nominated_node_name == "", "it was told where the pod goes"


def test_a_pod_that_is_turned_away_wakes_who_may_have_its_place() -> None:
    scene = Scene(permit=WAITS)
    woken = []
    real = scene.context.queue.move
    scene.context.queue.move = lambda change, *rest, **more: (  # type: ignore[method-assign]
        woken.append((change.trigger.label, more)) or real(change, *rest, **more)
    )
    waiting(scene).reject("Flow", "no")
    scene.play.turn()
    assert woken == [("AssignedPodDelete", {"except_uid": "uid-web"})]
    assert scene.said() == "0/1 nodes are available: 1 no."
    queued = scene.context.queue.places.get("default/web")
    assert queued is not None
    assert queued.rejected_by == {"Flow"}


def test_who_goes_while_it_is_bound_wakes_others_again_when_its_reserve_is_undone() -> None:
    """Its place is free at once; what Reserve holds only when PreBind is through."""
    wait = WaitFor(ready=lambda: False, timeout_s=60.0, on=(("PersistentVolume", "pv"),))
    scene = Scene(pre_flight=SUCCESS, pre_bind=wait)
    told = []
    real = scene.context.queue.move
    scene.context.queue.move = lambda change, *rest, **more: (  # type: ignore[method-assign]
        told.append((scene.asked[-1], change.only_if_fits)) or real(change, *rest, **more)
    )
    scene.play.lose(scene.pod)
    scene.play.turn(after_s=61.0)
    assert told[0] == ("Flow.pre_bind", False)
    assert told[-1] == ("Flow.unreserve", False)


def test_an_error_while_it_waits_is_told_as_one() -> None:
    scene = Scene(permit=WAITS)
    waiting(scene).preempt("Other")
    scene.play.turn()
    assert scene.said() == "waiting on permit for pod: preempted"


@pytest.mark.parametrize(
    ("status", "place", "words"),
    [
        (SUCCESS, "n1", ""),
        (unschedulable("full"), "", "0/1 nodes are available: 1 full."),
        (failure("oops"), "", 'waiting on permit for pod: running Permit plugin "Flow": oops'),
        (Status(Code.WAIT), "", "rejected due to timeout after waiting 1m0s at plugin Flow"),
    ],
)
def test_a_plugin_that_lets_a_pod_wait_may_decide_late(
    status: Status, place: str, words: str
) -> None:
    scene = Scene(permit=WAITS, permit_late=late(status=status))
    assert scene.place == place
    if words:
        assert words in scene.said()
    else:
        assert len(scene.play.of(Bind)) == 1


def test_whoever_does_not_let_it_wait_is_not_asked_late() -> None:
    scene = Scene(flow("First", permit=WAITS), flow("Second", permit_late=late(status=SUCCESS)))
    assert "Second.permit_late" not in scene.asked
    assert scene.place == "n1"


def test_the_first_late_refusal_ends_it() -> None:
    no = late(status=unschedulable("no"))
    scene = Scene(
        flow("First", permit=WAITS, permit_late=no), flow("Second", permit=WAITS, permit_late=no)
    )
    assert "First.permit_late" in scene.asked
    assert "Second.permit_late" not in scene.asked


def test_what_a_plugin_waits_for_ends_once_the_pod_is_turned_away() -> None:
    closed = []

    def steps() -> Generator[Any, Any, Status]:
        try:
            yield WaitFor(ready=lambda: False, timeout_s=1000.0, on=(("Pod", "x/y"),))
        finally:
            closed.append(True)
        return SUCCESS

    scene = Scene(permit=WAITS, permit_late=steps)
    assert not closed
    waiting(scene).reject("Flow", "no")
    scene.play.turn()
    assert closed == [True]
    assert scene.place == ""


def test_a_pod_that_goes_before_its_binding_is_not_bound() -> None:
    scene = Scene(permit=WAITS)
    waiting(scene).allow("Flow")
    scene.play.machine.is_active = False
    scene.play.turn(Seen(POD, a_pod("web").metadata(uid="another").build()))
    assert not scene.play.of(Bind)
    assert scene.place == ""


def test_who_is_allowed_in_the_very_moment_its_time_is_up_goes_on() -> None:
    scene = Scene(permit=WAITS)
    waiting(scene).allow("Flow")
    scene.play.turn(after_s=60.0)
    assert len(scene.play.of(Bind)) == 1


def test_what_a_plugin_waits_for_may_come() -> None:
    come: list[bool] = []
    nodes = ((NODE.resource, "n1"),)
    for on in ((), nodes):
        come.clear()
        wait = WaitFor(ready=lambda: bool(come), timeout_s=1000.0, on=on)
        scene = Scene(permit=WAITS, permit_late=late(wait))
        scene.play.turn()
        assert not scene.play.of(Bind)
        come.append(True)
        scene.play.turn(Seen(NODE, a_node("n1").labels(moved="yes").build()))
        assert len(scene.play.of(Bind)) == 1


def test_a_wait_for_what_became_of_its_own_writes_is_sat_out() -> None:
    """What the plugin holds until it knows is not given back on a guess."""
    known: list[bool] = []

    def steps() -> Generator[Any, Any, Status]:
        yield WaitFor(ready=lambda: bool(known), timeout_s=1000.0, in_doubt=True)
        known.append(False)
        return SUCCESS

    scene = Scene(permit=WAITS, permit_late=steps)
    waiting(scene).reject("Flow", "no")
    scene.play.turn()
    assert "Flow.unreserve" not in scene.asked
    known.append(True)
    scene.play.turn()
    assert known == [True, False]
    assert scene.asked[-1] == "Flow.unreserve"


def test_an_answer_to_a_write_is_heard_though_the_pod_is_turned_away() -> None:
    heard: list[Any] = []

    def steps() -> Generator[Any, Any, Status]:
        heard.append((yield Patch(kind=NODE, namespace="", name="n1", body={})))
        return SUCCESS

    scene = Scene(permit=WAITS, permit_late=steps)
    (patch,) = scene.play.of(Patch)
    waiting(scene).reject("Flow", "no")
    scene.play.turn()
    assert (heard, scene.place) == ([], "n1")
    scene.play.answer(Done(patch.id))
    assert [type(answer) for answer in heard] == [Done]
    assert scene.place == ""


def test_a_coroutine_is_ended_once_the_pod_is_turned_away() -> None:
    async def forever() -> None:
        raise AssertionError("nobody runs it here")

    scene = Scene(permit=WAITS, permit_late=late(CallPlugin(plugin="Flow", call=forever)))
    (call,) = scene.play.of(CallPlugin)
    assert not call.ready()
    waiting(scene).reject("Flow", "no")
    assert call.ready()
    assert (POD.resource, "default/web") in call.on
    scene.play.turn()
    scene.play.answer(Done(call.id))
    assert scene.place == ""


def test_a_pod_that_is_turned_away_is_patient_from_then_on() -> None:
    """The room that it gives back wakes others, whose room would wake it."""
    scene = Scene(permit=WAITS)
    waiting(scene).reject("Flow", "no")
    scene.play.turn()
    queued = scene.context.queue.places.get("default/web")
    assert queued is not None
    assert queued.is_patient


@pytest.mark.parametrize("says", [{}, {"pre_flight": SUCCESS}])
def test_an_error_wakes_who_may_have_the_place(says: dict[str, Any]) -> None:
    scene = Scene(permit=WAITS, **says)
    woken = []
    scene.context.queue.move = lambda change, *_, **more: woken.append(  # type: ignore[method-assign, assignment]
        (change.trigger.label, more)
    )
    waiting(scene).preempt("Other")
    scene.play.turn()
    assert woken == [("AssignedPodDelete", {})]


def test_what_was_held_before_the_binding_of_a_pod_that_went_is_free_now() -> None:
    """Its place was free at once; what PreBind plugins held is once they have given it back."""
    scene = Scene(permit=WAITS, pre_flight=SUCCESS)
    woken: list[tuple[str, bool]] = []
    scene.context.queue.move = lambda change, *_, **__: woken.append(  # type: ignore[method-assign, assignment]
        (change.trigger.label, "Flow.unreserve" in scene.asked)
    )
    scene.play.turn(Gone(POD, a_pod("web").build()))
    assert scene.place == ""
    assert woken[-1] == ("AssignedPodDelete", True)


# --- the end -------------------------------------------------------------------------------------


def test_steps_after_a_binding_are_taken() -> None:
    class After(PostBindPlugin):
        name = "After"

        def post_bind(self, pod: Any, node: Any) -> Any:
            return late(Patch(kind=NODE, namespace="", name=node, body={}))()

    play = Play(a_node("n1"), plugins=[After])
    play.see(a_pod("web"))
    play.bound(play.the(Bind))
    (patch,) = play.of(Patch)
    assert patch.name == "n1"


def test_what_comes_after_a_binding_cannot_undo_it() -> None:
    class After(PostBindPlugin):
        name = "After"

        def post_bind(self, pod: Any, node: Any) -> Any:
            raise ValueError

    play = Play(a_node("n1"), plugins=[After])
    ear = Recorder()
    play.machine.context.observer = ear
    play.see(a_pod("web"))
    play.bound(play.the(Bind))
    assert ear.of("plugin_raised")[0][:2] == ("After", "postBind")
    assert ear.points("PostBind") == [("PostBind", "Success")]
    assert play.node_of("uid-web") == "n1"


def test_what_plugins_noted_of_the_attempt_goes_with_its_end() -> None:
    scene = Scene()
    info = scene.play.parts.cluster.placed["uid-web"]
    info.state = {"noted": 1}
    scene.play.bound(scene.play.the(Bind))
    assert info.state is None
