"""Compare the decisions of a machine that replays a recording with the recorded decisions.

While all is equal, turns are compared byte by byte. After the first difference, request numbers no
longer correspond, so requests are paired by kind and object: a recorded answer goes to the request
of the same kind for the same object, however late. A request on one side only has WITHIN_S of
recorded time to find its counterpart. A request without a recorded counterpart is refused, since
the recording has no answer to it; thus the machine returns to the state of the recorded cluster and
later decisions can be compared too. Findings are exact up to the first difference and approximate
after it.

Bounds  WITHIN_S for a counterpart; NAMED_MAX differences keep their text, all are counted.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from asched.core.cluster.facts import Answer, Fact, Raised, Refused, TimedOut
from asched.core.framework.effects import Effect
from asched.ops.recording.lines import effects_bytes
from asched_lab.replay.lines import (
    RecordedError,
    RecordedTurn,
    RequestedEffect,
    asked_for,
    recorded,
)
from asched_lab.replay.reasons import Reasons, Why
from asched_lab.replay.rebuilt import Rebuilt

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
