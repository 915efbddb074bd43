"""Open waits: conditions that a change of the cluster may make true, with timeouts.

A wait names the topics that its condition reads, and the condition is evaluated only when one of
them has changed. So a turn costs what happened in it, however many pods wait at Permit or for their
volumes. The condition of a wait without topics is evaluated in each turn.

Bounds  deadlines of ended waits are removed once they outnumber the others.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from asched.core.cluster.change_logs import ObjectLog
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer, Done, TimedOut
from asched.core.framework.effects import CallPlugin, Topic, WaitFor
from asched.core.model.kinds import NODE, POD

Question = WaitFor | CallPlugin
QUESTIONS: Final = (WaitFor, CallPlugin)  # isinstance is faster with a tuple than with a union

#: Up to this number of deadlines, those of ended waits are not removed.
SWEEP_FROM: Final = 64


class OpenWaits:
    """Open waits by effect id. Times in seconds of turns."""

    def __init__(self, objects: ObjectLog) -> None:
        self._objects = objects
        #: read-only, as the next two
        self.open: dict[int, Question] = {}
        self.by_topic: dict[Topic, dict[int, None]] = {}
        #: waits to evaluate next: one of their topics has changed, or they are new
        self.due: dict[int, None] = {}
        #: waits without topics
        self._without_topics: dict[int, None] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._objects_seen = 0  # how far their log was read

    def add(self, effect: Question, now_s: float) -> None:
        """Add a wait."""
        if not self.open:  # changes so far concern no wait
            self._objects_seen = self._objects.end
        self.open[effect.id] = effect
        for topic in effect.on:
            self.by_topic.setdefault(topic, {})[effect.id] = None
        if not effect.on:
            self._without_topics[effect.id] = None
        self.due[effect.id] = None
        if isinstance(effect, WaitFor):
            if len(self._deadlines) > SWEEP_FROM + 2 * len(self.open):
                self._deadlines = [entry for entry in self._deadlines if entry[1] in self.open]
                heapify(self._deadlines)
            heappush(self._deadlines, (now_s + effect.timeout_s, effect.id))

    def drop(self, effect_id: int) -> Question | None:
        """Drop an answered wait."""
        effect = self.open.pop(effect_id, None)
        if effect is None:
            return None
        self.due.pop(effect_id, None)
        self._without_topics.pop(effect_id, None)
        for topic in set(effect.on):
            effect_ids = self.by_topic[topic]
            effect_ids.pop(effect_id, None)
            if not effect_ids:
                del self.by_topic[topic]
        return effect

    def saw(self, change: ObservedChange) -> None:
        """Note a change of a pod or a node. Changes of other objects are in `ObjectLog`."""
        if change.kind in (POD, NODE):
            seen = change.old if change.new is None else change.new
            self._touch(((change.kind.resource, seen.metadata.key),))

    def catch_up(self, decided: list[Topic]) -> None:
        """Note the objects that have changed since the last call, and decisions about pods."""
        moved = self._objects.since(self._objects_seen)
        if moved is None:  # the log does not reach back that far
            self.due |= dict.fromkeys(self.open)
        else:
            self._touch(moved)
        self._touch(decided)
        self._objects_seen = self._objects.end
        decided.clear()

    def _touch(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            effect_ids = self.by_topic.get(topic)
            if effect_ids:
                self.due |= effect_ids

    def take_answers(self, now_s: float) -> Iterator[tuple[Question, Answer]]:
        """Yield the answers that are due, those of older waits first. Waits that an answer adds are
        evaluated at the next call.
        """
        due = sorted({**self.due, **self._without_topics})
        self.due = {}
        for effect_id in due:
            effect = self.open.get(effect_id)
            if effect is not None and effect.ready():
                self.drop(effect_id)
                yield effect, Done(effect_id)
        while self._deadlines and self._deadlines[0][0] <= now_s:
            _, effect_id = heappop(self._deadlines)
            effect = self.drop(effect_id)
            if effect is not None:
                yield effect, TimedOut(effect_id)

    @property
    def next_deadline_s(self) -> float | None:
        """The earliest timeout of an open wait; None if no wait has one."""
        while self._deadlines and self._deadlines[0][1] not in self.open:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
