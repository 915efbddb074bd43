"""The scheduling cycle step by step: what each point is asked, told and made of."""

from typing import Any, ClassVar

import pytest

from asched.core.cycle.history import DecisionStep
from asched.core.cycle.scheduling import (
    Background,
    out_of_turn,
    rejected,
    schedule_one,
)
from asched.core.framework.effects import Bind, EmitEvent, Pause
from asched.core.framework.points import (
    Nomination,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    ReservePlugin,
)
from asched.core.framework.results.nominated_filter import FOR_A_MOMENT
from asched.core.framework.status import (
    SUCCESS,
    Code,
    Status,
    failure,
    pending,
    unschedulable,
)
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX
from asched.core.model.kinds import POD
from asched.core.state.budget import SLICES_MAX, OutOfTurn
from asched.core.state.facts import Gone, Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.contexts import a_context
from tests.core.cycle.playbook import Play
from tests.core.cycle.recording import Recorder


class Reserving(ReservePlugin, PermitPlugin):
    reserves: ClassVar[Status] = SUCCESS
    permits: ClassVar[Any] = (SUCCESS, 0.0)
    asked: ClassVar[list[str]] = []

    def reserve(self, pod: Any, node: Any, data: Any) -> Status:
        self.asked.append(f"{self.name} reserve")
        return self.reserves

    def unreserve(self, pod: Any, node: Any) -> None:
        self.asked.append(f"{self.name} unreserve")

    def permit(self, pod: Any, node: Any) -> Any:
        self.asked.append(f"{self.name} permit")
        return self.permits


def a_plugin(name: str, **said: Any) -> Any:
    return type(name, (Reserving,), {"name": name, **said})


class Scene:
    """A pod that is tried on the only node, and what everybody hears."""

    def __init__(self, *plugins: Any, cpu: str = "1", see: bool = True) -> None:
        self.asked: list[str] = []
        for plugin in plugins:
            plugin.asked = self.asked
        self.play = Play(a_node("n1").allocatable(cpu="4"), plugins=plugins)
        self.context = self.play.machine.context
        self.ear = Recorder()
        self.context.observer = self.ear
        self.pod = a_pod("web").requests(cpu=cpu)
        if see:
            self.play.see(self.pod)

    def said(self) -> str:
        (event,) = self.play.of(EmitEvent)
        return event.note

    def rejectors(self) -> tuple[frozenset[str], frozenset[str]]:
        queued = self.context.queue.places.get("default/web")
        assert queued is not None
        return queued.rejected_by, queued.pending_on

    @property
    def place(self) -> str:
        return self.play.node_of("uid-web")


def test_reserve_and_permit_are_asked_in_order_and_told() -> None:
    scene = Scene(a_plugin("A"), a_plugin("B"))
    assert scene.asked == ["A reserve", "B reserve", "A permit", "B permit"]
    assert scene.ear.points("Reserve", "Permit") == [("Reserve", "Success"), ("Permit", "Success")]
    assert len(scene.ear.of("algorithm_ran")) == 1
    assert scene.place == "n1"
    assert len(scene.play.of(Bind)) == 1


def test_points_without_plugins_are_passed() -> None:
    assert Scene().ear.points("Reserve", "Permit") == [
        ("Reserve", "Success"),
        ("Permit", "Success"),
    ]


@pytest.mark.parametrize(
    ("status", "words", "blamed"),
    [
        (unschedulable("no", "room"), "0/1 nodes are available: 1 no, 1 room.", ({"A"}, set())),
        (pending("soon"), "0/1 nodes are available: 1 soon.", (set(), {"A"})),
        (failure("oops"), 'running Reserve plugin "A": oops', (set(), set())),
    ],
)
def test_the_first_that_cannot_reserve_ends_it_and_all_is_given_back(
    status: Status, words: str, blamed: Any
) -> None:
    scene = Scene(a_plugin("A", reserves=status), a_plugin("B"))
    assert scene.asked == ["A reserve", "B unreserve", "A unreserve"]
    assert (scene.place, scene.said()) == ("", words)
    assert scene.rejectors() == blamed
    assert scene.ear.points("Reserve", "Permit") == [("Reserve", status.code.text)]


def test_the_first_that_does_not_permit_ends_it_and_all_is_given_back() -> None:
    scene = Scene(a_plugin("A", permits=(unschedulable("no"), 0.0)), a_plugin("B"))
    assert scene.asked[-3:] == ["A permit", "B unreserve", "A unreserve"]
    assert (scene.place, scene.rejectors()) == ("", ({"A"}, set()))
    assert scene.ear.points("Permit") == [("Permit", "Unschedulable")]


def test_one_that_waits_does_not_keep_the_next_from_saying_no() -> None:
    wait = (Status(Code.WAIT), 10.0)
    scene = Scene(a_plugin("A", permits=wait), a_plugin("B", permits=(unschedulable("no"), 0.0)))
    assert scene.place == ""
    scene = Scene(a_plugin("A", permits=wait), a_plugin("B"))
    assert scene.ear.points("Permit") == [("Permit", "Wait")]
    waiting = scene.context.waiting.get("uid-web")
    assert waiting is not None
    assert waiting.deadlines == {"A": (scene.play.now_s + 10.0, 10.0)}


def test_nobody_waits_longer_than_may_be() -> None:
    scene = Scene(a_plugin("A", permits=(Status(Code.WAIT), 1e9)))
    waiting = scene.context.waiting.get("uid-web")
    assert waiting is not None
    assert waiting.deadlines["A"][1] == PERMIT_TIMEOUT_S_MAX


def test_who_gets_its_place_is_promised_nothing_more() -> None:
    scene = Scene(see=False)
    scene.play.see(scene.pod.status(nominatedNodeName="n1"))
    assert scene.place == "n1"
    assert scene.context.nominator.node_of("uid-web") is None


def test_a_decision_is_handed_on_with_the_columns_as_it_saw_them() -> None:
    scene = Scene(see=False)
    counts = []
    scene.context.on_decision = lambda attempt, decision: counts.append(
        (attempt.pod.key, decision.node, scene.play.parts.cluster.pods_on(0).keys() != set())
    )
    scene.play.see(scene.pod)
    assert counts == [("default/web", "n1", False)]


# --- no node -------------------------------------------------------------------------------------


class Room(PostFilterPlugin):
    name = "Room"
    preempts = True
    result: ClassVar[PostFilterResult]
    seeds: ClassVar[list[int]] = []

    def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any:
        self.seeds.append(trial.seed)
        yield from ()
        return self.result


def a_room(**fields: Any) -> Any:
    result = PostFilterResult(**{"status": SUCCESS, **fields})
    return type("Room", (Room,), {"result": result, "seeds": []})


def test_without_a_node_others_are_asked_to_make_room() -> None:
    room = a_room(nomination=Nomination("n1"), victims=("default/a", "default/b"))
    scene = Scene(room, see=False)
    scene.play.see(a_pod("a").on("elsewhere").priority(3))
    scene.context.seed = 100
    scene.play.see(a_pod("web").requests(cpu="99"))
    assert scene.ear.of("preempting") == [(2,)]
    assert len(scene.ear.of("preemption_tried")) == 1
    assert scene.ear.points("PostFilter") == [("PostFilter", "Success")]
    assert room.seeds == [101]
    lines = {line.step: line.details for line in scene.context.histories.of("default/web")}
    assert lines[DecisionStep.NOMINATED] == ("n1", (("default/a", 3),))
    assert scene.context.nominator.node_of("uid-web") == "n1"


def test_who_makes_no_room_is_told_and_nobody_preempts() -> None:
    quiet = type("Quiet", (a_room(status=unschedulable("no room")),), {"preempts": False})
    quiet.name = "Room"
    plugins = {
        "multiPoint": {"enabled": [{"name": "Room"}], "disabled": [{"name": "DefaultPreemption"}]}
    }
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    play = Play(a_node("n1"), plugins=[quiet], profiles=[profile])
    ear = Recorder()
    play.machine.context.observer = ear
    play.see(a_pod("web").requests(cpu="99"))
    assert (ear.of("preempting"), ear.of("preemption_tried")) == ([], [])
    assert play.of(EmitEvent)[0].note.endswith(", no room")


def steps_ending(status: Any) -> Any:
    yield from ()
    if isinstance(status, Exception):
        raise status
    return status


@pytest.mark.parametrize(
    ("status", "result", "code"),
    [
        (SUCCESS, "success", Code.SUCCESS),
        (Status(Code.SKIP), "success", Code.SKIP),
        (failure("x"), "error", Code.ERROR),
        (ValueError("x"), "error", Code.ERROR),
    ],
)
def test_evictions_end_in_success_or_error(status: Any, result: str, code: Code) -> None:
    context, attempt = a_context()
    ear = Recorder()
    context.observer = ear
    with pytest.raises(StopIteration) as end:
        next(Background(context, attempt.pod, steps_ending(status)).run())
    assert end.value.value[0].code is code
    assert end.value.value[1] is attempt.pod
    assert [given[0] for given in ear.of("preempted")] == [result]


# --- no attempt ----------------------------------------------------------------------------------


def test_a_pod_that_is_going_is_skipped_and_told_so() -> None:
    context, attempt = a_context()
    going = a_pod("web").metadata(resourceVersion="6", deletionTimestamp="2026-01-01T00:00:00Z")
    context.cluster.apply(Seen(POD, going.build()))
    assert tried(context, attempt) == ["skip schedule deleting pod: default/web"]


def test_a_pod_that_went_or_has_its_place_is_skipped_in_silence() -> None:
    context, attempt = a_context()
    context.cluster.apply(Gone(POD, attempt.pod))
    assert tried(context, attempt) == []
    context, attempt = a_context()
    context.cluster.assume(attempt.info, "n1")
    assert tried(context, attempt) == []
    context, attempt = a_context()
    ending = a_pod("web").metadata(uid="another", deletionTimestamp="2026-01-01T00:00:00Z")
    context.cluster.apply(Seen(POD, ending.build()))
    assert tried(context, attempt) == [], "a namesake is going"


def tried(context: Any, attempt: Any) -> list[str]:
    """What is said of an attempt that is none; the queue is told that it ended."""
    done: list[str] = []
    context.queue.done = done.append
    effects = list(schedule_one(context, attempt))
    assert done == ["uid-web"]
    return [effect.note for effect in effects]


def test_an_attempt_that_is_out_of_turn_pauses_so_many_times() -> None:
    _, attempt = a_context()
    attempt.slices = SLICES_MAX - 2
    (pause,) = out_of_turn(attempt, OutOfTurn("too much"))
    assert isinstance(pause, Pause)
    with pytest.raises(StopIteration) as end:
        next(out_of_turn(attempt, OutOfTurn("too much")))
    assert end.value.value.is_error
    assert end.value.value.message == "too much"


class Verdict:
    """A rejection, as far as failures read it."""

    def __init__(self, *overrides: Status) -> None:
        self.overrides = dict(enumerate(overrides))
        self.unschedulable_plugins, self.pending_plugins = frozenset({"Fit"}), frozenset({"Later"})

    def message(self, more: str) -> str:
        return f"no node. {more}"


def test_a_rejection_is_told_with_what_post_filter_said() -> None:
    verdict: Any = Verdict()
    plain = rejected(verdict, None)
    assert (plain.message, plain.nomination.node) == ("no node. ", "")
    assert (plain.rejectors, plain.pending) == ({"Fit"}, {"Later"})
    result = PostFilterResult(status=unschedulable("full"), nomination=Nomination("n1"))
    told = rejected(verdict, result)
    assert (told.message, told.nomination.node) == ("no node. full", "n1")


def test_a_pod_that_is_kept_off_for_a_moment_comes_back_by_itself() -> None:
    for status in FOR_A_MOMENT:
        verdict: Any = Verdict(unschedulable("x"), status)
        told = rejected(verdict, None)
        assert (told.rejectors, told.pending) == (frozenset(), frozenset())
