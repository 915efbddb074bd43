"""A failure is made smaller: what does not matter goes, and what is left repeats it."""

from typing import ClassVar

import pytest

from asched.core.queue.queue import SchedulingQueue
from asched_lab.sim.faults import BrokenWatches, LostAnswers, StaleWatch
from asched_lab.sim.scenario import WHOLE, Broken, Cut, Scenario, play
from asched_lab.sim.scenarios import SCENARIOS
from asched_lab.sim.shrinking import Shrinking
from asched_lab.sim.world import World


class Odd(Scenario):
    """Never lived; its faults are left out by name."""

    faults = (LostAnswers(rate=0.1), StaleWatch(lag_s_max=1), BrokenWatches(every_s=5))


class Lives:
    """Plays that fail as told: with these faults and these steps among those that are left."""

    needs: ClassVar = {"StaleWatch"}
    steps: ClassVar = {5, 11}

    def __init__(self, says: str = "pod a-1 sleeps") -> None:
        self.says = says
        self.played: list[Cut] = []

    def play(self, _: type[Scenario], seed: int, cut: Cut) -> None:
        self.played.append(cut)
        if not self.needs & set(cut.without) and self.steps <= set(cut.only or ()):
            with World(seed) as world:
                raise Broken("Odd", world, [self.says], cut)


def broken(steps: int) -> Broken:
    with World(7) as world:
        world.step_count = steps
        return Broken("Odd", world, ["pod b-17 sleeps"])


def test_what_does_not_matter_is_left_out() -> None:
    found = Shrinking(Odd, broken(20), live=Lives().play).run()

    assert found.cut == Cut(("LostAnswers", "BrokenWatches"), (5, 11), single=True)
    assert found.world.seed == 7


def test_another_rule_is_another_failure() -> None:
    first = broken(20)
    found = Shrinking(Odd, first, live=Lives("pod a-1 is bound twice").play).run()

    assert found is first


def test_a_cut_life_of_a_scenario_is_repeated_by_its_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is ever woken: that needs neither faults nor many pods."""
    monkeypatch.setattr(SchedulingQueue, "move", lambda *_, **__: 0)
    kind = SCENARIOS["Preemptors"]
    with pytest.raises(Broken) as first:
        play(kind, 3)
    small = Shrinking(kind, first.value, plays_max=12).run()
    with pytest.raises(Broken) as again:
        play(kind, 3, small.cut)

    assert first.value.cut == WHOLE
    assert len(small.cut.only or ()) < first.value.world.step_count
    assert small.cut.without
    assert list(again.value.world.trace) == list(small.world.trace)
    assert again.value.findings == small.findings


def test_an_exception_in_a_run_names_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def ill(*_: object, **__: object) -> None:
        raise RuntimeError("the queue is ill")

    monkeypatch.setattr(SchedulingQueue, "move", ill)
    with pytest.raises(Broken, match=r"scenario RollingDrain, seed 0: .*the queue is ill"):
        play(SCENARIOS["RollingDrain"], 0)
