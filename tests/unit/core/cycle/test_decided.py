"""What is kept of decisions, read back."""

from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.decision_records import BEST_MAX, NAMED_MAX, read
from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from tests.builders import a_node, a_pod
from tests.playbook import Play

SIZES = ("2", "4", "8", "16", "32", "64", "128")


def told(play: Play, name: str, step: DecisionStep) -> dict[str, Any]:
    lines = play.machine.context.histories.of(f"default/{name}")
    line, *_ = [line for line in lines if line.step is step]
    details = read(line)
    assert details is not None
    return details.as_json()


def test_a_decision_keeps_what_each_plugin_gave_to_it_and_to_the_best() -> None:
    play = Play(*(a_node(f"n{cpu}").allocatable(cpu=cpu, memory="8Gi") for cpu in SIZES))
    play.see(a_pod().requests(cpu="1", memory="1Gi"))
    (bind,) = play.of(Bind)
    kept = told(play, "web", DecisionStep.NODE)
    assert (kept["node"], kept["feasible"]) == (bind.node, len(SIZES))
    assert sum(one["weighted"] for one in kept["scores"]) == kept["score"]
    assert all(one["normalized"] * one["weight"] == one["weighted"] for one in kept["scores"])
    assert len(kept["best"]) == BEST_MAX
    totals = [one["score"] for one in kept["best"]]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == kept["score"]
    for one in kept["best"]:
        assert sum(part["weighted"] for part in one["scores"]) == one["score"]
    # LeastAllocated by hand: 1 of 64 CPU and 1 of 8 Gi are free but for (98 + 87) / 2.
    points = {
        one["node"]: {part["plugin"]: part["raw"] for part in one["scores"]} for one in kept["best"]
    }
    assert points["n64"]["NodeResourcesFit"] == (98 + 87) // 2


def test_a_rejection_keeps_which_nodes_said_what() -> None:
    play = Play(
        a_node("n1").allocatable(cpu="1"),
        a_node("n2").taints("team=a:NoSchedule"),
        a_node("n3").allocatable(cpu="2"),
        *(a_node(f"x{i}").cordoned() for i in range(NAMED_MAX + 5)),
    )
    play.see(a_pod().requests(cpu="4"))
    play.turn(Gone(NODE, a_node("n1").build()), Seen(NODE, a_node("other").cordoned().build()))
    named = {one["plugin"]: one for one in told(play, "web", DecisionStep.REJECTED)["reasons"]}
    assert named["NodeResourcesFit"]["named"] == ["n1", "n3"]
    assert named["TaintToleration"]["named"] == ["n2"]
    unschedulable = named["NodeUnschedulable"]
    assert unschedulable["nodes"] == NAMED_MAX + 5
    assert unschedulable["named"] == [f"x{i}" for i in range(NAMED_MAX)]


def test_victims_are_kept_with_their_priorities() -> None:
    play = Play(a_node("n1").allocatable(cpu="2"))
    for name, priority in (("low", 1), ("lower", 0)):
        play.see(a_pod(name).requests(cpu="1").priority(priority).on("n1"))
    play.see(a_pod().requests(cpu="2").priority(10))
    assert told(play, "web", DecisionStep.NOMINATED) == {
        "node": "n1",
        "victims": [
            {"pod": "default/low", "priority": 1},
            {"pod": "default/lower", "priority": 0},
        ],
    }
