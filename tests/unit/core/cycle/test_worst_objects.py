"""The worst that a tenant can write into one object costs the scheduler linear work.

Each pod here holds `n` of something. It is scheduled or rejected, a second one like it waits, and
the first one goes, so that filters, scores, hints and counters meet it. What is counted are calls
of functions: twice as many things may cost twice as many calls, never four times.
"""

import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod
from tests.plays.playbook import Play
from tests.unit.core.cycle.worst_objects import WORST, Worst, ports

FEW: Final = 100
#: Of twice as many things; what is there for every pod makes it less, rounding up a little more.
GROWTH_MAX: Final = 2.3


def calls_of(act: Callable[[], object]) -> int:
    """How many functions are called while it acts."""
    count = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def a_life(worst: Worst, n: int) -> int:
    """Calls for three such pods on three nodes with as many labels, and taints of their own."""
    keys = {f"n{i}": "v" for i in range(n)}
    nodes = [
        a_node(f"n{i}").labels(zone=f"z{i}", **keys).taints(f"k=v{i}:{effect}")
        for i, effect in enumerate(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule"))
    ]
    play = Play(*nodes)

    def live() -> None:
        first, second = (worst(a_pod(name), n).build() for name in ("first", "second"))
        running = worst(a_pod("running").on("n0"), n).build()
        play.turn(Seen(POD, running))
        play.see(first)
        play.see(second)
        for _ in range(50):
            play.turn()
        play.turn(Seen(NODE, a_node("n0").labels(zone="z0", more="yes", **keys).build()))
        play.lose(running)
        play.turn(after_s=20)
        play.lose(first)

    return calls_of(live)


@pytest.mark.parametrize("name", WORST)
def test_work_is_linear_in_what_one_object_holds(name: str) -> None:
    worst = WORST[name]
    a_life(worst, 10)  # imports and the like
    one, two = a_life(worst, FEW), a_life(worst, 2 * FEW)
    assert two <= one * GROWTH_MAX, f"{one} calls for {FEW}, {two} for {2 * FEW}"


def test_ports_that_are_freed_are_looked_up_by_those_who_wait() -> None:
    """A pod with other ports than those that the waiting pod could not get goes away."""

    def wait_and_lose(n: int) -> int:
        play = Play(a_node("n"))
        taken = a_pod("taken").on("n").host_port(80)
        waiting, leaving = ports(a_pod("waiting"), n), ports(a_pod("leave").on("n"), n)
        waiting.first["ports"].append({"containerPort": 80, "hostPort": 80})
        play.see(taken)
        play.see(leaving)
        play.see(waiting)
        return calls_of(lambda: play.lose(leaving))

    wait_and_lose(10)
    one, two = wait_and_lose(FEW), wait_and_lose(2 * FEW)
    assert two <= one * GROWTH_MAX, f"{one} calls for {FEW}, {two} for {2 * FEW}"
