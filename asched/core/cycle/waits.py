"""Open questions that a change of the cluster answers, and until when they are patient.

A question says what it looks at; it is asked again only when something of that has moved, so a turn
costs what happened in it, however many pods stand at Permit or wait for their volumes. One that
does not say is asked after every batch of facts.

Bounds  deadlines of questions that ended early are swept out once they outnumber the others.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from asched.core.framework.effects import CallPlugin, Topic, WaitFor
from asched.core.model.kinds import NODE, POD
from asched.core.state.change_log import ObjectLog
from asched.core.state.cluster import ObservedChange
from asched.core.state.facts import Answer, Done, TimedOut

Question = WaitFor | CallPlugin
QUESTIONS: Final = (WaitFor, CallPlugin)  # the same for isinstance, who is quicker with them

#: So many deadlines are kept without asking whether they are still anybody's.
SWEEP_FROM: Final = 64


class Waits:
    """By effect id. Times in seconds, as the machine is told them."""

    def __init__(self) -> None:
        self._open: dict[int, Question] = {}
        self._by_topic: dict[Topic, dict[int, None]] = {}
        #: those that look at anything
        self._restless: dict[int, None] = {}
        #: to be asked at the next look: what they look at has moved, or they are new
        self._due: dict[int, None] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._objects_seen = 0  # how far their log was read
        #: how many questions were asked so far
        self.asked = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, effect: Question, now_s: float) -> None:
        """A question is open from now on."""
        self._open[effect.id] = effect
        for topic in effect.on:
            self._by_topic.setdefault(topic, {})[effect.id] = None
        if not effect.on:
            self._restless[effect.id] = None
        self._due[effect.id] = None
        if isinstance(effect, WaitFor):
            if len(self._deadlines) > SWEEP_FROM + 2 * len(self._open):
                self._deadlines = [entry for entry in self._deadlines if entry[1] in self._open]
                heapify(self._deadlines)
            heappush(self._deadlines, (now_s + effect.timeout_s, effect.id))

    def drop(self, effect_id: int) -> Question | None:
        """It is answered, by whomever."""
        effect = self._open.pop(effect_id, None)
        if effect is None:
            return None
        self._due.pop(effect_id, None)
        self._restless.pop(effect_id, None)
        for topic in set(effect.on):
            asking = self._by_topic[topic]
            asking.pop(effect_id, None)
            if not asking:
                del self._by_topic[topic]
        return effect

    def saw(self, sight: ObservedChange) -> None:
        """A pod or a node has moved; other objects stand in their log, assumed ones too."""
        if self._by_topic and sight.kind in (POD, NODE):
            seen = sight.old if sight.new is None else sight.new
            self._touch(((sight.kind.resource, seen.metadata.key),))

    def catch_up(self, objects: ObjectLog, decided: list[Topic]) -> None:
        """Take note of the objects that have moved since the last time, and of decisions."""
        if self._open:
            moved = objects.since(self._objects_seen)
            if moved is None:  # nobody knows any more
                self._due |= dict.fromkeys(self._open)
            else:
                self._touch(moved)
            self._touch(decided)
        self._objects_seen = objects.end
        decided.clear()

    def _touch(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            asking = self._by_topic.get(topic)
            if asking:
                self._due |= asking

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def look(self, now_s: float) -> Iterator[tuple[Question, Answer]]:
        """The answers that are due, those to older questions first. An answer may lead to further
        questions: they are asked at the next look.
        """
        if not self._open:
            return
        due = sorted({**self._due, **self._restless})
        self._due = {}
        for effect_id in due:
            effect = self._open.get(effect_id)
            if effect is not None:
                self.asked += 1
                if effect.ready():
                    self.drop(effect_id)
                    yield effect, Done(effect_id)
        while self._deadlines and self._deadlines[0][0] <= now_s:
            _, effect_id = heappop(self._deadlines)
            effect = self.drop(effect_id)
            if effect is not None:
                yield effect, TimedOut(effect_id)

    @property
    def next_deadline_s(self) -> float | None:
        """When somebody's patience ends; None if nobody waits for a time."""
        while self._deadlines and self._deadlines[0][1] not in self._open:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
