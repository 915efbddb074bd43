"""Extensions of the cycle: what one raises costs no other pod."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, Never

import pytest

from asched.core.cycle.context import Attempt
from asched.core.cycle.extension import Extension
from asched.core.framework.effects import Bind
from tests.builders import a_node, a_pod
from tests.playbook import Play


class Broken(Extension):
    name = "broken"
    turns = 0

    def is_used(self) -> bool:
        return True

    def begin_turn(self) -> Iterable[Never]:
        type(self).turns += 1
        raise ValueError("no turn")

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Any, Any, Never]:
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
