"""The binding cycle step by step: who is asked, what is told, and what is given back on the way."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from asched.core.cluster.facts import Done, Gone, Seen
from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import (
    Bind,
    Patch,
    PatchPodStatus,
    WaitFor,
)
from asched.core.framework.points import PostBindPlugin
from asched.core.framework.status import SUCCESS, Code, Status, failure, unschedulable
from asched.core.framework.waiting import Stage
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.unit.core.cycle.binding_scene import Scene, flow
from tests.unit.core.cycle.recording import Recorder

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


# --- waiting on Permit ---------------------------------------------------------------------------


def waiting(scene: Scene) -> Any:
    found = scene.context.waiting.get("uid-web")
    assert found is not None
    return found


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
