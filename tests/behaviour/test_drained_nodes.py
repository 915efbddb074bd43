"""Nodes that are drained: their pods move, and their new places are held before they leave."""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Refused, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET, REPLICA_SET, STATEFUL_SET
from asched.core.model.timestamp import rfc3339
from tests.builders import NodeBuilder, PodBuilder, a_pod, room
from tests.move_play import EPOCH_S, LIMIT_S, OLD, WAITING_S, MovePlay, drain_page_of, small
from tests.playbook import explained

FAR_S = int(EPOCH_S) + 7 * 86_400
CLOSED: dict[str, Any] = {"namespaces": []}


def asked(node: NodeBuilder, until_s: float = FAR_S, more: str = "") -> NodeBuilder:
    """A node with a request to drain it."""
    return node.cordoned().taints(f"asched.dev/drain={until_s}{more}:PreferNoSchedule")


def drain(play: MovePlay, name: str = "n1", more: str = "") -> None:
    play.go(Seen(NODE, asked(room(name, 4), more=more).build()))


def used(*pods: PodBuilder, **args: Any) -> MovePlay:
    """n1 with these pods, each of a ReplicaSet of its own, and two nodes that are empty."""
    play = MovePlay(*(room(f"n{n}", 4) for n in (1, 2, 3)), **{**CLOSED, **args})
    play.sets(*pods)
    return play


def page(play: MovePlay, **more: Any) -> dict[str, Any]:
    return drain_page_of(play, "n1", **more)


def fates(play: MovePlay, **more: Any) -> dict[str, str]:
    return {pod["pod"]: pod["fate"] for pod in page(play, **more)["pods"]}


def budget(play: MovePlay, app: str, allowed: int) -> None:
    metadata = {"name": "b", "namespace": "default", "uid": "uid-b"}
    spec = {"selector": {"matchLabels": {"app": app}}}
    body = {"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}}
    play.go(Seen(POD_DISRUPTION_BUDGET, decode(POD_DISRUPTION_BUDGET.record, body)))


def test_pods_leave_once_places_are_held_for_all_of_them() -> None:
    play = used(small("a", "n1"), small("b", "n1", "2"), maxMovesAtOncePerNamespace=1)
    play.leaves = False
    drain(play)
    play.wait(1)
    assert len(play.evicted) == 1
    assert sum(play.held().values()) == 2
    play.leaves = True
    play.go(*play.leave(play.parts.cluster.pods_seen[f"default/{play.evicted[0]}"]))
    play.wait(20)
    assert sorted(play.evicted) == ["a", "b"]
    nodes = [play.node(f"set-of-{name}-new-{n}") for n, name in enumerate(play.evicted, start=1)]
    assert "n1" not in nodes
    assert all(nodes)
    assert play.held() == {}
    assert {reason for _, reason, _ in play.said} >= {"Moved", "PlaceHeld"}
    play.audited()


def test_replicas_go_to_different_nodes() -> None:
    play = MovePlay(*(room(f"n{n}", 4) for n in (1, 2, 3)), **CLOSED)
    play.owned(REPLICA_SET, "web", small("a", "n1"), small("b", "n1"))
    drain(play)
    play.wait(30)
    assert {play.node("web-new-1"), play.node("web-new-2")} == {"n2", "n3"}


def test_a_successor_is_recognised_without_the_labels_of_the_node() -> None:
    """The API server copies labels of the node to a pod at its binding."""
    zone = {"topology.kubernetes.io/zone": "a"}
    play = MovePlay(*(room(name, 4).labels(zone) for name in ("n1", "n2")), **CLOSED)
    play.sets(small("a", "n1").labels(zone))
    play.copied = frozenset(zone)
    play.go(Seen(NODE, asked(room("n1", 4).labels(zone)).build()))
    play.wait(10)
    assert (play.evicted, play.node("set-of-a-new-1")) == (["a"], "n2")
    assert "PlaceHeld" in {reason for _, reason, _ in play.said}


def test_a_pod_of_a_stateful_set_moves() -> None:
    play = MovePlay(*(room(f"n{n}", 4) for n in (1, 2)), **CLOSED)
    play.owned(STATEFUL_SET, "db", small("db-0", "n1"))
    drain(play)
    play.wait(30)
    assert play.node_of("uid-new-1") == "n2"


@pytest.mark.parametrize(
    "node",
    [
        room("n1", 4).taints(f"asched.dev/drain={FAR_S}:PreferNoSchedule"),
        asked(room("n1", 4), until_s=int(EPOCH_S) - 1),
        room("n1", 4).cordoned().taints("asched.dev/drain=soon:PreferNoSchedule"),
        room("n1", 4).cordoned(),
    ],
    ids=["not cordoned", "over", "invalid", "no request"],
)
def test_no_pod_moves_without_a_valid_request(node: NodeBuilder) -> None:
    play = used(small("a", "n1"))
    play.go(Seen(NODE, node.build()))
    play.wait(120)
    assert play.evicted == []


def test_a_pod_without_another_place_stays() -> None:
    play = used(small("a", "n1"), small("b", "n1", "4"))
    play.turn(Seen(POD, a_pod("c").requests(cpu="1").on("n2").build()))
    play.turn(Seen(POD, a_pod("d").requests(cpu="1").on("n3").build()))
    assert fates(play) == {"default/a": "moves", "default/b": "nowhere"}
    drain(play)
    play.wait(60)
    assert play.evicted == ["a"]


STAY: dict[str, tuple[PodBuilder, str]] = {
    "DaemonSet": (
        small("x", "n1").metadata(
            ownerReferences=[
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
                | {"controller": True}
            ]
        ),
        "stays",
    ),
    "static": (
        small("x", "n1").metadata(annotations={"kubernetes.io/config.mirror": "x"}),
        "stays",
    ),
    "bare": (small("x", "n1"), "blocked"),
    "another scheduler": (small("x", "n1").spec(schedulerName="other"), "blocked"),
}


@pytest.mark.parametrize(("pod", "fate"), STAY.values(), ids=STAY.keys())
def test_some_pods_are_not_moved(pod: PodBuilder, fate: str) -> None:
    play = used()
    play.turn(Seen(POD, pod.metadata(creationTimestamp=OLD).build()))
    assert fates(play) == {"default/x": fate}
    drain(play)
    play.wait(60)
    assert play.evicted == []


def test_pods_with_data_on_the_node_move_only_if_that_may_be_deleted() -> None:
    pod = small("a", "n1").spec(volumes=[{"name": "data", "emptyDir": {}}])
    play = used(pod)
    assert fates(play) == {"default/a": "blocked"}
    assert fates(play, deletes_data=True) == {"default/a": "moves"}
    drain(play)
    play.wait(60)
    assert play.evicted == []
    drain(play, more=".delete-emptydir-data")
    play.wait(20)
    assert play.evicted == ["a"]


def test_a_young_pod_moves() -> None:
    """It may be the successor of a pod of the node that was drained before."""
    play = used(small("a", "n1").metadata(creationTimestamp=rfc3339(EPOCH_S)))
    drain(play)
    play.wait(10)
    assert play.evicted == ["a"]


def test_a_pod_waits_for_its_budget() -> None:
    play = used(small("a", "n1"), small("b", "n1"))
    budget(play, "set-of-a", 0)
    assert fates(play) == {"default/a": "waits", "default/b": "moves"}
    drain(play)
    play.wait(30)
    assert play.evicted == ["b"]
    assert "drain: n1 is drained; a place is held on n" in explained(play, "a")
    budget(play, "set-of-a", 1)
    play.wait(10)
    assert play.evicted == ["b", "a"]


def test_places_are_searched_again_after_a_plan_has_failed() -> None:
    play = used(small("a", "n1"))
    play.answers = [Refused(0, 500, "no")]
    drain(play)
    play.wait(60)
    assert play.evicted == ["a"]
    play = used(small("a", "n1"))
    budget(play, "set-of-a", 0)
    drain(play)
    play.wait(LIMIT_S + 10)
    budget(play, "set-of-a", 1)
    play.wait(30)
    assert play.evicted == ["a"]


def test_the_end_of_the_request_ends_the_moves() -> None:
    play = used(small("a", "n1"))
    budget(play, "set-of-a", 0)
    drain(play)
    play.wait(10)
    assert sum(play.held().values()) == 1
    play.go(Seen(NODE, room("n1", 4).cordoned().build()))
    play.wait(10)
    assert play.held() == {}
    budget(play, "set-of-a", 1)
    play.wait(60)
    assert play.evicted == []


def test_a_node_that_goes_away_ends_the_moves() -> None:
    play = used(small("a", "n1"))
    budget(play, "set-of-a", 0)
    drain(play)
    play.wait(10)
    play.go(Gone(NODE, play.parts.cluster.node_of("n1")))
    play.wait(10)
    assert play.held() == {}


def test_a_process_that_finds_a_request_begins_after_a_minute() -> None:
    """An earlier process may have moved as many pods as a minute allows."""
    play = MovePlay(asked(room("n1", 4)), room("n2", 4), **CLOSED)
    play.sets(small("a", "n1"))
    play.wait(50)
    assert play.evicted == []
    play.wait(20)
    assert play.evicted == ["a"]


def test_a_dry_run_of_the_plugin_moves_nothing() -> None:
    play = used(small("a", "n1"), dryRun=True)
    assert page(play)["why"] == "dryRun of the plugin Rebalance is set: no pod is moved"
    drain(play)
    play.wait(60)
    assert (play.evicted, play.held()) == ([], {})


def test_a_unit_gets_its_moves_beside_a_drain_that_cannot_go_on() -> None:
    play = used(small("a", "n1"), namespaces=["default"])
    budget(play, "set-of-a", 0)
    play.sets(small("b", "n2"), small("c", "n3"))
    drain(play)
    play.go(Seen(POD, a_pod("large").requests(cpu="4").build()))
    play.wait(WAITING_S + LIMIT_S + 60)
    assert play.node("large") != ""
