"""Extensions of the cycle: what they add reaches the pod; what they raise costs no other pod."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, Never

import pytest

from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.extension import Extension
from asched.core.framework.effects import Bind
from asched.core.model.pod import Pod
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


class LongWaits(Extension):
    """A pod that finds no place says since when it waits."""

    name = "long-waits"
    PODS_MAX = 1_000

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self.since_s: dict[str, float] = {}

    def is_used(self) -> bool:
        return True

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Any, Any, str]:
        uid = attempts[0].pod.uid
        since_s = self.since_s.setdefault(uid, self.context.now_s)
        if len(self.since_s) > self.PODS_MAX:
            del self.since_s[next(iter(self.since_s))]
        yield from ()
        return f"; it waits for {self.context.now_s - since_s:.0f} s"

    def placed(self, pod: Pod) -> None:
        self.since_s.pop(pod.uid, None)


class Broken(Extension):
    name = "broken"
    turns = 0

    def is_used(self) -> bool:
        return True

    def begin_turn(self) -> Iterable[Never]:
        type(self).turns += 1
        raise ValueError("no turn")

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Any, Any, str]:
        yield from ()
        raise ValueError(f"no words for {attempts[0].pod.key}")


class AlsoPlaces(Extension):
    name = "also-places"

    def is_used(self) -> bool:
        return True

    def place(self, attempt: Attempt, within: Any) -> Never:
        raise ValueError(f"{attempt.pod.key} {within}")


class PlacesToo(AlsoPlaces):
    name = "places-too"


def test_words_of_an_extension_reach_the_condition() -> None:
    play = Play(a_node("n").allocatable(cpu="1"), extensions=(LongWaits,))

    play.see(a_pod("large").requests(cpu="2"))

    assert play.condition()["message"].endswith("; it waits for 0 s")


def test_an_exception_costs_the_unit_its_attempt_and_no_other_pod() -> None:
    play = Play(a_node("n").allocatable(cpu="1"), extensions=(Broken,), contained=2)

    play.see(a_pod("large").requests(cpu="2"))
    assert "ValueError: no words for default/large" in play.condition()["message"]
    play.see(a_pod("small").requests(cpu="1"))

    assert play.the(Bind).node == "n"


def test_an_extension_that_raises_in_its_turn_pauses() -> None:
    Broken.turns = 0
    play = Play(a_node("n"), extensions=(Broken,), contained=2)

    play.turn(after_s=0.5)
    assert Broken.turns == 1
    play.turn(after_s=0.6)
    assert Broken.turns == 2
    play.turn(after_s=1.5)  # the pause has doubled
    assert Broken.turns == 2


def test_only_one_extension_searches_nodes() -> None:
    with pytest.raises(ValueError, match="may override place: also-places, places-too"):
        Play(a_node("n"), extensions=(AlsoPlaces, PlacesToo))
