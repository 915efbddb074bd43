"""Looking for the object that costs most: random ones, then offspring of the most expensive.

Each is shown to a machine with nodes and placed pods, decided on to the end, and taken away again.
What counts is the longest turn, by processor time: turns are what others wait for.
"""

import copy
import gc
import time
from collections.abc import Iterator, Sequence
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.cluster.facts import Fact, Gone, Refused, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import Kind
from asched_lab.measure.stepped import SteppedMachine, a_world
from tests.poison.life import GATES, POISON, tamed
from tests.poison.made import Maker, read

#: A third of what the API server takes: larger ones cost the search more than the scheduler.
BYTES_MAX: Final = 500_000
KEPT: Final = 24
LONG: Final = 50
TURNS_MAX: Final = 2_000


class Cost(NamedTuple):
    """One object, and what it cost. Compared by its longest turn."""

    turn_s: float
    all_s: float
    size: int
    kind: Kind
    document: dict[str, Any]


class Search:
    """`best` after `run`; the most expensive first, and one of each shape."""

    def __init__(self, seed: int, nodes: int, pods: int, kinds: Sequence[Kind] = POISON) -> None:
        self._kinds = kinds
        self._random = Random(seed)
        self._maker = Maker(self._random, crowd=400)
        self._world: SteppedMachine = a_world(nodes, pods, gates=GATES)
        self._best: dict[tuple[str, ...], Cost] = {}

    @property
    def best(self) -> list[Cost]:
        """One for each shape: what it has many of."""
        return sorted(self._best.values(), key=lambda cost: -cost.turn_s)

    def run(self, for_s: float) -> None:
        """So many seconds of processor time."""
        gc.collect()
        gc.freeze()
        gc.disable()  # a collection is nobody's cost
        until_s = time.process_time() + for_s
        for number in count():
            if time.process_time() > until_s:
                return
            if number % 500 == 0:
                gc.collect()
            if self._best and self._random.random() < 0.8:
                parent = self._random.choice(list(self._best.values()))
                kind = parent.kind
                document = lengthened(self._random, copy.deepcopy(parent.document))
            else:
                kind = self._random.choice(self._kinds)
                document = tamed(self._random, kind, self._maker.document(kind))
            document["metadata"]["name"] = f"worst-{number}"
            self._judge(kind, document)

    def _judge(self, kind: Kind, document: dict[str, Any]) -> None:
        obj = read(kind, document)
        size = len(msgspec.json.encode(document))
        if obj is None or size > BYTES_MAX:
            return
        turn_s, all_s = self._cost([Seen(kind, obj)])
        gone_s, _ = self._cost([Gone(kind, obj)])
        cost = Cost(max(turn_s, gone_s), all_s, size, kind, document)
        known = self._best.get(key := many_of(document))
        if known is None or cost.turn_s > known.turn_s:
            self._best[key] = cost
        for key in sorted(self._best, key=lambda key: -self._best[key].turn_s)[KEPT:]:
            del self._best[key]

    def _cost(self, facts: list[Fact]) -> tuple[float, float]:
        """(longest turn, all turns until rest). Nobody is bound, so that nothing stays."""
        longest = total = 0.0
        for _ in range(TURNS_MAX):
            began_s = time.process_time()
            effects = self._world.turn(*facts, after_s=1.0)
            took_s = time.process_time() - began_s
            longest, total = max(longest, took_s), total + took_s
            facts = [
                Refused(one.id, 404 if isinstance(one, Bind) else 409, "no")
                for one in effects
                if one.answers
            ]
            if not facts and self._world.machine.next_deadline_s() != 0.0:
                break
        return longest, total


def lengthened(random: Random, document: Any) -> Any:
    """One of its lists or maps is made longer, or one branch is made of another's. No longer
    than what is judged: thousands of copies of a list of thousands took all memory.
    """
    branches = list(_branches(document))
    if not branches:
        return document
    lists = [branch for branch in branches if isinstance(branch, list)]
    branch = random.choice(lists if lists and random.random() < 0.8 else branches)
    if isinstance(branch, list):
        length, raw_objects = random.choice((60, 500, 4000)), list(branch)
        room = BYTES_MAX - len(msgspec.json.encode(document))
        while len(branch) < length and room > 0:
            more = _renumbered(random, copy.deepcopy(random.choice(raw_objects)))
            room -= len(msgspec.json.encode(more))
            branch.append(more)
    else:
        branch.update({f"{key}{random.randrange(999)}": value for key, value in branch.items()})
    return document


def _branches(document: Any) -> Any:
    """Every list, and every map of words, of a document."""
    if isinstance(document, dict):
        if document and all(isinstance(value, (str, int)) for value in document.values()):
            yield document
        for value in document.values():
            yield from _branches(value)
    if isinstance(document, list):
        if document:
            yield document
        for value in document:
            yield from _branches(value)


def _renumbered(random: Random, value: Any) -> Any:
    """Alike, and yet another: some words get a number."""
    if isinstance(value, str):
        return f"{value}{random.randrange(99_999)}" if random.random() < 0.3 else value
    if isinstance(value, dict):
        return {key: _renumbered(random, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_renumbered(random, one) for one in value]
    return value


def many_of(document: Any) -> tuple[str, ...]:
    """Where it has long lists."""
    return tuple(path for path, length in _lengths(document) if length > LONG)


def _lengths(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _lengths(one, f"{path}.{key}" if path else key)
    if isinstance(value, list):
        yield path, len(value)
        for one in value[:3]:
            yield from _lengths(one, f"{path}[]")


def outline(cost: Cost) -> str:
    """One line: what it is and what it has many of."""
    turn, all_ = cost.turn_s * 1000, cost.all_s * 1000
    many = dict.fromkeys(
        f"{count} {path}" for path, count in _lengths(cost.document) if count > LONG
    )
    what = ", ".join(many)[:200]
    return f"{turn:8.1f} {all_:9.1f} {cost.size / 1000:8.0f}  {cost.kind.name}: {what}"
