"""A recording repeats its decisions, and whatever does not is found and explained."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asched.core.cycle.orders import LeaderDied
from asched.core.framework.effects import Bind, CallPlugin, Effect
from asched.core.framework.status import Status
from asched.core.model.kinds import NODE
from asched.core.state.facts import Bound, Fact, Refused, Returned, Seen, Unknown
from asched.host.assemble import build_runners, reconfigured
from asched.ops.recording.lines import UnusableRecordingError, effects_bytes
from asched_lab.replay.comparing import ELSEWHERE, NOW, OTHER, THEN, TIE
from asched_lab.replay.reading import Recording
from asched_lab.replay.rebuilt import Rebuilt
from asched_lab.replay.replay import Replayed, nodes_of, replay
from tests.builders import a_node, a_pod
from tests.ops.recording.recorded import (
    NAME,
    NOBODY,
    a_catalogue,
    a_configuration,
    a_head,
    a_machine,
    bound,
    ours,
    record,
)
from tests.ops.recording.streams import nodes, pods


def some_turns() -> Iterator[list[Fact]]:
    yield nodes()
    yield pods(30)
    yield [*pods(10, start=30), Seen(NODE, a_node("n4").allocatable(cpu="2", pods="9").build())]
    yield [ours(a_pod("huge").requests(cpu="64"))]


def kinds(done: Replayed) -> list[str]:
    assert done.findings is not None
    return [one.kind for one in done.findings.differences]


# --- the driver ----------------------------------------------------------------------------------


def test_a_driver_needs_a_few_lines(tmp_path: Path) -> None:
    """All there is to a replay: a machine of the head, and turn after turn."""
    recording = Recording(record(tmp_path / "r", some_turns()))
    rebuilt = Rebuilt(recording.head, NOBODY)
    placed = 0

    for turn in recording:
        effects = rebuilt.turn(turn)
        assert effects_bytes(effects) == turn.effects
        placed += sum(isinstance(effect, Bind) for effect in effects)

    assert placed == 40
    assert not recording.trouble


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


def test_answers_that_say_no_or_nothing_are_repeated(tmp_path: Path) -> None:
    numbers = itertools.count()

    def answering(effect: Effect) -> Iterator[Fact]:
        if isinstance(effect, Bind):
            fates = (
                Bound(effect.id),
                Refused(effect.id, 409, "somebody else was first", "Conflict"),
                Unknown(effect.id, "the connection broke"),
            )
            yield fates[next(numbers) % 3]

    done = replay(Recording(record(tmp_path / "r", some_turns(), answering=answering)), NOBODY)

    assert done.is_equal
    assert done.bindings > 40


def test_a_leaders_death_and_a_reload_are_repeated(tmp_path: Path) -> None:
    config = a_configuration()
    machine = a_machine(config)
    cluster, nominator = machine.context.cluster, machine.context.nominator

    def turns() -> Iterator[list[Fact]]:
        from asched.host.assemble import Parts

        machine.is_active = False
        yield [*nodes(), *pods(12)]
        machine.is_active = True
        yield [LeaderDied(5, died_young=True)]
        packing = packs()
        runners = build_runners(packing, Parts(cluster, nominator))
        yield [reconfigured(packing, runners, (), machine.context.observer), *pods(12, start=12)]

    path = record(tmp_path / "r", turns(), config=config, machine=machine)

    assert replay(Recording(path), NOBODY).is_equal
    without = gzip.decompress(path.read_bytes()).replace(b'["LeaderDied",5,true]', b"")
    (tmp_path / "without").write_bytes(gzip.compress(without))
    assert not replay(Recording(tmp_path / "without"), NOBODY).is_equal


def packs() -> Any:
    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}
    entry = {"name": "NodeResourcesFit", "args": args}
    return a_configuration(profiles=[{"schedulerName": NAME, "pluginConfig": [entry]}])


# --- plugins of users ----------------------------------------------------------------------------


class Slow:
    """Asks the outside before a pod is bound, and only runs where it is recorded."""

    runs = 0

    async def pre_bind(self, pod: Any, node: Any) -> Status | None:
        type(self).runs += 1
        return None


def with_plugin() -> Any:
    enabled = {"multiPoint": {"enabled": [{"name": "Slow"}]}}
    return a_configuration(profiles=[{"schedulerName": NAME, "plugins": enabled}])


def recorded_with_plugin(path: Path) -> Path:
    def answering(effect: Effect) -> Iterator[Fact]:
        yield from bound(effect)
        if isinstance(effect, CallPlugin):
            yield Returned(effect.id, None)

    return record(
        path,
        [nodes(), pods(5)],
        config=with_plugin(),
        catalogue=a_catalogue(Slow),
        answering=answering,
    )


def test_coroutines_are_answered_from_the_recording(tmp_path: Path) -> None:
    path = recorded_with_plugin(tmp_path / "r")
    before = Slow.runs

    done = replay(Recording(path), a_catalogue(Slow))

    assert done.is_equal
    assert done.bindings == 5
    assert Slow.runs == before


def test_a_plugin_that_is_not_here_is_asked_for(tmp_path: Path) -> None:
    path = recorded_with_plugin(tmp_path / "r")

    with pytest.raises(UnusableRecordingError, match=r"Slow \(of a test\); give --plugin"):
        replay(Recording(path), NOBODY)


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


class OnceOnly:
    """Is another one the first time it is asked in a process: not to be caught twice."""

    asked = 0

    def score(self, pod: Any, node: Any) -> int:
        type(self).asked += 1
        return 100 if node.name == "n1" and type(self).asked <= 4 else 0


def test_chance_that_does_not_come_back_is_told_apart(tmp_path: Path) -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "OnceOnly", "weight": 50}]}}
    config = a_configuration(profiles=[{"schedulerName": NAME, "plugins": enabled}])
    catalogue = a_catalogue(OnceOnly)
    OnceOnly.asked = 1000
    path = record(tmp_path / "r", [nodes(), pods(4)], config=config, catalogue=catalogue)
    OnceOnly.asked = 0

    done = replay(Recording(path), catalogue)

    assert done.is_unsteady
    assert not done.is_equal


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


def test_the_same_configuration_again_is_no_difference(tmp_path: Path) -> None:
    path = record(tmp_path / "r", some_turns())

    done = replay(Recording(path), NOBODY, a_configuration())

    assert done.is_equal
    assert kinds(done) == []


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


def test_a_pod_that_would_fit_now_is_told_once(tmp_path: Path) -> None:
    """Its binding is refused again and again, since the recorded cluster never had it."""
    strict = {"name": "NodeAffinity", "args": {"addedAffinity": must_be("elsewhere")}}
    config = a_configuration(profiles=[{"schedulerName": NAME, "pluginConfig": [strict]}])
    quiet: list[list[Fact]] = [[Seen(NODE, a_node("n9").build())]] * 100
    path = record(tmp_path / "r", [nodes(), pods(2), *quiet], config=config)

    done = replay(Recording(path), NOBODY, a_configuration())

    assert done.findings is not None
    assert done.findings.counts[NOW] == 2
    told = [one for one in done.findings.differences if one.kind == NOW]
    assert all("0/4 nodes are available" in one.why for one in told)
    assert {one.subject for one in told} == {"default/p0", "default/p1"}


def test_ties_are_counted_apart(tmp_path: Path) -> None:
    """Equal nodes, and one attempt more before it: the coin falls otherwise."""
    path = record(tmp_path / "r", [nodes(40), pods(1)])
    body = gzip.decompress(path.read_bytes()).replace(b'"seed":0', b'"seed":5')
    assert b'"seed"' not in body, "the default is left out"
    head, _, rest = body.partition(b"\n")
    (tmp_path / "other").write_bytes(gzip.compress(head[:-1] + b',"seed":5}\n' + rest))

    done = replay(Recording(tmp_path / "other"), NOBODY)

    assert kinds(done) == [TIE]
    assert done.findings is not None
    assert done.findings.differences[0].why.startswith("both score ")


def test_words_alone_are_another_kind_of_difference(tmp_path: Path) -> None:
    """The event of a pod that fits nowhere ends otherwise; where pods go is the same."""
    path = record(tmp_path / "r", [nodes(), [ours(a_pod("huge").requests(cpu="64"))]])
    head, _, rest = gzip.decompress(path.read_bytes()).partition(b"\n")
    (tmp_path / "other").write_bytes(gzip.compress(head[:-1] + b',"advises":true}\n' + rest))

    done = replay(Recording(tmp_path / "other"), NOBODY)

    assert kinds(done) == [OTHER]


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
    assert "ends in the middle" in recording.trouble


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is no recording of asched"),
        (b"kind: Pod\n", "is no recording of asched"),
        (gzip.compress(b'{"turns":1}\n', mtime=0), "it has no head"),
        (gzip.compress(b'{"hello":1}\n', mtime=0), "is no recording of asched"),
    ],
)
def test_what_is_no_recording_is_said_so(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "r").write_bytes(content)

    with pytest.raises(UnusableRecordingError, match=text):
        Recording(tmp_path / "r")


def test_a_format_of_another_time_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    path = record(tmp_path / "r", [])
    body = gzip.decompress(path.read_bytes()).replace(b'"format":1', b'"format":99')
    path.write_bytes(gzip.compress(body))

    with pytest.raises(UnusableRecordingError, match="format 99, and asched here reads 1"):
        Recording(path)


def test_where_pods_went_is_known_beforehand(tmp_path: Path) -> None:
    path = record(tmp_path / "r", [nodes(), pods(3)])

    found = nodes_of(Recording(path))

    assert len(found) == 3
    assert all(len(names) == 1 for names in found.values())


def test_keys_of_extenders_stay_where_they_are() -> None:
    """A recording is sent to strangers."""
    extender = {
        "urlPrefix": "https://judge.example",
        "filterVerb": "filter",
        "enableHTTPS": True,
        "tlsConfig": {"keyData": "U0VDUkVU", "certData": "Q0VSVA=="},
    }
    config = a_configuration(extenders=[extender])
    machine = a_machine(a_configuration())

    head = a_head(machine, config)

    assert head.configuration["extenders"][0]["urlPrefix"] == "https://judge.example"
    assert "tlsConfig" not in head.configuration["extenders"][0]
