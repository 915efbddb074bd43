"""What the pages see of the inside."""

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson

from asched.cli.explain import explanation
from asched.core.cluster.facts import Seen
from asched.core.config.defaults import configuration
from asched.core.model.kinds import NODE
from asched.serve.inspection import Inspection
from tests.builders import a_node, a_pod
from tests.playbook import GANGS, Play, a_member, room_for, seen_group

NO_AUDIT: Any = None


def inspection_of(play: Play) -> Inspection:
    return Inspection(play.machine.context, configuration({}), lambda: True, NO_AUDIT, NO_AUDIT)


def test_the_configuration_is_shown_without_private_keys() -> None:
    tls = {"certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    made = configuration({"extenders": [{"urlPrefix": "https://e/", "tlsConfig": tls}]})
    context: Any = SimpleNamespace(cluster=None)
    shown = Inspection(context, made, lambda: True, NO_AUDIT, NO_AUDIT).configuration()
    assert shown["extenders"][0]["tlsConfig"]["certData"] == "Y2VydA=="
    assert b"c2VjcmV0" not in orjson.dumps(shown)


def told_of(play: Play, name: str, against: str = "") -> dict[str, Any]:
    told = asyncio.run(inspection_of(play).explain("default", name, against))
    assert told is not None
    return dict(told)


def test_a_pod_that_fits_nowhere_is_told_what_is_missing_and_what_would_help() -> None:
    play = Play(
        a_node("n1").allocatable(cpu="1"),
        a_node("n2").allocatable(cpu="3"),
        a_node("n3").allocatable(cpu="8").taints("team=a:NoSchedule"),
    )
    for name in ("web", "web2", "web3"):
        play.see(a_pod(name).requests(cpu="4"))
    told = told_of(play, "web")
    assert (told["place"], told["alike"]) == ("unschedulable", 3)
    assert told["missing"] == []
    assert told["taints"] == [{"taint": "team=a:NoSchedule", "nodes": 1}]
    misses = told["now"]["nearestMisses"]
    assert [miss["node"] for miss in misses] == ["n3", "n2", "n1"]
    assert misses[1]["missing"] == {"cpu": {"asked": "4", "free": "3"}}
    assert misses[0]["taints"] == ["team=a:NoSchedule"]
    assert {(one["kind"], one["node"]) for one in told["changes"]} == {
        ("toleration", "n3"),
        ("request", "n2"),
    }


def test_a_change_tells_of_how_many_that_wait_for_the_same_it_helps() -> None:
    play = Play(a_node("n1").allocatable(cpu="4", memory="4Gi", pods="9").taints("a:NoSchedule"))
    for name in ("web", "web2", "web3"):
        play.see(a_pod(name).requests(cpu="2"))
    (change,) = [c for c in told_of(play, "web")["changes"] if c["kind"] == "toleration"]
    assert (change["takes"], change["of"]) == (2, 3)
    alone = Play(a_node("n1").allocatable(cpu="1"))
    alone.see(a_pod("web").requests(cpu="2"))
    assert all("takes" not in change for change in told_of(alone, "web")["changes"])


def test_a_gang_is_told_what_helps_all_that_must_start_together() -> None:
    play = Play(room_for(2), **GANGS)
    seen_group(play, 3)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    told = told_of(play, "a")
    assert told["now"]["feasible"] == 1
    assert told["together"] == 3
    (change,) = [change for change in told["changes"] if change["kind"] == "node"]
    assert (change["details"]["count"], change["takes"]) == (1, 3)
    lines = list(explanation(told))
    assert "any one of these changes makes the pod and 2 more pods of its gang fit" in lines
    assert "one more node like room-for-2  (enough for 3 of 3 waiting pods)" in str(lines)


def test_why_this_node_and_not_that_one() -> None:
    play = Play(
        a_node("small").allocatable(cpu="2"),
        a_node("large").allocatable(cpu="32"),
        a_node("tainted").taints("team=a:NoSchedule"),
    )
    web = a_pod().requests(cpu="1")
    play.see(web)
    play.see(web.on("large"))
    told = told_of(play, "web", "small")["against"]
    assert told["node"] == "small"
    assert "refused" not in told
    chosen = next(line for line in told_of(play, "web")["story"] if "scores" in line)
    assert (chosen["node"], chosen["score"] > told["scored"]["score"]) == ("large", True)
    told = told_of(play, "web", "tainted")["against"]
    assert told["refused"].startswith("TaintToleration: ")
    assert told["scored"] is None
    assert told_of(play, "web", "gone")["against"] == {
        "node": "gone",
        "refused": "there is no such node now",
    }


def test_a_pod_is_judged_against_another_node_as_if_it_were_nowhere() -> None:
    play = Play(a_node("n1").allocatable(cpu="2"), a_node("n2").allocatable(cpu="2"))
    label = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "rack"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [label]}}
    for name in ("n1", "n2"):
        rack = a_node(name).allocatable(cpu="2").labels(rack="r")
        play.turn(Seen(NODE, rack.build()))
    play.see(a_pod().labels(app="web").spec(affinity=apart).requests(cpu="2").on("n1"))
    assert "refused" not in told_of(play, "web", "n1")["against"]
    assert "refused" not in told_of(play, "web", "n2")["against"]
