"""Why pods wait, grouped."""

import asyncio
from typing import Any

from asched.serve.view.waiting import grouped
from tests.builders import a_node, a_pod
from tests.playbook import Play


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
            "reason": "gates it before the first attempt",
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


def test_nobody_waits() -> None:
    assert told_of(Play(a_node("n1"))) == {
        "pods": 0,
        "groups": [],
        "otherGroups": 0,
        "otherPods": 0,
    }
