"""Breadth-first search through all states of a model, with the shortest way to a violation."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")
Step_co = TypeVar("Step_co", covariant=True)


class Model(Protocol[S, Step_co]):
    """States and steps. `canonical` returns one state for all that differ in names only."""

    def start(self) -> S: ...
    def steps(self, state: S) -> Iterable[tuple[Step_co, S]]: ...
    def canonical(self, state: S) -> S: ...
    def violation(self, state: S) -> str: ...


class Outcome(msgspec.Struct, Generic[A]):
    """`states` and `steps` are those seen until the end, or until the first violation."""

    states: int
    steps: int
    #: Steps on the longest of the shortest ways.
    depth: int
    violation: str = ""
    #: The shortest way to the violation.
    way: list[A] = []


def search(model: Model[S, A], progress: Callable[[int, int], None]) -> Outcome[A]:
    """Visit every state that can be reached, or stop at the first violation. `progress` is called
    with the states and the depth so far.
    """
    first = model.canonical(model.start())
    before: dict[S, S | None] = {first: None}
    level, depth, steps = [first], 0, 0
    while level:
        following = []
        for state in level:
            for _, reached in model.steps(state):
                steps += 1
                new = model.canonical(reached)
                if new in before:
                    continue
                before[new] = state
                following.append(new)
                if violation := model.violation(new):
                    way = list(_way(model, _line(before, new)))
                    return Outcome(len(before), steps, depth + 1, violation, way)
        level = following
        depth += bool(level)
        progress(len(before), depth)
    return Outcome(len(before), steps, depth)


def _line(before: dict[S, S | None], last: S) -> list[S]:
    line, state = [last], before[last]
    while state is not None:
        line.append(state)
        state = before[state]
    return line[::-1]


def _way(model: Model[S, A], line: list[S]) -> Iterator[A]:
    """Steps from the start along these canonical states; names stay the same on the way."""
    state = model.start()
    for wanted in line[1:]:
        step, state = next(
            (step, reached)
            for step, reached in model.steps(state)
            if model.canonical(reached) == wanted
        )
        yield step
