"""Compare the decisions of a machine that replays a recording with the recorded decisions.

While all is equal, turns are compared byte by byte. After the first difference, request numbers no
longer correspond, so requests are paired by kind and object: a recorded answer goes to the request
of the same kind for the same object, however late. A request on one side only has WITHIN_S of
recorded time to find its counterpart. A request without a recorded counterpart is refused, since
the recording has no answer to it; thus the machine returns to the state of the recorded cluster and
later decisions can be compared too. Findings are exact up to the first difference and approximate
after it.

Bounds  WITHIN_S for a counterpart; NAMED_MAX differences keep their text, all are counted.

The rebuilt machine has no clock, connection or thread: with the same facts at the same times it
decides the same. Coroutines of user plugins are not run again, since they communicate with other
systems: their recorded results are facts. All other code of a plugin runs, so the plugin has to be
available.
"""

import json
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Fact, Raised, Refused, TimedOut
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.machine import Machine
from asched.core.cycle.orders import Reconfigured
from asched.core.framework.effects import Effect
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.runner import Decision
from asched.core.model.decode import MalformedError, parse
from asched.host.assemble import BUILD_ERRORS, Parts, build_machine, build_runners, reconfigured
from asched.host.configuration.file import ConfigError, load_config
from asched.host.user_plugins.catalogue import Catalogue
from asched.ops.recording.lines import RecordingHead, effects_bytes
from asched_lab.replay.counted import CountedLimit
from asched_lab.replay.lines import (
    FactReader,
    RecordedError,
    RecordedTurn,
    Reload,
    RequestedEffect,
    UnreadableLineError,
    UnusableRecordingError,
    asked_for,
    recorded,
)


class Why(NamedTuple):
    """`is_tie`: both nodes score the same, and the tie was drawn."""

    is_tie: bool
    text: str


class Reasons:
    """Observes each decision. `recorded`: the nodes that pods were bound to, by uid."""

    def __init__(self, cluster: Cluster, recorded: Mapping[str, Collection[str]]) -> None:
        self._cluster = cluster
        self._recorded = recorded
        self._found: dict[tuple[str, str], Why] = {}

    def of(self, uid: str, node: str) -> Why | None:
        """Why the last decision for a pod chose another node than this one."""
        return self._found.get((uid, node))

    def observe(self, attempt: Attempt, decision: Decision) -> None:
        uid = attempt.pod.uid
        for node in self._recorded.get(uid, ()):
            if node != decision.node:
                self._found[uid, node] = self._why(attempt, decision, node)

    def _why(self, attempt: Attempt, decision: Decision, node: str) -> Why:
        state = decision.state
        row = self._cluster.nodes.row_of.get(node)
        if row is None:
            return Why(False, f"there is no node {node}")
        if not state.mask.has(row):
            owners, codes, plugins = state.rejectors()
            if owners[row]:
                plugin = plugins[owners[row] - 1]
                status = plugin.explain(attempt.info, int(codes[row]))
                return Why(False, f"{node} is refused by {plugin.name}: {status.message}")
            return Why(False, f"{node} is not among the nodes that were filtered")
        if decision.score is None:
            return Why(False, f"{decision.node} was the only node left")
        totals = state.ranking.totals
        if row >= len(totals) or totals[row] == NOT_FEASIBLE:
            return Why(False, f"{node} was not ranked")
        theirs, ours = int(totals[row]), decision.score
        if theirs == ours:
            return Why(True, f"both score {ours}")
        names, mine = state.ranking.points_of(decision.row)
        _, other = state.ranking.points_of(row)
        weighted = np.asarray(mine)[1::2] - np.asarray(other)[1::2]
        parts = [
            f"{plugin} {mine[2 * at + 1]} against {other[2 * at + 1]}"
            for at, (plugin, _) in enumerate(names)
            if weighted[at]
        ]
        text = f"{decision.node} scores {ours}, {node} {theirs}"
        return Why(False, f"{text} ({', '.join(parts)})" if parts else text)


class Rebuilt:
    """`instead`: a configuration that replaces all recorded ones."""

    def __init__(
        self,
        head: RecordingHead,
        catalogue: Catalogue,
        instead: SchedulerConfiguration | None = None,
    ) -> None:
        """Raises UnusableRecordingError if plugins are missing, or the configuration is not valid
        in this version.
        """
        self._head = head
        self._catalogue = catalogue
        self._instead = instead
        self.parts = Parts.fresh()
        configuration = instead or self._loaded(head.configuration)
        try:
            runners = self._runners(configuration)
        except BUILD_ERRORS as error:
            raise UnusableRecordingError(str(error)) from error
        self.limit = CountedLimit()
        self.machine: Machine = build_machine(
            configuration,
            self.parts,
            runners,
            monotonic_s=lambda: 0.0,
            max_in_unschedulable_s=head.max_in_unschedulable_s,
            seed=head.seed,
            bindings_max=head.bindings_max,
        )
        self.machine.limit = self.limit
        self.machine.context.advises = head.advises
        self._reader = FactReader()
        self._reader.learn(self.machine.context.kinds)

    def turn(self, turn: RecordedTurn) -> list[Effect]:
        """Replay the recorded turn; return its effects."""
        return self.handle(turn, self.facts(turn))

    def handle(self, turn: RecordedTurn, facts: list[Fact]) -> list[Effect]:
        """The same with other facts."""
        self.limit.granted, self.limit.resumed = turn.went_on, turn.resumed
        self.machine.is_active = turn.is_active
        return self.machine.handle(facts, turn.at_s)

    def facts(self, turn: RecordedTurn) -> list[Fact]:
        """The recorded facts. Kinds that this machine does not watch are left out.

        Raises UnusableRecordingError.
        """
        found = []
        for raw in turn.facts:
            try:
                fact = self._reader.fact(raw, turn.lists)
            except UnreadableLineError as error:
                text = f"turn {turn.number} has a fact that is not valid here: {error}"
                raise UnusableRecordingError(text) from error
            if isinstance(fact, Reload):
                fact = self._reconfigured(fact)
                for runner in fact.runners.values():
                    self._reader.learn(runner.profile.kinds)
            if fact is not None:
                found.append(fact)
        return found

    def _reconfigured(self, fact: Reload) -> Reconfigured:
        configuration = self._instead or self._loaded(fact.document)
        observer = self.machine.context.observer
        try:
            runners = self._runners(configuration)
        except BUILD_ERRORS as error:
            raise UnusableRecordingError(str(error)) from error
        return reconfigured(configuration, runners, fact.edition, observer)

    def _runners(self, configuration: SchedulerConfiguration) -> Any:
        plugins = self._catalogue
        return build_runners(
            configuration, self.parts, factories=plugins.factories, known=plugins.known
        )

    def _loaded(self, document: dict[str, Any]) -> SchedulerConfiguration:
        try:
            text = parse(json.dumps, document)
            loaded = load_config(text=text, gates=self._head.gates, known=self._catalogue.known)
        except MalformedError as error:
            raise UnusableRecordingError(f"its configuration cannot be read: {error}") from error
        except ConfigError as error:
            missing = [name for name, *_ in self._head.plugins if not self._has(name)]
            if missing:
                raise UnusableRecordingError(_asking_for(missing, self._head)) from error
            why = str(error).partition("\n")[0]
            raise UnusableRecordingError(
                f"its configuration, of asched {self._head.version}, is refused here: {why}"
            ) from error
        return loaded.configuration

    def _has(self, name: str) -> bool:
        return name in self._catalogue.plugins


def _asking_for(missing: list[str], head: RecordingHead) -> str:
    origins = [f"{name} (of {origin})" for name, origin, _ in head.plugins if name in missing]
    return f"it was recorded with plugins that are not here: {', '.join(origins)}; give --plugin"


WITHIN_S: Final = 1.0
NAMED_MAX: Final = 10_000

ELSEWHERE: Final = "on another node"
TIE: Final = "on another node of equal score"
THEN: Final = "placed then, not now"
NOW: Final = "placed now, not then"
OTHER: Final = "same place, but another message or write"


class Difference(NamedTuple):
    """`at_s` counts from the first turn. `then` and `now` are texts, empty for no request."""

    turn: int
    at_s: float
    kind: str
    subject: str
    then: str
    now: str
    why: str


class Findings(msgspec.Struct):
    """`first`: the first turn with a difference, None if there is none. `moved`: equal requests
    that were made in another turn.
    """

    first: int | None = None
    first_at_s: float = 0.0
    then: list[str] = msgspec.field(default_factory=list)
    now: list[str] = msgspec.field(default_factory=list)
    moved: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    differences: list[Difference] = msgspec.field(default_factory=list)


class _Open(NamedTuple):
    """A request that has no counterpart yet."""

    turn: int
    at_s: float
    request: RequestedEffect
    effect: Effect | None  # ours


class Comparison:
    """Feeds the rebuilt machine turn by turn; `findings` collects the differences."""

    def __init__(self, rebuilt: Rebuilt, reasons: Reasons) -> None:
        self.findings = Findings()
        self._rebuilt = rebuilt
        self._reasons = reasons
        self._began_s: float | None = None
        #: request numbers up to this one are the same on both sides
        self._common_id = 0
        self._ids: dict[int, int] = {}
        self._held: dict[int, Answer] = {}
        self._late: list[Fact] = []
        self._then: dict[tuple[str, ...], deque[_Open]] = {}
        self._now: dict[tuple[str, ...], deque[_Open]] = {}
        self._due: deque[tuple[float, _Open, bool]] = deque()
        #: the last message about pods that found no place, by uid: then and now
        self._notes_then: dict[str, str] = {}
        self._notes_now: dict[str, str] = {}
        self._placed_otherwise: set[str] = set()
        self._messages: dict[str, Difference] = {}

    def turn(self, turn: RecordedTurn) -> None:
        """Raises UnusableRecordingError."""
        self._began_s = turn.at_s if self._began_s is None else self._began_s
        if self.findings.first is None:
            effects = self._rebuilt.turn(turn)
            encoded = effects_bytes(effects)
            if encoded == turn.effects or asked_for(encoded) == asked_for(bytes(turn.effects)):
                for effect in effects:
                    self._common_id = max(self._common_id, effect.id)
                return
        else:
            facts = [*self._late, *self._translated(self._rebuilt.facts(turn))]
            self._late = []
            effects = self._rebuilt.handle(turn, facts)
            encoded = effects_bytes(effects)
        self._compare(turn, asked_for(turn.effects), asked_for(encoded), effects)
        self._expire(turn.at_s)

    def end(self, at_s: float) -> Findings:
        """Finish after the last turn."""
        self._expire(at_s + 2 * WITHIN_S)
        for uid, difference in self._messages.items():
            if uid not in self._placed_otherwise:
                self._note(difference)
        self._messages.clear()
        self.findings.differences.sort(key=lambda difference: difference.turn)
        return self.findings

    # --- answers ---------------------------------------------------------------------------------

    def _translated(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        for fact in facts:
            if not isinstance(fact, Answer) or fact.effect_id <= self._common_id:
                yield fact
            elif fact.effect_id in self._ids:
                yield _to(fact, self._ids.pop(fact.effect_id))
            else:
                self._held[fact.effect_id] = fact

    def _refused(self, effect: Effect) -> Answer:
        """The answer to a request that the recording does not have."""
        text = "the recording does not have this"
        if Refused in effect.answers:
            return Refused(effect.id, 0, text)
        if Raised in effect.answers:
            return Raised(effect.id, RecordedError(text))
        return TimedOut(effect.id)

    # --- requests --------------------------------------------------------------------------------

    def _compare(
        self,
        turn: RecordedTurn,
        then: list[RequestedEffect],
        now: list[RequestedEffect],
        effects: list[Effect],
    ) -> None:
        findings = self.findings
        if findings.first is None:
            findings.first, findings.first_at_s = turn.number, self._since(turn.at_s)
            findings.then = [request.words() for request in then if request not in now]
            findings.now = [request.words() for request in now if request not in then]
        for request in then:
            self._remember(self._notes_then, request)
            self._arrived(_Open(turn.number, turn.at_s, request, None), self._then, self._now)
        for request, effect in zip(now, recorded(effects), strict=True):
            self._remember(self._notes_now, request)
            self._arrived(_Open(turn.number, turn.at_s, request, effect), self._now, self._then)

    def _arrived(
        self,
        entry: _Open,
        own: dict[tuple[str, ...], deque[_Open]],
        opposite: dict[tuple[str, ...], deque[_Open]],
    ) -> None:
        waiting = opposite.get(entry.request.key)
        if not waiting:
            own.setdefault(entry.request.key, deque()).append(entry)
            self._due.append((entry.at_s + WITHIN_S, entry, own is self._now))
            return
        counterpart = waiting.popleft()
        if not waiting:
            del opposite[entry.request.key]
        then, now = (counterpart, entry) if own is self._now else (entry, counterpart)
        self._paired(then, now)

    def _paired(self, then: _Open, now: _Open) -> None:
        theirs, ours = then.request.effect_id, now.request.effect_id
        if theirs and ours:
            held = self._held.pop(theirs, None)
            if held is not None:
                self._late.append(_to(held, ours))
            else:
                self._ids[theirs] = ours
        if then.request.what == now.request.what:
            self.findings.moved += then.turn != now.turn
            return
        if then.request.name != "Bind":
            self._differs(OTHER, then, now, None)
        elif then.request.node != now.request.node:
            why = self._reasons.of(now.request.uid, then.request.node)
            self._differs(TIE if why is not None and why.is_tie else ELSEWHERE, then, now, why)

    def _expire(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            _, entry, is_ours = self._due.popleft()
            own = self._now if is_ours else self._then
            waiting = own.get(entry.request.key)
            if not waiting or waiting[0] is not entry:
                continue  # it was paired
            waiting.popleft()
            if not waiting:
                del own[entry.request.key]
            effect = entry.effect
            if effect is not None and effect.answers and effect.wants_answer:
                self._late.append(self._refused(effect))
            is_bind = entry.request.name == "Bind"
            if is_ours:
                why = self._notes_then.get(entry.request.uid) if is_bind else ""
                reason = Why(False, f"then: {why}") if why else None
                self._differs(NOW if is_bind else OTHER, None, entry, reason)
            else:
                why = self._notes_now.get(entry.request.uid) if is_bind else ""
                reason = Why(False, f"now: {why}") if why else None
                self._differs(THEN if is_bind else OTHER, entry, None, reason)

    # --- messages and differences ----------------------------------------------------------------

    def _remember(self, notes: dict[str, str], request: RequestedEffect) -> None:
        if request.name == "EmitEvent" and request.what.get("type") == "Warning":
            notes[request.uid] = request.what.get("note", "")

    def _since(self, at_s: float) -> float:
        return at_s - (self._began_s or 0.0)

    def _differs(self, kind: str, then: _Open | None, now: _Open | None, why: Why | None) -> None:
        entry = now or then
        assert entry is not None
        difference = Difference(
            entry.turn,
            self._since(entry.at_s),
            kind,
            entry.request.subject,
            then.request.words() if then else "",
            now.request.words() if now else "",
            why.text if why else "",
        )
        if kind == OTHER:  # mostly because the pod is on another node
            self._messages.setdefault(entry.request.uid or entry.request.subject, difference)
        elif entry.request.uid not in self._placed_otherwise:
            self._placed_otherwise.add(entry.request.uid)
            self._note(difference)

    def _note(self, difference: Difference) -> None:
        self.findings.counts[difference.kind] += 1
        if len(self.findings.differences) < NAMED_MAX:
            self.findings.differences.append(difference)


def _to(answer: Answer, effect_id: int) -> Answer:
    return msgspec.structs.replace(answer, effect_id=effect_id)
