"""Everything at a glance: what it says, what it leaves out, and what it costs to be asked often."""

from types import SimpleNamespace
from typing import Any, cast

from asched.serve.telemetry.metrics import Metrics
from asched.serve.view.gangs import one_gang
from asched.serve.view.live import LiveView
from tests.builders import a_node, a_pod
from tests.playbook import Play, a_member, gang_play, seen_group


def a_view(play: Play) -> LiveView:
    clock = SimpleNamespace(now_s=lambda: play.now_s)
    scheduler = SimpleNamespace(machine=play.machine, clock=clock, is_synced=True, pools=None)
    return LiveView(cast("Any", scheduler), Metrics(), "1.2.3", "1.37", lambda: False)


async def test_the_view_tells_who_answers_and_what_there_is() -> None:
    play = Play(a_node("n1").allocatable(cpu="1"))
    play.see(a_pod("web").requests(cpu="500m"))
    play.see(a_pod("large").requests(cpu="4"))
    told = await a_view(play).view(-1, 0)
    assert (told["version"], told["leads"], told["synced"]) == ("1.2.3", False, True)
    assert told["rules"] == "1.37"
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


async def test_pools_are_shown_with_the_pods_that_wait_and_those_that_are_stopped() -> None:
    pools = [{"name": "batch", "namespaces": ["jobs"]}]
    play = Play(a_node("n1").allocatable(cpu="1"), pools=pools)
    play.see(a_pod("large", "jobs").requests(cpu="4"))
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["web"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    play.see(a_pod("apart", "jobs").spec(affinity=apart))
    shown = (await a_view(play).view(-1, 0))["pools"]
    assert shown == [
        {"name": "batch", "holder": "", "waiting": 2, "stopped": 1, "gapSeconds": None},
        {"name": "default", "holder": "", "waiting": 0, "stopped": 0, "gapSeconds": None},
    ]
    assert (await a_view(Play()).view(-1, 0))["pools"] == []


async def test_names_of_nodes_are_sent_to_those_who_do_not_have_them() -> None:
    play = Play(a_node("n1"))
    view = a_view(play)
    first = await view.view(-1, 0)
    again = await view.view(first["nodes"]["generation"], 0)
    assert "names" not in again["nodes"]
    assert again["nodes"]["share"] == first["nodes"]["share"]
    assert "names" in (await view.view(first["nodes"]["generation"] + 1, 0))["nodes"]


async def test_gangs_that_wait_are_told_and_one_of_them_in_full() -> None:
    play = gang_play(a_node("n1").allocatable(cpu="2"))
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
