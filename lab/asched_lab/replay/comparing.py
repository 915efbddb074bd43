"""Where a machine that is told the facts of a recording decides otherwise than the recorded one.

While all is equal, turns are compared byte by byte. After the first difference numbers of requests
mean different things, so from then on requests are paired by what they are about: a recorded answer
goes to whoever asked for the same of the same object, however late. What was asked for then and is
not now, or the other way round, has WITHIN_S of recorded time to find its counterpart. A request
that never had one is refused, since nobody knows what the world would have answered; thus the
machine comes back to what the recording's cluster was like, and later decisions can be compared,
too. They are exact up to the first difference, and as good as that is behind it.

Bounds  WITHIN_S for a counterpart; NAMED_MAX differences keep their words, all are counted.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from asched.core.framework.effects import Effect
from asched.core.state.facts import Answer, Fact, Raised, Refused, TimedOut
from asched.ops.recording.asked import RequestedEffect, asked_for
from asched.ops.recording.lines import RecordedError, effects_bytes, recorded
from asched_lab.replay.reading import RecordedTurn
from asched_lab.replay.reasons import Reasons, Why
from asched_lab.replay.rebuilt import Rebuilt

WITHIN_S: Final = 1.0
NAMED_MAX: Final = 10_000

ELSEWHERE: Final = "on another node"
TIE: Final = "on another node of equal score"
THEN: Final = "placed then, not now"
NOW: Final = "placed now, not then"
OTHER: Final = "not placed otherwise, but told or written otherwise"


class Difference(NamedTuple):
    """`at_s` counts from the first turn. `then` and `now` are words, empty for nothing."""

    turn: int
    at_s: float
    kind: str
    subject: str
    then: str
    now: str
    why: str


class Findings(msgspec.Struct):
    """`first`: the turn in which anything differed first, None if nothing did. `moved`: requests
    that were made in another turn, else equal.
    """

    first: int | None = None
    first_at_s: float = 0.0
    then: list[str] = msgspec.field(default_factory=list)
    now: list[str] = msgspec.field(default_factory=list)
    moved: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    differences: list[Difference] = msgspec.field(default_factory=list)


class _Open(NamedTuple):
    """A request without its counterpart so far."""

    turn: int
    at_s: float
    asked: RequestedEffect
    effect: Effect | None  # ours


class Comparison:
    """Tells the rebuilt machine turn after turn; `findings` has what differed."""

    def __init__(self, rebuilt: Rebuilt, reasons: Reasons) -> None:
        self.findings = Findings()
        self._rebuilt = rebuilt
        self._reasons = reasons
        self._began_s: float | None = None
        #: numbers of requests up to here mean the same on both sides
        self._common_id = 0
        self._ids: dict[int, int] = {}
        self._held: dict[int, Answer] = {}
        self._late: list[Fact] = []
        self._then: dict[tuple[str, ...], deque[_Open]] = {}
        self._now: dict[tuple[str, ...], deque[_Open]] = {}
        self._due: deque[tuple[float, _Open, bool]] = deque()
        #: what was told last of pods that found no place, by uid: then and now
        self._notes_then: dict[str, str] = {}
        self._notes_now: dict[str, str] = {}
        self._placed_otherwise: set[str] = set()
        self._others: dict[str, Difference] = {}

    def turn(self, turn: RecordedTurn) -> None:
        """Raises UnusableRecordingError."""
        self._began_s = turn.at_s if self._began_s is None else self._began_s
        if self.findings.first is None:
            effects = self._rebuilt.turn(turn)
            encoded = effects_bytes(effects)
            if encoded == turn.effects:
                for effect in effects:
                    self._common_id = max(self._common_id, effect.id)
                return
        else:
            facts = [*self._late, *self._translated(self._rebuilt.facts(turn))]
            self._late = []
            effects = self._rebuilt.told(turn, facts)
            encoded = effects_bytes(effects)
        self._compare(turn, asked_for(turn.effects), asked_for(encoded), effects)
        self._expire(turn.at_s)

    def end(self, at_s: float) -> Findings:
        """Nothing comes any more."""
        self._expire(at_s + 2 * WITHIN_S)
        for uid, difference in self._others.items():
            if uid not in self._placed_otherwise:
                self._note(difference)
        self._others.clear()
        self.findings.differences.sort(key=lambda one: one.turn)
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
        """What a request is told that nobody made when it was recorded."""
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
            if [(*asked[:5], asked.what) for asked in then] == [(*a[:5], a.what) for a in now]:
                return  # spelt otherwise, by another version of a library
            findings.first, findings.first_at_s = turn.number, self._since(turn.at_s)
            findings.then = [asked.words() for asked in then if asked not in now]
            findings.now = [asked.words() for asked in now if asked not in then]
        for asked in then:
            self._remember(self._notes_then, asked)
            self._arrived(_Open(turn.number, turn.at_s, asked, None), self._then, self._now)
        for asked, effect in zip(now, recorded(effects), strict=True):
            self._remember(self._notes_now, asked)
            self._arrived(_Open(turn.number, turn.at_s, asked, effect), self._now, self._then)

    def _arrived(
        self,
        one: _Open,
        own: dict[tuple[str, ...], deque[_Open]],
        others: dict[tuple[str, ...], deque[_Open]],
    ) -> None:
        waiting = others.get(one.asked.key)
        if not waiting:
            own.setdefault(one.asked.key, deque()).append(one)
            self._due.append((one.at_s + WITHIN_S, one, own is self._now))
            return
        other = waiting.popleft()
        if not waiting:
            del others[one.asked.key]
        then, now = (other, one) if own is self._now else (one, other)
        self._paired(then, now)

    def _paired(self, then: _Open, now: _Open) -> None:
        theirs, ours = then.asked.effect_id, now.asked.effect_id
        if theirs and ours:
            held = self._held.pop(theirs, None)
            if held is not None:
                self._late.append(_to(held, ours))
            else:
                self._ids[theirs] = ours
        if then.asked.what == now.asked.what:
            self.findings.moved += then.turn != now.turn
            return
        if then.asked.name != "Bind":
            self._differs(OTHER, then, now, None)
        elif then.asked.node != now.asked.node:
            why = self._reasons.of(now.asked.uid, then.asked.node)
            self._differs(TIE if why is not None and why.is_tie else ELSEWHERE, then, now, why)

    def _expire(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            _, one, is_ours = self._due.popleft()
            own = self._now if is_ours else self._then
            waiting = own.get(one.asked.key)
            if not waiting or waiting[0] is not one:
                continue  # it was paired
            waiting.popleft()
            if not waiting:
                del own[one.asked.key]
            effect = one.effect
            if effect is not None and effect.answers and effect.wants_answer:
                self._late.append(self._refused(effect))
            is_bind = one.asked.name == "Bind"
            if is_ours:
                why = self._notes_then.get(one.asked.uid) if is_bind else ""
                told = Why(False, f"then: {why}") if why else None
                self._differs(NOW if is_bind else OTHER, None, one, told)
            else:
                why = self._notes_now.get(one.asked.uid) if is_bind else ""
                told = Why(False, f"now: {why}") if why else None
                self._differs(THEN if is_bind else OTHER, one, None, told)

    # --- what is told ----------------------------------------------------------------------------

    def _remember(self, notes: dict[str, str], asked: RequestedEffect) -> None:
        if asked.name == "EmitEvent" and asked.what.get("type") == "Warning":
            notes[asked.uid] = asked.what.get("note", "")

    def _since(self, at_s: float) -> float:
        return at_s - (self._began_s or 0.0)

    def _differs(self, kind: str, then: _Open | None, now: _Open | None, why: Why | None) -> None:
        one = now or then
        assert one is not None
        difference = Difference(
            one.turn,
            self._since(one.at_s),
            kind,
            one.asked.subject,
            then.asked.words() if then else "",
            now.asked.words() if now else "",
            why.text if why else "",
        )
        if kind == OTHER:  # mostly a consequence of the pod's being elsewhere
            self._others.setdefault(one.asked.uid or one.asked.subject, difference)
        elif one.asked.uid not in self._placed_otherwise:
            self._placed_otherwise.add(one.asked.uid)
            self._note(difference)

    def _note(self, difference: Difference) -> None:
        self.findings.counts[difference.kind] += 1
        if len(self.findings.differences) < NAMED_MAX:
            self.findings.differences.append(difference)


def _to(answer: Answer, effect_id: int) -> Answer:
    return msgspec.structs.replace(answer, effect_id=effect_id)
