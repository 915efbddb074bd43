"""An exception costs one attempt of what it is about, whatever raised it; broken sums end it all.

The exceptions are planted in values that the machine receives: they raise when they are used.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cluster.cluster import InvariantError
from asched.core.cluster.facts import Bound, Seen
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.framework.points import PermitPlugin, ReservePlugin
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD, PROVISIONING_REQUEST
from asched.core.model.workload import CoschedulingGroup
from tests.builders import PodBuilder, a_node, a_pod, room
from tests.playbook import GROUP_LABEL, Batch, Play, request_play


class Mine(int):
    """A number that raises when it is used, while `armed`."""

    armed = False

    def _use(self, name: str, *others: Any) -> Any:
        if Mine.armed:
            raise ArithmeticError("planted")
        return getattr(int, name)(self, *others)


def _using(name: str) -> Callable[..., Any]:
    return lambda self, *others: self._use(name, *others)


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__sub__", "__rsub__", "__add__"):
    setattr(Mine, _name, _using(_name))
for _name in ("__radd__", "__neg__", "__hash__", "__mul__", "__rmul__", "__index__"):
    setattr(Mine, _name, _using(_name))


class Text(str):
    """The same for words, where they are looked up."""

    __slots__ = ()

    def __hash__(self) -> int:
        if Mine.armed:
            raise ArithmeticError("planted")
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)


@pytest.fixture(autouse=True)
def disarmed() -> Any:
    yield
    Mine.armed = False


class Ear(Observer):
    def __init__(self) -> None:
        self.parts: list[str] = []

    def contained(self, part: str, about: str, error: BaseException) -> None:
        assert error.__traceback__ is not None, "a log line needs a traceback"
        self.parts.append(part)


def listening(play: Play) -> Ear:
    play.machine.context.observer = ear = Ear()
    return ear


def plain(name: str, **spec: Any) -> PodBuilder:
    return a_pod(name).requests(cpu="1").spec(schedulerName="default-scheduler", **spec)


class Vague(PermitPlugin, ReservePlugin):
    """Answers what no arithmetic of the scheduler can use, for pods labelled vague."""

    name = "Vague"
    given_back: list[str] = []  # noqa: RUF012 - the machine makes its own instances

    def reserve(self, pod: Any, node: str, data: Any) -> Status:
        return SUCCESS

    def unreserve(self, pod: Any, node: str) -> None:
        Vague.given_back.append(pod.pod.metadata.name)

    def permit(self, pod: Any, node: str) -> tuple[Status, Any]:
        if "vague" in pod.pod.labels:
            return Status(Code.WAIT), "soon"
        return SUCCESS, 0.0


def test_an_exception_of_the_cycle_costs_the_attempt_and_the_place_is_given_back() -> None:
    Vague.given_back.clear()
    play = Play(a_node("n1").allocatable(cpu="1", memory="4Gi", pods="10"), plugins=[Vague])
    ear = listening(play)
    play.see(plain("bad").labels({"vague": "y"}))
    assert ear.parts == ["schedule"]
    assert Vague.given_back == ["bad"], "Unreserve ran"
    assert any("internal error: TypeError" in note for note in play.notes())
    play.turn(after_s=3.0)
    assert ear.parts == ["schedule", "schedule"], "it is tried again after its backoff"
    play.see(plain("good"))
    assert [bind.pod.name for bind in play.of(Bind)] == ["good"], "the room is there for others"


def a_gang(play: Batch, name: str, minimum: int) -> CoschedulingGroup:
    play.gang(name, minimum=1)
    group: CoschedulingGroup = play.parts.cluster.get(COSCHEDULING_GROUP, f"default/{name}")
    group = replace(group, spec=replace(group.spec, min_member=Mine(minimum)))
    play.go(Seen(COSCHEDULING_GROUP, group))
    return group


def test_an_exception_about_a_group_costs_its_attempt_and_none_of_others() -> None:
    play = Batch(room("n1", cpu=4))
    ear = listening(play)
    group = a_gang(play, "g", 2)
    members = [plain(f"g{n}").labels({GROUP_LABEL: "g"}) for n in range(2)]
    play.machine.is_active = False
    play.show(*members, plain("other"))
    play.machine.is_active, Mine.armed = True, True
    play.go()
    assert play.places == {"other": "n1"}
    assert ear.parts
    assert not [info for info in play.parts.cluster.placed.values() if info.assumed]
    Mine.armed = False
    spec = replace(group.spec, min_member=1)
    play.go(Seen(COSCHEDULING_GROUP, replace(group, spec=spec)))
    play.pass_time(60)
    assert set(play.places) == {"other", "g0", "g1"}, "its gate raised, too: a change lifts that"


def test_an_exception_about_an_incomplete_group_keeps_no_other_from_its_event() -> None:
    play = Batch(room("n1", cpu=4))
    ear = listening(play)
    a_gang(play, "bad", 2)
    play.show(plain("b0").labels({GROUP_LABEL: "bad"}))
    play.gang("short", plain("s0"), minimum=2)
    Mine.armed = True
    notes: list[str] = []
    for _ in range(6):
        play.turn(after_s=10.1)
        notes += [event.note for event in play.of(EmitEvent)]
    assert any("1 of minMember 2 pods exist" in note for note in notes)
    assert "groups" in ear.parts
    play.show(plain("other"))
    assert play.places["other"] == "n1"


def test_an_exception_about_a_request_is_followed_by_a_pause_and_others_are_answered() -> None:
    play = request_play(a_node("n1").allocatable(cpu="4", memory="4Gi", pods="10"))
    ear = listening(play)
    play.template()
    play.machine.is_active = False
    play.ask("bad")
    bad = play.record("bad")
    sets = tuple(replace(one, count=Mine(one.count)) for one in bad.spec.pod_sets)
    play.turn(Seen(PROVISIONING_REQUEST, replace(bad, spec=replace(bad.spec, pod_sets=sets))))
    play.ask("good")
    play.machine.is_active, Mine.armed = True, True
    for _ in range(3):
        play.turn(after_s=0.1)
    assert play.settle("good")["Provisioned"][0] == "True"
    assert ear.parts == ["requests"], "no more than one try within the pause"
    assert play.held() == {"n1": 2}
    Mine.armed = False
    play.turn(after_s=2.0)
    play.turn()
    assert play.settle("bad")["Provisioned"][0] == "True"


def test_an_exception_in_the_search_for_a_start_leaves_the_pod_its_verdict() -> None:
    play = Batch(room("n1", cpu=1))
    ear = listening(play)
    play.show(plain("first", activeDeadlineSeconds=100))
    first = play.parts.cluster.pods_seen["default/first"]
    began = Text(first.status.start_time)
    play.go(Seen(POD, replace(first, status=replace(first.status, start_time=began))))
    Mine.armed = True
    play.show(plain("second"))
    assert "Insufficient cpu" in play.told["second"]
    assert set(ear.parts) == {"starts"}
    Mine.armed = False
    play.end("first")
    play.pass_time(60)
    assert play.places["second"] == "n1"


def test_amounts_beyond_64_bits_downwards_are_clamped() -> None:
    play = Batch(room("n1", cpu=2))
    ear = listening(play)
    play.show(plain("first", activeDeadlineSeconds=100), plain("fills", activeDeadlineSeconds=9))
    least = plain("least").requests(cpu="3", memory="-99999999999E").build()
    play.go(Seen(POD, least))
    play.show(plain("last"))
    play.pass_time(5)
    assert not ear.parts
    assert "last" in play.told


def test_a_number_beyond_64_bits_in_an_object_is_noted_and_forgotten() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="4Gi", pods="10"))
    play.turn(Seen(POD, plain("big").build()))
    (bind,) = play.of(Bind)
    play.turn(Bound(bind.id))
    pod = play.parts.cluster.pods_seen["default/big"]
    huge = replace(pod.metadata, generation=2**70)
    play.turn(Seen(POD, replace(pod, metadata=huge).on("n1")))
    spec: Any = replace(CoschedulingGroup().spec, min_member=2**70)
    group = CoschedulingGroup(metadata=replace(huge, name="g"), spec=spec)
    play.turn(Seen(COSCHEDULING_GROUP, group))
    play.turn(
        Seen(COSCHEDULING_GROUP, replace(group, metadata=replace(huge, name="g", uid="other")))
    )
    play.lose(pod)
    play.turn(Seen(POD, plain("next").build()))
    assert [bind.pod.name for bind in play.of(Bind)] == ["next"]


def test_a_placed_pod_whose_class_cannot_be_made_is_left_out_and_reported() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="4Gi", pods="10"))
    ear = listening(play)
    there = plain("there").build().on("n1")
    odd = replace(there, spec=replace(there.spec, priority=Mine(0)))
    play.turn(Seen(POD, odd), Seen(POD, plain("other").build()))
    assert ear.parts == ["intake"]
    assert [bind.pod.name for bind in play.of(Bind)] == ["other"]


def test_sums_that_are_half_moved_end_the_process_and_are_named() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="4Gi", pods="10"))
    node = a_node("n2").allocatable(cpu="1", memory="4Gi", pods="10").build()
    offered = {**node.status.allocatable, "memory": Text("4Gi")}
    odd = replace(node, status=replace(node.status, allocatable=offered))
    Mine.armed = True
    with pytest.raises(InvariantError, match=r"Node n2 is wholly known.*planted"):
        play.turn(Seen(NODE, odd))
    Mine.armed = False
    with pytest.raises(InvariantError, match="Node n2"):
        play.turn()
