"""What a recording says is what the machine was told."""

from typing import Any

import msgspec
import pytest

from asched.core.cycle.orders import LeaderDied, QueueAmended
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    Effect,
    EmitEvent,
    Patch,
    PatchPodStatus,
    PodRef,
    Whole,
    Wholes,
)
from asched.core.framework.status import Code, Status
from asched.core.model.kinds import (
    BY_RESOURCE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    POD_GROUP_V1BETA1,
    Kind,
)
from asched.core.model.meta import ObjectReference
from asched.core.state import facts
from asched.core.state.facts import Fact, Gone, Listed, Seen, WallClock
from asched.ops.recording.asked import asked_for
from asched.ops.recording.lines import (
    LIST_PART,
    EndLine,
    FactReader,
    NotKept,
    PartLine,
    Turn,
    TurnLine,
    UnreadableLineError,
    effects_bytes,
    end_line,
    read_line,
    turn_lines,
)
from tests.builders import a_node, a_pod
from tests.ops.recording.filled import filled


def through(*told: Fact) -> list[Any]:
    """The same facts after they were written and read."""
    lists: dict[int, list[msgspec.Raw]] = {}
    for line in turn_lines(Turn(1.5, True, 3, list(told), [], resumed=True)):
        said = read_line(line)
        if isinstance(said, PartLine):
            lists.setdefault(said.number, []).extend(said.objects)
    assert isinstance(said, TurnLine)
    assert (said.at, said.idle, said.went_on, said.resumed) == (1.5, False, 3, True)
    return [FactReader().fact(raw, lists) for raw in said.facts]


@pytest.mark.parametrize("kind", BY_RESOURCE.values(), ids=lambda kind: kind.resource)
def test_every_field_of_every_kind_survives(kind: Kind) -> None:
    obj = filled(kind.record)

    assert through(Seen(kind, obj), Gone(kind, obj)) == [Seen(kind, obj), Gone(kind, obj)]


def test_a_long_list_is_told_in_parts() -> None:
    nodes = tuple(a_node(f"n{number}").build() for number in range(2 * LIST_PART + 7))
    pods = tuple(a_pod(f"p{number}").build() for number in range(3))
    told = [Listed(NODE, nodes), Seen(NODE, nodes[0]), Listed(POD, pods), Listed(NODE, nodes[:2])]

    lines = list(turn_lines(Turn(0.0, True, 0, list(told), [])))

    assert len(lines) == 3 + 1 + 1 + 1
    assert through(*told) == told


def test_a_list_that_came_in_parts_is_repeated_in_them() -> None:
    pods = tuple(a_pod(f"p{number}").build() for number in range(5))
    told = [Listed(POD, pods[:2], 0, has_more=True), Listed(POD, pods[2:], 1)]
    assert through(*told) == told


def test_the_version_in_which_the_api_tells_of_a_kind_is_repeated() -> None:
    told = [Listed(POD_GROUP_V1BETA1, ()), Listed(POD_GROUP, ())]
    assert through(*told) == told
    assert through(Listed(POD, ()))[0].kind is POD


@pytest.mark.parametrize("end", [b",0]", b",0,0,false]"], ids=["parts", "versions"])
def test_recordings_from_before_there_were_parts_or_versions_can_be_read(end: bytes) -> None:
    (line,) = turn_lines(Turn(0.0, True, 0, [Listed(POD, ())], []))
    older = line.replace(b',0,0,false,"v1"]', end)
    assert older != line
    turn = read_line(older)
    assert isinstance(turn, TurnLine)
    assert [FactReader().fact(raw, {}) for raw in turn.facts] == [Listed(POD, ())]


ANSWERS = [
    facts.Bound(7),
    facts.Refused(7, 409, "it says: \u201cno\u201d", "Conflict"),
    facts.Unknown(7, "the connection broke"),
    facts.Done(7),
    facts.Done(7, {"metadata": {"resourceVersion": "5"}}),
    facts.Replied(7, {"NodeNames": ["a"], "Error": ""}),
    facts.Replied(7, None),
    facts.ReadPlaced(7, "n1"),
    facts.ReadPending(7),
    facts.ReadGone(7),
    facts.TimedOut(7),
    facts.Returned(7, None),
    facts.Returned(7, [1, "two", {"three": 3.5}]),
    facts.Returned(7, Status(Code.UNSCHEDULABLE, ("no", "never"), "Mine")),
    WallClock(-3599.25),
    LeaderDied(4, died_young=True),
    QueueAmended(("default/a", "default/b")),
]


@pytest.mark.parametrize("fact", ANSWERS, ids=repr)
def test_an_answer_survives(fact: Fact) -> None:
    assert through(fact) == [fact]


def test_no_answer_is_forgotten() -> None:
    """Whoever adds one adds it here, too; what a coroutine raised has a test of its own."""
    concrete = {cls.__name__ for cls in facts.Answer.__subclasses__()}

    assert concrete - {type(fact).__name__ for fact in ANSWERS} == {"Raised"}


def test_what_a_coroutine_raised_keeps_its_name_and_words() -> None:
    (answer,) = through(facts.Raised(7, ZeroDivisionError("by nought")))

    assert f"{type(answer.error).__name__}: {answer.error}" == "ZeroDivisionError: by nought"


def test_what_no_recording_can_hold_is_named() -> None:
    (answer,) = through(facts.Returned(7, object()))

    assert isinstance(answer.value, NotKept)
    assert answer.value.type_name == "object"


REF = PodRef(namespace="default", name="web", uid="u-1", resource_version="12")
EFFECTS: list[tuple[Effect, str]] = [
    (Bind(pod=REF, node="n1", id=3, turn=2), "bind default/web to n1"),
    (
        EmitEvent(
            regarding=ObjectReference("v1", "Pod", "default", "web", "u-1"),
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="0/1 nodes are available",
            reporting_controller="asched",
        ),
        "event on default/web: FailedScheduling: 0/1 nodes are available",
    ),
    (
        PatchPodStatus(pod=REF, condition={"reason": "Unschedulable", "message": "no"}),
        "write status of default/web: Unschedulable: no",
    ),
    (
        PatchPodStatus(pod=REF, nominated_node_name="n1"),
        "write status of default/web: nominated to n1",
    ),
    (
        Patch(kind=PERSISTENT_VOLUME_CLAIM, namespace="default", name="c", body={"spec": {}}),
        "Patch default/c",
    ),
    (CallPlugin(plugin="Mine", call=lambda: None), "call plugin Mine"),  # type: ignore[arg-type,return-value]
]


@pytest.mark.parametrize(("effect", "words"), EFFECTS, ids=lambda one: type(one).__name__)
def test_an_effect_can_be_told(effect: Effect, words: str) -> None:
    (asked,) = asked_for(effects_bytes([effect]))

    assert asked.words() == words
    assert asked.effect_id == effect.id


def test_whole_objects_and_certificates_stay_out() -> None:
    from asched.core.config.v1 import Extender, ExtenderTLSConfig

    extender = Extender(
        url_prefix="https://judge.example/", tls_config=ExtenderTLSConfig(key_data=b"SECRET")
    )
    body = {"Pod": Whole(POD, "default/web"), "Nodes": Wholes(NODE, ("n1", "n2"))}
    encoded = effects_bytes([AskExtender(extender=extender, verb="filter", body=body)])

    assert b"judge.example" in encoded
    assert b"SECRET" not in encoded
    assert b"U0VDUkVU" not in encoded
    assert asked_for(encoded)[0].subject == "default/web"


def test_when_something_was_asked_is_no_part_of_what() -> None:
    early = Bind(pod=REF, node="n1", id=3, turn=2)
    late = msgspec.structs.replace(early, id=9, turn=8)

    first, second = (asked_for(effects_bytes([effect]))[0] for effect in (early, late))

    assert (first.key, first.what) == (second.key, second.what)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"at":"noon"}', b'{"format":1}', b'{"turns":null}', b"\xff\xfe"]
)
def test_nonsense_is_refused(line: bytes) -> None:
    with pytest.raises(UnreadableLineError):
        read_line(line)


@pytest.mark.parametrize(
    "fact",
    [
        b"[]",
        b"7",
        b'["Seen"]',
        b'["Bound"]',
        b'["Nope",1]',
        b'["Seen","Pod",7]',
    ],
)
def test_a_fact_that_is_none_is_refused(fact: bytes) -> None:
    with pytest.raises(UnreadableLineError):
        FactReader().fact(msgspec.Raw(fact), {})


def test_a_kind_that_nobody_follows_is_left_out_until_it_is_learnt() -> None:
    unicorn = Kind("Unicorn", "unicorns", "example.org/v1", type(filled_node()), False, "Unicorn")
    (line,) = turn_lines(Turn(0.0, True, 0, [Seen(unicorn, filled_node())], []))
    said, reader = read_line(line), FactReader()
    assert isinstance(said, TurnLine)

    before = reader.fact(said.facts[0], {})
    reader.learn([unicorn])

    assert before is None
    assert reader.fact(said.facts[0], {}) == Seen(unicorn, filled_node())


def filled_node() -> Any:
    return filled(NODE.record)


def test_the_end_is_told() -> None:
    assert read_line(end_line(12)) == EndLine(12)
