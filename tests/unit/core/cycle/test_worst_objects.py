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
from asched_lab.measure.worst_pods import SHAPES, Filler, host_ports
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play

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


def filled(pod: PodBuilder, fill: Filler, n: int) -> PodBuilder:
    fill(pod.json, n)
    return pod


def a_life(fill: Filler, n: int) -> int:
    """Calls for three such pods on three nodes with as many labels, and taints of their own."""
    keys = {f"n{i}": "v" for i in range(n)}
    nodes = [
        a_node(f"n{i}").labels(zone=f"z{i}", **keys).taints(f"k=v{i}:{effect}")
        for i, effect in enumerate(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule"))
    ]
    play = Play(*nodes)

    def live() -> None:
        first, second = (filled(a_pod(name), fill, n).build() for name in ("first", "second"))
        running = filled(a_pod("running").on("n0"), fill, n).build()
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


@pytest.mark.parametrize("name", SHAPES)
def test_work_is_linear_in_what_one_object_holds(name: str) -> None:
    fill = SHAPES[name]
    a_life(fill, 10)  # imports and the like
    one, two = a_life(fill, FEW), a_life(fill, 2 * FEW)
    assert two <= one * GROWTH_MAX, f"{one} calls for {FEW}, {two} for {2 * FEW}"


def test_ports_that_are_freed_are_looked_up_by_those_who_wait() -> None:
    """A pod with other ports than those that the waiting pod could not get goes away."""

    def wait_and_lose(n: int) -> int:
        play = Play(a_node("n"))
        taken = a_pod("taken").on("n").host_port(80)
        waiting, leaving = (
            filled(pod, host_ports, n) for pod in (a_pod("waiting"), a_pod("leave").on("n"))
        )
        waiting.first["ports"].append({"containerPort": 80, "hostPort": 80})
        play.see(taken)
        play.see(leaving)
        play.see(waiting)
        return calls_of(lambda: play.lose(leaving))

    wait_and_lose(10)
    one, two = wait_and_lose(FEW), wait_and_lose(2 * FEW)
    assert two <= one * GROWTH_MAX, f"{one} calls for {FEW}, {two} for {2 * FEW}"
