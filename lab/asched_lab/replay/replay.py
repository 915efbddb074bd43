"""Replay: run the facts of a recording again and compare the decisions.

    facts, turn after turn ─> rebuilt machine ─> effects ─┬─ equal to those recorded, byte by byte
                                                          └─ not: again, to find where and why

The second run knows the recorded nodes of pods, and records at each decision why it differs.
"""

from collections.abc import Callable

import msgspec

from asched.core.config.v1 import SchedulerConfiguration
from asched.host.user_plugins.catalogue import Catalogue
from asched.kube.clock import monotonic_s
from asched.ops.recording.lines import effects_bytes
from asched_lab.replay.comparing import Comparison, Findings
from asched_lab.replay.held_pools import PoolChange
from asched_lab.replay.lines import (
    RecordedTurn,
    Recording,
    RecordingReader,
    TurnLine,
    UnreadableLineError,
    asked_for,
    read_line,
)
from asched_lab.replay.reasons import Reasons
from asched_lab.replay.rebuilt import Rebuilt


class Replayed(msgspec.Struct):
    """The result of a replay. Durations in seconds; `took_s` is that of the last run."""

    turns: int = 0
    facts: int = 0
    bindings: int = 0
    recorded_s: float = 0.0
    took_s: float = 0.0
    findings: Findings | None = None
    #: It differed in the first run and not in the second: something in it is random.
    is_unsteady: bool = False
    #: Which pools the recorded process took and gave up; None if it shared none.
    pools: list[PoolChange] | None = None
    #: It was replayed with other pools: it decided for all of them.
    has_other_pools: bool = False

    @property
    def is_equal(self) -> bool:
        return not self.is_unsteady and (self.findings is None or self.findings.first is None)


def replay(
    recording: Recording,
    catalogue: Catalogue,
    instead: SchedulerConfiguration | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Repeat a recording, optionally with another configuration; `progress` gets the turn number.

    Raises UnusableRecordingError.
    """
    if instead is None:
        done = _repeated(recording, Rebuilt(recording.head, catalogue), progress)
        if done is not None:
            return done
    rebuilt = Rebuilt(recording.head, catalogue, instead)
    reasons = Reasons(rebuilt.parts.cluster, nodes_of(recording))
    rebuilt.machine.context.on_decision = reasons.observe
    comparison, run = Comparison(rebuilt, reasons), _Run(rebuilt)
    for turn in recording:
        comparison.turn(turn)
        run.took(turn)
        progress(turn.number)
    done = run.done()
    done.findings = comparison.end(run.last_s)
    done.is_unsteady = instead is None and done.findings.first is None
    return done


def _repeated(
    recording: Recording, rebuilt: Rebuilt, progress: Callable[[int], None]
) -> Replayed | None:
    """None as soon as any decision differs."""
    run = _Run(rebuilt)
    for turn in recording:
        encoded = effects_bytes(rebuilt.turn(turn))
        if encoded != turn.effects and asked_for(encoded) != asked_for(bytes(turn.effects)):
            return None
        run.took(turn)
        progress(turn.number)
    return run.done()


class _Run:
    """Counts what was replayed."""

    def __init__(self, rebuilt: Rebuilt) -> None:
        self._rebuilt = rebuilt
        self._result = Replayed()
        self._started_s = monotonic_s()
        self._began_s: float | None = None
        self.last_s = 0.0

    def took(self, turn: RecordedTurn) -> None:
        if self._began_s is None:
            self._began_s = turn.at_s
        self.last_s = turn.at_s
        result = self._result
        result.turns += 1
        result.facts += len(turn.facts)
        result.bindings += turn.effects.count(b'["Bind"')

    def done(self) -> Replayed:
        self._result.took_s = monotonic_s() - self._started_s
        self._result.recorded_s = self.last_s - (self._began_s or self.last_s)
        rebuilt = self._rebuilt
        self._result.pools = rebuilt.held_pools.changes
        self._result.has_other_pools = not rebuilt.has_recorded_pools
        return self._result


def nodes_of(recording: Recording) -> dict[str, tuple[str, ...]]:
    """The recorded nodes of pods, by uid."""
    found: dict[str, tuple[str, ...]] = {}
    for line in RecordingReader(recording.path):
        if b'["Bind"' not in line:
            continue
        try:
            said = read_line(line)
        except UnreadableLineError:
            break
        if isinstance(said, TurnLine):
            for request in asked_for(bytes(said.effects)):
                if request.name == "Bind" and request.node not in found.get(request.uid, ()):
                    found[request.uid] = (*found.get(request.uid, ()), request.node)
    return found
