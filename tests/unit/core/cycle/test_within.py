"""Several replicas that share a cluster: each serves its own pods, within its own nodes.

Whose pods is `SchedulerContext.owns`, the names of the profiles; which nodes is what
kube-scheduler already has for it, the affinity that a profile adds to every pod of its own.
"""

from typing import Any

from asched.core.framework.effects import Bind, MarkVictim
from tests.builders import NodeBuilder, a_node, a_pod
from tests.playbook import Play

POOL = "pool"


def within(pool: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": POOL, "operator": "In", "values": [pool]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": required}}],
    }


def two_pools() -> tuple[NodeBuilder, NodeBuilder]:
    red = a_node("red").labels(pool="red").allocatable(cpu="2", pods="10")
    blue = a_node("blue").labels(pool="blue").allocatable(cpu="2", pods="10")
    return red, blue


def test_a_replica_places_its_pods_within_its_nodes() -> None:
    play = Play(*two_pools(), profiles=[within("red")])
    for number in range(2):
        play.see(a_pod(f"p{number}").requests(cpu="1"))
        assert play.the(Bind).node == "red"
    play.see(a_pod("third").requests(cpu="1"))
    message = play.condition()["message"]
    assert "1 Insufficient cpu" in message
    assert "1 node(s) didn't match scheduler-enforced node affinity" in message


def test_nobody_is_evicted_on_nodes_of_another_replica() -> None:
    play = Play(*two_pools(), profiles=[within("red")])
    for node in ("red", "blue"):
        play.see(a_pod(f"on-{node}").requests(cpu="2").on(node).priority(0))
    play.see(a_pod("urgent").requests(cpu="2").priority(10))
    assert play.the(MarkVictim).pod.name == "on-red"


def test_what_others_bind_within_its_nodes_counts() -> None:
    play = Play(*two_pools(), profiles=[within("red")])
    play.see(a_pod("foreign").requests(cpu="2").on("red").spec(schedulerName="another"))
    play.see(a_pod("late").requests(cpu="1"))
    assert play.of(Bind) == []
