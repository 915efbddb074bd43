"""A recording repeats its decisions, and whatever does not is found and explained."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asched.core.cluster.facts import Fact, Seen
from asched.core.cycle.orders import LeadersEnded
from asched.core.model.kinds import NODE
from asched.host.assemble import build_runners, reconfigured
from asched.ops.recording.lines import effects_bytes
from asched_lab.replay.comparing import ELSEWHERE, NOW, THEN
from asched_lab.replay.lines import Recording, UnusableRecordingError
from asched_lab.replay.rebuilt import Rebuilt
from asched_lab.replay.replay import Replayed, replay
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.recorded import (
    NAME,
    NOBODY,
    a_catalogue,
    a_configuration,
    a_machine,
    ours,
    record,
)
from tests.unit.ops.recording.streams import nodes, pods


def some_turns() -> Iterator[list[Fact]]:
    yield nodes()
    yield pods(30)
    yield [*pods(10, start=30), Seen(NODE, a_node("n4").allocatable(cpu="2", pods="9").build())]
    yield [ours(a_pod("huge").requests(cpu="64"))]


def kinds(done: Replayed) -> list[str]:
    assert done.findings is not None
    return [one.kind for one in done.findings.differences]


# --- the driver ----------------------------------------------------------------------------------


# --- equal ---------------------------------------------------------------------------------------


def test_what_was_recorded_is_decided_again(tmp_path: Path) -> None:
    done = replay(Recording(record(tmp_path / "r", some_turns())), NOBODY)

    assert done.is_equal
    assert done.bindings == 40
    assert done.facts == 4 + 30 + 11 + 1 + 40  # and the answers
    assert 0.3 <= done.recorded_s < 60.0


def test_where_turns_ended_is_part_of_it(tmp_path: Path) -> None:
    """1. A turn ends by the clock in the midst of 30 pods. 2. A node comes. 3. Some of the others
    go there: with turns that end elsewhere they would not.
    """
    recording = Recording(record(tmp_path / "r", some_turns()))
    granted = [turn.went_on for turn in recording]
    assert max(granted) < 30, "no turn took all pods"

    rebuilt = Rebuilt(recording.head, NOBODY)
    differing = [
        turn.number
        for turn in recording
        if effects_bytes(rebuilt.turn(turn._replace(went_on=1000))) != turn.effects
    ]

    assert differing, "the test would not notice"
    assert replay(recording, NOBODY).is_equal


def test_a_leaders_death_and_a_reload_are_repeated(tmp_path: Path) -> None:
    config = a_configuration()
    machine = a_machine(config)
    cluster, nominator = machine.context.cluster, machine.context.nominator

    def turns() -> Iterator[list[Fact]]:
        from asched.host.assemble import Parts

        machine.is_active = False
        yield [*nodes(), *pods(12)]
        machine.is_active = True
        yield [LeadersEnded(3)]
        packing = packs()
        runners = build_runners(packing, Parts(cluster, nominator))
        yield [reconfigured(packing, runners, (), machine.context.observer), *pods(12, start=12)]

    path = record(tmp_path / "r", turns(), config=config, machine=machine)

    assert replay(Recording(path), NOBODY).is_equal
    without = gzip.decompress(path.read_bytes()).replace(b'["LeadersEnded",3]', b"")
    (tmp_path / "without").write_bytes(gzip.compress(without))
    assert not replay(Recording(tmp_path / "without"), NOBODY).is_equal


def packs() -> Any:
    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}
    entry = {"name": "NodeResourcesFit", "args": args}
    return a_configuration(profiles=[{"schedulerName": NAME, "pluginConfig": [entry]}])


# --- plugins of users ----------------------------------------------------------------------------


class Lots:
    """Draws lots: no recording of it can be repeated."""

    numbers = itertools.count()

    def score(self, pod: Any, node: Any) -> int:
        return hash((next(self.numbers), node.name)) % 100


def test_planted_chance_is_noticed(tmp_path: Path) -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "Lots", "weight": 50}]}}
    config = a_configuration(profiles=[{"schedulerName": NAME, "plugins": enabled}])
    path = record(tmp_path / "r", [nodes(), pods(9)], config=config, catalogue=a_catalogue(Lots))

    done = replay(Recording(path), a_catalogue(Lots))

    assert not done.is_equal
    assert ELSEWHERE in kinds(done)
    assert any("Lots" in one.why for one in done.findings.differences)  # type: ignore[union-attr]


# --- another configuration -----------------------------------------------------------------------


def test_another_configuration_is_compared_decision_by_decision(tmp_path: Path) -> None:
    """Spread was recorded; packed, pods go together. The cluster stays the recorded one: where a
    pod was bound is where it counts.
    """
    path = record(tmp_path / "r", [nodes(), pods(3), pods(3, start=3)])

    done = replay(Recording(path), NOBODY, packs())

    findings = done.findings
    assert findings is not None
    assert findings.first
    assert findings.counts[ELSEWHERE] >= 3
    assert not findings.counts[THEN]
    assert not findings.counts[NOW]
    first = next(one for one in findings.differences if one.kind == ELSEWHERE)
    assert first.then.startswith(f"bind {first.subject} to n")
    assert "NodeResourcesFit" in first.why


def test_a_pod_that_fits_no_more_is_told_with_the_reason(tmp_path: Path) -> None:
    strict = {"addedAffinity": must_be("n1")}
    entry = {"name": "NodeAffinity", "args": strict}
    config = a_configuration(profiles=[{"schedulerName": NAME, "pluginConfig": [entry]}])
    path = record(tmp_path / "r", [nodes(cpu="1", memory="1Gi", pods="1"), pods(3)])

    done = replay(Recording(path), NOBODY, config)

    assert done.findings is not None
    counts = done.findings.counts
    assert counts[THEN] == 2, "one of three fits on n1"
    missed = [one for one in done.findings.differences if one.kind == THEN]
    assert all("0/4 nodes are available" in one.why for one in missed)
    elsewhere = [one for one in done.findings.differences if one.kind == ELSEWHERE]
    assert all("is refused by NodeAffinity" in one.why for one in elsewhere)


def must_be(node: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = [{"matchFields": fields}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


# --- files ---------------------------------------------------------------------------------------


def test_a_truncated_recording_is_repeated_as_far_as_it_goes(tmp_path: Path) -> None:
    path = record(tmp_path / "r", itertools.chain(some_turns(), ([] for _ in range(300))))
    body = gzip.decompress(path.read_bytes())
    cut = body[: body.rindex(b'{"at"') - 10]
    path.write_bytes(gzip.compress(cut)[:-20])

    recording = Recording(path)
    done = replay(recording, NOBODY)

    assert done.is_equal
    assert done.bindings == 40
    assert "ends in the middle" in recording.cut_off


def test_a_format_of_another_time_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    path = record(tmp_path / "r", [])
    body = gzip.decompress(path.read_bytes()).replace(b'"format":1', b'"format":99')
    path.write_bytes(gzip.compress(body))

    with pytest.raises(UnusableRecordingError, match="format 99, and this asched reads 1"):
        Recording(path)
