"""Extensions of the cycle: what one raises costs no other pod."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, Never

import pytest

from asched.core.cycle.attempt import Attempt
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


class Places(Extension):
    """Leaves every pod to the next one."""

    name = "places"

    def is_used(self) -> bool:
        return True

    def place(self, attempt: Attempt, within: Any, otherwise: Any) -> Any:
        self.context.observer.complaint(f"{self.name}: {attempt.pod.metadata.name}")
        return (yield from otherwise(attempt, within))


class PlacesToo(Places):
    name = "places-too"


class MakesUnits(Places):
    name = "units"

    def unit(self, popped: Attempt, begin: Any) -> Never:
        raise ValueError(f"{popped.pod.key} {begin}")


class MakesUnitsToo(MakesUnits):
    name = "units-too"


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


class Restless(Extension):
    """Has work at once, in each turn."""

    name = "restless"
    turns = 0

    def is_used(self) -> bool:
        return True

    def begin_turn(self) -> Iterable[Never]:
        type(self).turns += 1
        return ()

    def next_deadline_s(self) -> float:
        return 0.0


def turns_at_once(play: Play) -> int:
    """Turns, as a process has them, until one is not due at once; no time passes."""
    before = Restless.turns
    for _ in range(5_000):
        due_s = play.machine.next_deadline_s()
        if due_s is None or due_s > play.now_s:
            break
        play.turn()
    return Restless.turns - before


def test_an_extension_that_is_never_done_pauses() -> None:
    play = Play(a_node("n").allocatable(cpu="1"), extensions=(Restless,))
    assert turns_at_once(play) <= 1_000
    play.see(a_pod("small").requests(cpu="1"))
    assert play.the(Bind).node == "n"

    for pause_s in (1.0, 2.0, 4.0):
        play.turn(after_s=pause_s - 0.1)
        assert turns_at_once(play) == 0
        play.turn(after_s=0.1)
        assert 0 < turns_at_once(play) <= 1_000


def test_an_extension_may_leave_a_pod_to_the_next() -> None:
    play = Play(a_node("n"), extensions=(Places, PlacesToo))
    play.see(a_pod("web"))
    assert play.the(Bind).node == "n"
    assert play.complaints == ["places: web", "places-too: web"]


def test_only_one_extension_makes_units() -> None:
    with pytest.raises(ValueError, match="may override unit: units, units-too"):
        Play(a_node("n"), extensions=(MakesUnits, MakesUnitsToo))
