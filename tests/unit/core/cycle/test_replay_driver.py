"""What decides is facts alone: a replay driver is a loop over what a machine was told.

`host/recording` does this from a file; here is the seam it hangs on, in its smallest form.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from asched.core.cluster.facts import Bound, Fact, Refused, Seen
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Bind, Effect
from asched.core.model.kinds import NODE
from asched_lab.replay.counted import CountedLimit
from tests.builders import PodBuilder, a_node, a_pod
from tests.unit.ops.recording.recorded import a_machine, ours


class Turn(NamedTuple):
    """What a machine was told and when, how often it went on, and what it asked for."""

    facts: list[Fact]
    at_s: float
    went_on: int
    resumed: bool
    effects: list[Effect]


def lived(machine: Machine, turns: Iterable[list[Fact]]) -> Iterator[Turn]:
    """In a world that refuses every third binding."""
    at_s, answers = 1000.0, list[Fact]()
    for facts in turns:
        at_s, told = at_s + 1.0, [*answers, *facts]
        effects = machine.handle(told, at_s)
        yield Turn(told, at_s, machine.limit.went_on, machine.limit.resumed, effects)
        asked = [effect.id for effect in effects if isinstance(effect, Bind)]
        answers = [Bound(id_) if id_ % 3 else Refused(id_, 409, "taken") for id_ in asked]


def replayed(machine: Machine, turns: Iterable[Turn]) -> Iterator[list[Effect]]:
    limit = machine.limit = CountedLimit()
    for turn in turns:
        limit.granted, limit.resumed = turn.went_on, turn.resumed
        yield machine.handle(turn.facts, turn.at_s)


def test_a_machine_told_the_same_asks_for_the_same() -> None:
    nodes: list[Fact] = [
        Seen(NODE, a_node(f"n{n}").allocatable(cpu="4", pods="20").build()) for n in range(5)
    ]
    pods: list[Fact] = [ours(a_pod(f"p{n}").requests(cpu=f"{300 + n}m")) for n in range(60)]
    machine = a_machine()
    machine.is_active = True
    history = list(lived(machine, [nodes, pods, *([] for _ in range(40))]))
    other = a_machine(monotonic_s=lambda: 0.0)
    other.is_active = True
    assert list(replayed(other, history)) == [turn.effects for turn in history]
    assert len({turn.went_on for turn in history}) > 1
    assert any(isinstance(fact, Refused) for turn in history for fact in turn.facts)


def repelling(pod: PodBuilder, key: str) -> PodBuilder:
    """For each of its terms all placed pods are counted."""
    terms = [
        {
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "zone",
                "labelSelector": {
                    "matchExpressions": [{"key": key, "operator": "NotIn", "values": [str(i)]}]
                },
            },
        }
        for i in range(40)
    ]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return pod.spec(affinity={"podAntiAffinity": {preferred: terms}})


def test_attempts_that_pause_go_on_in_the_same_turns() -> None:
    """By the clock of the one that was recorded, others had their share in some of the turns."""
    node = a_node("n").labels(zone="a").allocatable(cpu="99", pods="999")
    nodes: list[Fact] = [Seen(NODE, node.build())]
    nodes += [ours(a_pod(f"placed-{i}").labels(app=f"a{i}").on("n")) for i in range(300)]
    large: list[Fact] = [ours(repelling(a_pod(f"p{n}"), f"key-{n}")) for n in range(3)]
    others: list[list[Fact]] = [[ours(a_pod(f"o{n}").requests(cpu="1m"))] for n in range(60)]
    ticks = count()
    machine = a_machine(monotonic_s=lambda: next(ticks) / 1000)
    machine.is_active = True
    history = list(lived(machine, [nodes, large, *others, [], [], []]))
    other = a_machine(monotonic_s=lambda: 0.0)
    other.is_active = True
    assert list(replayed(other, history)) == [turn.effects for turn in history]
    assert {turn.resumed for turn in history} == {True, False}
    bound = [e.pod.name for turn in history for e in turn.effects if isinstance(e, Bind)]
    assert {"p0", "p1", "p2"} <= set(bound)
