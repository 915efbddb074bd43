"""Everything at a glance: what it says, what it leaves out, and what it costs to be asked often."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from asched.core.state.facts import Seen
from asched.serve.telemetry.metrics import Metrics
from asched.serve.view import live
from asched.serve.view.gangs import one_gang
from asched.serve.view.live import LiveView
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_gang_plays import a_member, a_play, seen_group


def a_view(play: Play) -> LiveView:
    clock = SimpleNamespace(now_s=lambda: play.now_s)
    scheduler = SimpleNamespace(machine=play.machine, clock=clock, is_synced=True)
    return LiveView(cast("Any", scheduler), Metrics(), "1.2.3", lambda: False)


async def test_the_view_tells_who_answers_and_what_there_is() -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    play.see(a_pod("web").requests(cpu="500m"))
    play.see(a_pod("large").requests(cpu="4"))
    told = await a_view(play).view(-1, 0)
    assert (told["version"], told["leads"], told["synced"]) == ("1.2.3", False, True)
    assert (told["pods"], told["placed"], told["profiles"]) == (2, 1, ["default-scheduler"])
    assert told["queues"] == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 1,
        "gated": 0,
        "inFlight": 0,
        "binding": 1,
    }
    assert told["waiting"]["pods"] == 1
    assert told["nodes"]["names"] == ["n1"]


async def test_names_of_nodes_are_sent_to_those_who_do_not_have_them() -> None:
    play = Play(a_node("n1"))
    view = a_view(play)
    first = await view.view(-1, 0)
    again = await view.view(first["nodes"]["generation"], 0)
    assert "names" not in again["nodes"]
    assert again["nodes"]["share"] == first["nodes"]["share"]
    assert "names" in (await view.view(first["nodes"]["generation"] + 1, 0))["nodes"]


async def test_long_looks_are_taken_once_for_all_askers_and_not_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(live, "counter_s", lambda: now_s[0])
    play = Play(a_node("n1"))
    view = a_view(play)
    looks = 0
    real = live.cells

    async def counted(cluster: Any) -> dict[str, Any]:
        nonlocal looks
        looks += 1
        now_s[0] += 0.5  # so long it took
        return await real(cluster)

    monkeypatch.setattr(live, "cells", counted)
    told = await asyncio.gather(*(view.view(-1, 0) for _ in range(5)))
    assert looks == 1
    assert {one["nodes"]["count"] for one in told} == {1}
    play.turn(Seen(NODE, a_node("n2").build()))
    now_s[0] += live.REST * 0.5 - 0.1
    assert (await view.view(-1, 0))["nodes"]["count"] == 1
    now_s[0] += 0.2
    assert (await view.view(-1, 0))["nodes"]["count"] == 2
    assert looks == 2


async def test_the_last_decisions_come_newest_first_and_choices_are_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    play.see(a_pod("large").requests(cpu="4"))
    play.see(a_pod("web").requests(cpu="500m"))
    play.bound(play.the(Bind))
    told = (await a_view(play).view(-1, 0))["recent"]
    assert [(one["pod"], one["what"], one.get("node")) for one in told] == [
        ("default/web", "bound", "n1"),
        ("default/large", "no node", None),
    ]
    play.see(a_pod("late").requests(cpu="500m"))
    (newest, *rest) = (await a_view(play).view(-1, 0))["recent"]
    assert (newest["pod"], newest["what"], newest["node"]) == ("default/late", "being bound", "n1")
    assert [one["what"] for one in rest] == ["bound", "no node"]
    monkeypatch.setattr(live, "RECENT_MAX", 1)
    assert len((await a_view(play).view(-1, 0))["recent"]) == 1


async def test_gangs_that_wait_are_told_and_one_of_them_in_full() -> None:
    play = a_play(a_node("n1").allocatable(cpu="2"))
    seen_group(play, min_count=3)
    for name in "abc":
        play.see(a_member(name))
    view = a_view(play)
    told = (await view.view(-1, 0))["gangs"]
    assert told["count"] == 1
    (gang,) = told["gangs"]
    assert (gang["group"], gang["unplaced"], gang["placed"], gang["minCount"]) == (
        *("default/crew", 3, 0, 3),
    )
    full = view.gang("default/crew")
    assert full is not None
    assert {one["pod"] for one in full["pods"]} == {"default/a", "default/b", "default/c"}
    assert {one["place"] for one in full["pods"]} <= {"unschedulable", "backoff", "active"}
    assert view.gang("default/other") is None
    assert one_gang(play.machine.context, "") is None


async def test_a_node_is_told_in_full() -> None:
    view = a_view(Play(a_node("n1")))
    assert view.node("n1") is not None
    assert view.node("n2") is None
