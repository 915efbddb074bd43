"""What is kept of decisions, read back."""

from typing import Any

import numpy as np
import pytest

from asched.core.cycle.context import Attempt
from asched.core.cycle.decided import (
    BEST_APART_S,
    BEST_EVERY,
    BEST_MAX,
    NAMED_MAX,
    RecordedRejection,
    chosen,
    read,
)
from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import Bind
from asched.core.framework.runner import run_alone
from asched.core.model.kinds import NODE
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Gone, Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play

SIZES = ("2", "4", "8", "16", "32", "64", "128")


def told(play: Play, name: str, step: DecisionStep) -> dict[str, Any]:
    lines = play.machine.context.histories.of(f"default/{name}")
    line, *_ = [line for line in lines if line.step is step]
    details = read(line)
    assert details is not None
    return details.told()


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


def test_the_best_are_looked_for_now_and_then() -> None:
    play = Play(*(a_node(f"n{cpu}").allocatable(cpu=cpu) for cpu in SIZES))
    attempts = []
    for number in range(BEST_EVERY + 2):
        play.see(a_pod(f"w{number}").requests(cpu="10m"))
        kept = told(play, f"w{number}", DecisionStep.NODE)
        attempts.append(kept["bestAsOf"])
        assert sum(one["weighted"] for one in kept["scores"]) == kept["score"]
    assert len(set(attempts[:BEST_EVERY])) == 1
    assert attempts[-1] > attempts[0]


def test_pods_of_many_classes_are_not_each_looked_at_for_the_first_time() -> None:
    play = Play(*(a_node(f"n{cpu}").allocatable(cpu=cpu) for cpu in SIZES))
    for number in range(9):
        play.see(a_pod(f"w{number}").requests(cpu=f"{number + 1}m"))
    looked = ["best" in told(play, f"w{number}", DecisionStep.NODE) for number in range(9)]
    assert looked == [True] + [False] * 8
    play.turn(after_s=2 * BEST_APART_S)
    play.see(a_pod("late").requests(cpu="20m"))
    assert "best" in told(play, "late", DecisionStep.NODE)


def test_the_only_node_was_not_chosen_among_others() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod())
    kept = told(play, "web", DecisionStep.NODE)
    assert (kept["score"], "scores" in kept, "best" in kept) == (None, False, False)


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


def test_equal_rejections_are_kept_once() -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    kept = []
    for number in range(3):
        play.see(a_pod(f"w{number}").requests(cpu=str(4 + number)))
        (line,) = play.machine.context.histories.of(f"default/w{number}")
        details = read(line)
        assert isinstance(details, RecordedRejection)
        kept.append(details.pattern)
    assert kept[0] is kept[1] is kept[2]


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


@pytest.mark.parametrize("step", [DecisionStep.BOUND, DecisionStep.ERROR])
def test_plain_details_stay_as_they_are(step: DecisionStep) -> None:
    play = Play(a_node("n1"))
    histories = play.machine.context.histories
    histories.tell("default/web", 0.0, 1, step, "n1")
    assert read(histories.of("default/web")[0]) is None


def test_a_choice_among_part_of_the_nodes_names_no_best() -> None:
    play = Play(*(a_node(f"n{i}") for i in range(4)))
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    info = context.cluster.classes.info_of(a_pod().build())
    within = np.array([True, True, False, False])
    one = run_alone(runner.schedule(info, 1, within))
    attempt = Attempt(1, QueuedPod(info.pod, 0.0), info, runner, 0.0)
    kept = chosen(context, attempt, one)
    assert kept.best is None
    assert sum(kept.points[1::2]) == kept.score
    one = run_alone(runner.schedule(info, 1))
    context.now_s += 2 * BEST_APART_S
    kept = chosen(context, attempt, one)
    assert kept.best is not None
