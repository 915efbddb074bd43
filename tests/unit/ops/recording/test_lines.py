"""What a recording says is what the machine was told."""

from typing import Any

import msgspec
import pytest

from asched.core.cluster import facts
from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.framework.effects import (
    AskExtender,
    Whole,
    Wholes,
)
from asched.core.model.kinds import (
    BY_RESOURCE,
    NODE,
    POD,
    Kind,
)
from asched.ops.recording.lines import LIST_PART, Turn, effects_bytes, turn_lines
from asched_lab.replay.lines import (
    FactReader,
    NotKept,
    PartLine,
    TurnLine,
    UnreadableLineError,
    asked_for,
    read_line,
)
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.filled import filled


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


@pytest.mark.parametrize("end", [b",0]", b",0,0,false]"], ids=["parts", "versions"])
def test_recordings_from_before_there_were_parts_or_versions_can_be_read(end: bytes) -> None:
    (line,) = turn_lines(Turn(0.0, True, 0, [Listed(POD, ())], []))
    older = line.replace(b',0,0,false,"v1"]', end)
    assert older != line
    turn = read_line(older)
    assert isinstance(turn, TurnLine)
    assert [FactReader().fact(raw, {}) for raw in turn.facts] == [Listed(POD, ())]


def test_what_a_coroutine_raised_keeps_its_name_and_words() -> None:
    (answer,) = through(facts.Raised(7, ZeroDivisionError("by nought")))

    assert f"{type(answer.error).__name__}: {answer.error}" == "ZeroDivisionError: by nought"


def test_what_no_recording_can_hold_is_named() -> None:
    (answer,) = through(facts.Returned(7, object()))

    assert isinstance(answer.value, NotKept)
    assert answer.value.type_name == "object"


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
