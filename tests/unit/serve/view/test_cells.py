"""A cell per node: which resource is scarcest there, and how scarce."""

import asyncio
import random
from fractions import Fraction
from typing import Any

from asched.core.model.quantity import milli, whole
from asched.serve.view.cells import CORDONED, TAINTED, cells, one_node
from tests.builders import a_node, a_pod
from tests.playbook import Play


def told_of(play: Play) -> dict[str, Any]:
    return asyncio.run(cells(play.parts.cluster))


def cell(told: dict[str, Any], name: str) -> tuple[str, int, int]:
    at = told["names"].index(name)
    return told["resources"][told["scarce"][at]], told["share"][at], told["flags"][at]


def test_the_scarcest_resource_is_the_one_of_which_most_is_in_use() -> None:
    play = Play(
        a_node("cpu").allocatable(cpu="4", memory="16Gi"),
        a_node("memory").allocatable(cpu="4", memory="4Gi"),
        a_node("gpu").allocatable({"nvidia.com/gpu": "2"}),
        a_node("pods").allocatable(pods="2"),
        a_node("idle").cordoned().taints("a=b:NoSchedule"),
        a_node("tainted").taints("a=b:NoSchedule"),
        a_node("soft").taints("a=b:PreferNoSchedule"),
    )
    for node in ("cpu", "memory"):
        play.see(a_pod(f"on-{node}").requests(cpu="3", memory="3500Mi").on(node))
    play.see(a_pod("on-gpu").requests({"nvidia.com/gpu": "2"}).on("gpu"))
    play.see(a_pod("on-pods").on("pods"))
    told = told_of(play)
    assert told["count"] == 7
    assert cell(told, "cpu") == ("cpu", 75, 0)
    assert cell(told, "memory") == ("memory", 85, 0)
    assert cell(told, "gpu") == ("nvidia.com/gpu", 100, 0)
    assert cell(told, "pods") == ("pods", 50, 0)
    assert cell(told, "idle") == ("pods", 0, CORDONED + TAINTED)
    assert cell(told, "tainted")[2] == TAINTED
    assert cell(told, "soft")[2] == 0


def test_shares_are_those_of_exact_arithmetic_on_the_objects() -> None:
    rng = random.Random(3)
    nodes = {
        f"n{i}": a_node(f"n{i}").allocatable(
            cpu=f"{rng.randint(1, 9000)}m", memory=str(rng.randint(1, 1 << 40)), pods="50"
        )
        for i in range(60)
    }
    play, pods = Play(*nodes.values()), []
    for i in range(200):
        asked = {"cpu": f"{rng.randint(1, 500)}m", "memory": str(rng.randint(1, 1 << 34))}
        pod = a_pod(f"p{i}").requests(asked)
        pods.append(pod.on(rng.choice(list(nodes))))
        play.see(pod)
    told = told_of(play)
    for name, node in nodes.items():
        there = [pod.build() for pod in pods if pod.build().spec.node_name == name]
        offered = node.build().status.allocatable or {}
        asked = [pod.spec.containers[0].resources.requests or {} for pod in there]
        shares = {
            "pods": Fraction(len(there), 50),
            "cpu": Fraction(sum(milli(one["cpu"]) for one in asked), milli(offered["cpu"])),
            "memory": Fraction(
                sum(whole(one["memory"]) for one in asked), whole(offered["memory"])
            ),
        }
        resource, share, _ = cell(told, name)
        most = max(int(one * 100) for one in shares.values())
        assert abs(share - min(most, 999)) <= 1, name
        assert abs(min(int(shares[resource] * 100), 999) - share) <= 1, name


def test_one_node_in_full() -> None:
    play = Play(a_node("n1").allocatable(cpu="4", memory="8Gi", pods="10").taints("a=b:NoSchedule"))
    play.see(a_pod("web").requests(cpu="1500m").on("n1"))
    play.see(a_pod("being-bound").requests(cpu="500m").tolerates("a=b"))
    told = one_node(play.parts.cluster, "n1")
    assert told is not None
    assert (told["cordoned"], told["taints"], told["podCount"]) == (False, ["a=b:NoSchedule"], 2)
    first = told["resources"][0]
    assert first == {"resource": "cpu", "offered": "4", "held": "2", "share": 50}
    assert {(one["pod"], one["assumed"]) for one in told["pods"]} == {
        ("default/web", False),
        ("default/being-bound", True),
    }
    assert one_node(play.parts.cluster, "n2") is None
