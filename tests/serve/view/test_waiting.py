"""Why pods wait, grouped."""

import asyncio
from typing import Any

import pytest

from asched.serve.view import slices, waiting
from asched.serve.view.waiting import grouped
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


def told_of(play: Play) -> dict[str, Any]:
    context = play.machine.context
    return asyncio.run(grouped(context.queue, context.histories, play.now_s))


def a_crowd() -> Play:
    play = Play(
        a_node("n1").allocatable(cpu="1"),
        a_node("n2").allocatable(cpu="1"),
        a_node("n3").allocatable(cpu="64").taints("team=a:NoSchedule"),
    )
    for number in range(3):  # of three classes, and refused alike
        play.see(a_pod(f"large-{number}").requests(cpu=f"{4 + number}"))
    play.see(a_pod("huge").requests(cpu="400").tolerates("team=a"))
    play.see(a_pod("gated").gated("later"))
    return play


def test_pods_that_were_told_the_same_are_one_group_however_unequal_they_are() -> None:
    told = told_of(a_crowd())
    assert told["pods"] == 5
    first, second, third = told["groups"]
    assert first["pods"] == 3
    assert first["examples"] == ["default/large-0", "default/large-1", "default/large-2"]
    assert first["reasons"] == [
        {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 2},
        {"plugin": "TaintToleration", "reason": "node(s) had untolerated taint(s)", "nodes": 1},
    ]
    assert {second["examples"][0], third["examples"][0]} == {"default/huge", "default/gated"}
    by_pod = {group["examples"][0]: group["reasons"] for group in (second, third)}
    assert by_pod["default/gated"] == [
        {
            "plugin": "SchedulingGates",
            "reason": "holds it back before it is tried",
            "nodes": 0,
        }
    ]
    assert by_pod["default/huge"][0]["nodes"] == 3


def test_the_oldest_of_a_group_tells_how_long_it_waits() -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    play.see(a_pod("old").requests(cpu="4"))
    play.now_s += 60
    play.see(a_pod("young").requests(cpu="4"))
    play.now_s += 5
    (group,) = told_of(play)["groups"]
    assert (group["pods"], group["oldestSeconds"]) == (2, 65.0)


def test_a_pod_whose_history_is_forgotten_still_names_its_rejectors() -> None:
    play = a_crowd()
    histories = play.machine.context.histories
    for number in range(histories._lines_max):
        histories.tell("default/other", 0.0, number, waiting.Step.ERROR)
    reasons = [one for group in told_of(play)["groups"] for one in group["reasons"]]
    assert {"plugin": "NodeResourcesFit", "reason": "", "nodes": 0} in reasons


def test_groups_and_reasons_are_bounded_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "REASONS_MAX", 4)
    monkeypatch.setattr(waiting, "GROUPS_MAX", 2)
    monkeypatch.setattr(waiting, "EXAMPLES_MAX", 1)
    play = Play(a_node("n1"))
    for number in range(9):
        play.see(a_pod(f"p{number}").requests({f"example.com/r{number}": "1"}))
    told = told_of(play)
    assert sum(group["pods"] for group in told["groups"]) + told["otherPods"] == 9
    assert told["groups"][0]["pods"] == 5  # those beyond the fourth reason
    assert told["groups"][0]["reasons"][0]["reason"] == "other reasons"
    assert (len(told["groups"]), told["otherGroups"], told["otherPods"]) == (2, 3, 3)
    assert all(len(group["examples"]) == 1 for group in told["groups"])


def test_nobody_waits() -> None:
    assert told_of(Play(a_node("n1"))) == {
        "pods": 0,
        "groups": [],
        "otherGroups": 0,
        "otherPods": 0,
    }


async def test_others_have_their_turn_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    for number in range(40):
        play.see(a_pod(f"p{number}").requests(cpu="4"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(slices, "SLICE", 5)
    counting = asyncio.ensure_future(count())
    context = play.machine.context
    told = await grouped(context.queue, context.histories, play.now_s)
    counting.cancel()
    assert told["pods"] == 40
    assert turns >= 7
