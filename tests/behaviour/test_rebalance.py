"""Rebalance: pods move for a unit that waits, and their new places are held before they leave."""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Refused, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COSCHEDULING_GROUP,
    JOB,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    STATEFUL_SET,
)
from asched.core.model.timestamp import rfc3339
from tests.builders import PodBuilder, a_node, a_pod, room
from tests.move_play import (
    BACKOFF_S,
    EPOCH_S,
    LIMIT_S,
    OLD,
    WAITING_S,
    MovePlay,
    small,
)
from tests.playbook import GROUP_LABEL, a_label_group, explained


def large(name: str = "large", cpu: str = "3") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu)


def in_pieces(**args: Any) -> MovePlay:
    """Two nodes of four CPUs with three free each: no room for four on one of them."""
    play = MovePlay(room("n1", 4), room("n2", 4), **args)
    play.sets(small("web", "n1"), small("db", "n2"))
    return play


def test_a_pod_moves_so_that_a_large_one_fits() -> None:
    play = in_pieces()
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S - 1)
    assert play.evicted == []
    play.wait(2)
    (moved,) = play.evicted
    emptied, other = ("n1", "n2") if moved == "web" else ("n2", "n1")
    assert play.node("large") == emptied
    assert play.node(f"set-of-{moved}-new-1") == other
    assert play.held() == {}
    assert play.noted == ["large"], "the move is written down first"
    assert play.messages["large"] == "1 pod moved to make room for it, 1 in all"
    reasons = {(pod, reason) for pod, reason, _ in play.said}
    expected = {(moved, "Moved"), ("large", "PodsMove"), (f"set-of-{moved}-new-1", "PlaceHeld")}
    assert expected <= reasons
    play.audited()


def test_a_successor_is_recognised_without_the_labels_and_resources_of_its_node() -> None:
    """The API server copies labels of the node to a pod at its binding, and kubelets report what
    its containers have.
    """
    zone = {"topology.kubernetes.io/zone": "a"}
    play = MovePlay(*(room(name, 4).labels(zone) for name in ("n1", "n2")))
    play.turn(Seen(POD, a_pod("db", "closed").requests(cpu="1").on("n2").build()))
    requests = {"requests": {"cpu": "1"}}
    status = [{"name": "main", "resources": requests, "allocatedResources": {"cpu": "1"}}]
    play.sets(small("web", "n1").labels(zone).status(containerStatuses=status))
    play.copied = frozenset(zone)
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert (play.evicted, play.node("large")) == (["web"], "n1")
    assert "PlaceHeld" in {reason for _, reason, _ in play.said}


def test_the_places_are_held_before_the_pod_leaves() -> None:
    play = in_pieces()
    play.leaves = False
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 1)
    (moved,) = play.evicted
    assert play.held() == {"n1": 1, "n2": 1}
    play.go(Seen(POD, a_pod("rival").requests(cpu="3").build()))
    assert play.node("rival") == "", (
        "the room of the moved pod's new node and of its old one is held"
    )
    play.go(*play.leave(play.parts.cluster.pods_seen[f"default/{moved}"]))
    play.wait(10)
    assert play.node("large") != ""
    assert play.node(f"set-of-{moved}-new-1") != ""
    assert play.held() == {}


def test_a_gang_gets_the_room_that_is_in_pieces() -> None:
    play = MovePlay(*(room(f"n{n}", 4) for n in range(4)))
    play.sets(*(small(f"web-{n}", f"n{n}") for n in range(4)))
    play.go(Seen(COSCHEDULING_GROUP, a_label_group(minimum=2)))
    crew = [large(f"crew-{n}", "4").labels({GROUP_LABEL: "crew"}) for n in range(2)]
    play.go(*(Seen(POD, pod.build()) for pod in crew))
    play.wait(WAITING_S + 30)
    assert len(play.evicted) == 2
    assert {play.node("crew-0"), play.node("crew-1")} == {f"n{w[-1]}" for w in play.evicted}
    assert play.held() == {}
    play.audited()


#: Limits for gangs that need many moves.
WIDE: dict[str, Any] = {
    "maxMovesPerUnit": 32,
    "maxMovesPerMinute": 100,
    "maxMovesAtOncePerNamespace": 16,
    "maxMovesAtOncePerController": 4,
}


def in_many_pieces() -> MovePlay:
    """Thirty nodes in two zones, of which each has a pod of one CPU that runs nowhere else, but for
    the last one of each zone.
    """
    zones = {"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}
    play = MovePlay(*(room(f"n{number:02}", 4).labels(zones[number % 2]) for number in range(30)))
    for number in range(28):
        pinned = small(f"web-{number}", f"n{number:02}")
        play.sets(pinned.selects(**{"kubernetes.io/hostname": f"n{number:02}"}))
    return play


def test_the_one_pod_that_may_move_is_found_in_a_large_cluster() -> None:
    play = in_many_pieces()
    play.sets(small("free", "n28"))
    play.turn(Seen(POD, a_pod("db", "closed").requests(cpu="1").on("n29").build()))
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert (play.evicted, play.node("large")) == (["free"], "n28")


def test_a_pod_that_keeps_its_successor_away_moves_in_a_large_cluster() -> None:
    """No two of them may be in a zone: a successor has no place there before the pod has left."""
    play = in_many_pieces()
    term = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": {"is": "one"}},
    }
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("n28", "n29"):
        play.sets(small(f"on-{name}", name).labels(**{"is": "one"}).spec(affinity=away))
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    (moved,) = play.evicted
    assert play.node("large") == moved.removeprefix("on-")


def test_gangs_get_most_of_the_room_that_is_in_pieces() -> None:
    """40 nodes have 1 CPU free each, and two gangs need 32 in pieces of 2. For each pod of a gang a
    pod of 1 CPU has to leave; others are too large for any other node.
    """
    play = MovePlay(*(room(f"n{number:02}", 8) for number in range(40)), **WIDE)
    for size, count in ((1, 2), (2, 1), (3, 1)):
        names = [(f"of-{size}-{n}", f"n{n // count:02}") for n in range(40 * count)]
        play.owned(REPLICA_SET, f"of-{size}", *(small(*name, str(size)) for name in names))
    for gang in ("crew", "band"):
        play.go(Seen(COSCHEDULING_GROUP, a_label_group(gang, minimum=8)))
        pods = [large(f"{gang}-{n}", "2").labels({GROUP_LABEL: gang}) for n in range(8)]
        play.go(*(Seen(POD, pod.build()) for pod in pods))
        play.wait(WAITING_S + 120)
        assert all(play.node(f"{gang}-{n}") for n in range(8))
    assert len(play.evicted) == 16, "one for each pod"


def test_a_gang_of_eight_gets_eight_of_thirteen_nodes() -> None:
    sizes = (1, 1, 1, 2, 1, 1, 1, 2, 2, 2, 1, 1, 1)
    play = MovePlay(*(room(f"n{n:02}", 8) for n in range(len(sizes))), **WIDE)
    play.sets(*(small(f"web-{n}", f"n{n:02}", f"{cpu}") for n, cpu in enumerate(sizes)))
    play.go(Seen(COSCHEDULING_GROUP, a_label_group(minimum=8)))
    crew = [large(f"crew-{n}", "8").labels({GROUP_LABEL: "crew"}) for n in range(8)]
    play.go(*(Seen(POD, pod.build()) for pod in crew))
    play.wait(WAITING_S + 60)
    assert len(play.evicted) == 8
    assert all(play.node(f"crew-{n}") for n in range(8))


def test_nothing_moves_if_all_room_together_does_not_suffice() -> None:
    play = in_pieces()
    play.go(Seen(POD, large(cpu="7").build()))
    play.wait(WAITING_S + 30)
    assert play.evicted == []
    why = "; no pods are moved for it: all free room together does not suffice (Insufficient cpu)"
    assert play.messages["large"].endswith(why)


def test_a_dry_run_reports_the_plan() -> None:
    play = in_pieces(dryRun=True)
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert (play.evicted, play.noted, play.held()) == ([], [], {})
    message = play.messages["large"]
    assert "; 1 pod would move to make room: " in message
    assert message.endswith("(dryRun)")
    assert ("large", "PodsMove") in {(pod, reason) for pod, reason, _ in play.said}


def test_explain_says_what_was_found_and_when_it_is_searched_again() -> None:
    play = in_pieces()
    play.go(Seen(POD, large(cpu="7").build()))
    assert f"moves: the next search for a plan is due in {WAITING_S} s" in explained(play, "large")
    play.wait(WAITING_S + 30)
    text = explained(play, "large")
    why = "no pods are moved for it: all free room together does not suffice (Insufficient cpu)"
    assert f"moves: {why}; the next search for a plan is due in 5" in text


def test_explain_shows_a_plan_that_is_under_way() -> None:
    play, moved = begun()
    other = "n2" if moved == "web" else "n1"
    line = (
        f"moves: 1 pod would move to make room: {moved} to {other}; under way, 1 pod evicted so far"
    )
    assert line in explained(play, "large")


def test_pods_of_lower_priority_are_evicted_rather_than_moved() -> None:
    play = in_pieces()
    play.go(Seen(POD, large(cpu="4").priority(10).build()))
    play.wait(WAITING_S + 30)
    assert len(play.deleted) == 1
    assert play.evicted == []


def test_moves_come_before_preemption_where_the_profile_says_so() -> None:
    play = in_pieces(beforePreemption=True)
    play.go(Seen(POD, large(cpu="4").priority(10).build()))
    play.wait(WAITING_S + 30)
    assert (len(play.evicted), play.deleted) == (1, [])
    assert play.node("large") != ""


def test_preemption_comes_after_a_search_without_a_plan() -> None:
    play = in_pieces(beforePreemption=True, namespaces=["other"])
    play.go(Seen(POD, large(cpu="4").priority(10).build()))
    play.wait(WAITING_S - 1)
    assert play.deleted == []
    play.wait(30)
    assert len(play.deleted) == 1


# --- who may move --------------------------------------------------------------------------------


def annotated(pod: PodBuilder, **annotations: str) -> PodBuilder:
    names = {
        "safe": "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "disrupt": "karpenter.sh/do-not-disrupt",
    }
    return pod.metadata(annotations={names[key]: value for key, value in annotations.items()})


def with_volume(**source: Any) -> PodBuilder:
    return small("web", "n1").spec(volumes=[{"name": "data", **source}])


EXCLUDED = {
    "safe-to-evict: false": annotated(small("web", "n1"), safe="false"),
    "do-not-disrupt": annotated(small("web", "n1"), disrupt="true"),
    "emptyDir": with_volume(emptyDir={}),
    "hostPath": with_volume(hostPath={"path": "/data"}),
    "ephemeral volume": with_volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}),
    "claims of devices": small("web", "n1").spec(
        resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]
    ),
    "host ports": small("web", "n1").host_port(80),
    "young": small("web", "n1").metadata(creationTimestamp=rfc3339(EPOCH_S - 600)),
    "more important": small("web", "n1").priority(1),
    "another scheduler": small("web", "n1").spec(schedulerName="other"),
    "another scheduler's gang": small("web", "n1").metadata(annotations={"pod-group-name": "g"}),
    "terminating": small("web", "n1").metadata(deletionTimestamp=OLD),
}


def one_node(**args: Any) -> MovePlay:
    """Only a pod on n1 could move: the other one belongs to a namespace that is not opened."""
    play = MovePlay(room("n1", 4), room("n2", 4), **args)
    play.turn(Seen(POD, a_pod("db", "closed").requests(cpu="1").on("n2").build()))
    return play


def waits(play: MovePlay) -> bool:
    """Whether the large pod waits and no pod was moved."""
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    return play.evicted == [] and play.node("large") == ""


@pytest.mark.parametrize("pod", EXCLUDED.values(), ids=EXCLUDED.keys())
def test_some_pods_never_move(pod: PodBuilder) -> None:
    play = one_node()
    play.sets(pod)
    assert waits(play)


MAY_MOVE = {
    "plain": small("web", "n1"),
    "safe-to-evict: true": annotated(with_volume(emptyDir={}), safe="true"),
    "emptyDir in memory": with_volume(emptyDir={"medium": "Memory"}),
}


@pytest.mark.parametrize("pod", MAY_MOVE.values(), ids=MAY_MOVE.keys())
def test_other_pods_may(pod: PodBuilder) -> None:
    play = one_node()
    play.sets(pod)
    assert not waits(play)
    assert play.evicted == ["web"]


def test_a_bare_pod_does_not_move() -> None:
    play = one_node()
    play.turn(Seen(POD, small("web", "n1").metadata(creationTimestamp=OLD).build()))
    assert waits(play)


@pytest.mark.parametrize("kind", ["DaemonSet", "Node", "CronTab"])
def test_a_pod_of_another_controller_does_not_move(kind: str) -> None:
    play = one_node()
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
    pod = small("web", "n1").metadata(creationTimestamp=OLD, ownerReferences=[owner])
    play.turn(Seen(POD, pod.build()))
    assert waits(play)


def test_a_pod_whose_controller_is_gone_does_not_move() -> None:
    play = one_node()
    play.sets(small("web", "n1"))
    gone = play.parts.cluster.stored(REPLICA_SET, "default/set-of-web")
    play.turn(Gone(REPLICA_SET, gone))
    assert waits(play)


def test_a_pod_of_a_controller_that_scales_does_not_move() -> None:
    play = one_node()
    play.owned(REPLICA_SET, "web", small("web", "n1"), replicas=2)
    assert waits(play)


def test_a_pod_of_a_deployment_that_rolls_out_does_not_move() -> None:
    play = one_node()
    play.sets(small("web", "n1"), small("next", "n2"))
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d"}
    for name in ("set-of-web", "set-of-next"):
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]  # type: ignore[assignment]
        body = {"metadata": metadata, "spec": {"replicas": 1}}
        play.turn(Seen(REPLICA_SET, decode(REPLICA_SET.record, body)))
    assert waits(play)


def test_a_stateful_set_that_rolls_out_does_not_move() -> None:
    play = one_node()
    pods = (
        small(f"web-{n}", "n1", "500m").labels({"controller-revision-hash": f"r{n}"})
        for n in (0, 1)
    )
    play.owned(STATEFUL_SET, "web", *pods)
    assert waits(play)


IGNORES = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAILS = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}


@pytest.mark.parametrize(
    ("rules", "moves"), [([], False), ([IGNORES], True), ([FAILS, IGNORES], False)]
)
def test_a_job_moves_if_it_ignores_evictions(rules: list[Any], moves: bool) -> None:
    play = one_node()
    play.owned(JOB, "job", small("web", "n1"), podFailurePolicy={"rules": rules})
    assert waits(play) is not moves


@pytest.mark.parametrize(("minimum", "moves"), [(1, True), (2, False)])
def test_a_gang_keeps_its_minimum(minimum: int, moves: bool) -> None:
    play = MovePlay(room("n1", 4), room("n2", 4))
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group("old", minimum)))
    label = {GROUP_LABEL: "old"}
    play.sets(small("a", "n1").labels(label), small("b", "n2").labels(label))
    assert waits(play) is not moves


@pytest.mark.parametrize(("allowed", "moves"), [(1, True), (0, False)])
def test_a_disruption_budget_is_respected(allowed: int, moves: bool) -> None:
    play = one_node()
    play.sets(small("web", "n1"))
    metadata = {"name": "b", "namespace": "default", "uid": "uid-b"}
    spec = {"selector": {"matchLabels": {"app": "set-of-web"}}}
    body = {"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}}
    play.turn(Seen(POD_DISRUPTION_BUDGET, decode(POD_DISRUPTION_BUDGET.record, body)))
    assert waits(play) is not moves


def test_pods_of_an_opened_priority_class_move() -> None:
    play = one_node(namespaces=[], priorityClasses=["batch"])
    play.sets(small("web", "n1").spec(priorityClassName="batch"))
    assert not waits(play)


def test_no_pods_move_for_a_unit_below_the_priority() -> None:
    play = one_node(priority=5)
    play.sets(small("web", "n1"))
    assert waits(play)


def test_a_plan_costs_no_more_than_the_limits() -> None:
    play = MovePlay(room("n1", 4), room("n2", 4), room("n3", 2), maxMovesPerPod=1)
    play.sets(small("a", "n1"), small("b", "n1"), small("c", "n2"), small("d", "n2"))
    assert waits(play)
    assert play.messages["large"].endswith("no plan with up to 1 move was found")


def crowded(**args: Any) -> MovePlay:
    """Six nodes with a small pod each, and a gang that needs three nodes for itself."""
    play = MovePlay(*(room(f"n{n}", 4) for n in range(6)), **args)
    play.sets(*(small(f"web-{n}", f"n{n}") for n in range(6)))
    play.leaves = False
    play.go(Seen(COSCHEDULING_GROUP, a_label_group(minimum=3)))
    crew = [large(f"crew-{n}", "4").labels({GROUP_LABEL: "crew"}) for n in range(3)]
    play.go(*(Seen(POD, pod.build()) for pod in crew))
    play.wait(WAITING_S + 10)
    return play


@pytest.mark.parametrize("most", [1, 2, 3])
def test_few_pods_of_a_namespace_move_at_once(most: int) -> None:
    play = crowded(maxMovesAtOncePerNamespace=most)
    assert len(play.evicted) == most
    while len(play.evicted) < 3:
        left(play, play.evicted[-1])
        play.wait(6)
    assert play.held() != {}


def test_pods_of_a_controller_move_at_once_although_the_watch_is_late() -> None:
    """The answer to an eviction comes before the watch shows that the pod leaves."""
    play = MovePlay(room("n1", 4), room("n2", 6), maxMovesAtOncePerController=2)
    play.turn(Seen(POD, a_pod("db", "closed").requests(cpu="4").on("n2").build()))
    play.owned(REPLICA_SET, "web", small("web-0", "n1"), small("web-1", "n1"))
    play.is_late = True
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 5)
    assert sorted(play.evicted) == ["web-0", "web-1"]
    play.catch_up()
    play.wait(30)
    assert play.node("large") == "n1"


def test_few_pods_move_in_a_minute() -> None:
    play = crowded(maxMovesAtOncePerNamespace=3, maxMovesPerMinute=2)
    assert len(play.evicted) == 2
    play.wait(40)
    assert len(play.evicted) == 2
    play.wait(30)
    assert len(play.evicted) == 3


def test_held_places_of_requests_and_of_plans_exist_beside_each_other() -> None:
    play = in_pieces(plugins=("CheckAndHold",))
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert len(play.evicted) == 1
    assert play.node("large") != ""
    assert play.held() == {}


# --- what goes wrong -----------------------------------------------------------------------------


def begun(**args: Any) -> tuple[MovePlay, str]:
    """A plan whose pod was evicted, and terminates; the name of the pod."""
    play = in_pieces(**args)
    play.leaves = False
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 1)
    (moved,) = play.evicted
    return play, moved


def left(play: MovePlay, name: str) -> None:
    play.go(*play.leave(play.parts.cluster.pods_seen[f"default/{name}"]))


def test_an_eviction_that_a_budget_refuses_is_tried_again() -> None:
    play = in_pieces()
    play.answers = [Refused(0, 429, "no")] * 2
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 1)
    assert (play.evicted, sum(play.held().values())) == ([], 2), "the places are held meanwhile"
    play.wait(20)
    assert len(play.evicted) == 1
    assert play.node("large") != ""


def test_a_plan_that_budgets_refuse_is_given_up_in_the_end() -> None:
    play = in_pieces()
    play.answers = [Refused(0, 429, "no")] * 100
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + LIMIT_S + 10)
    assert (play.evicted, play.held()) == ([], {})


@pytest.mark.parametrize("code", [403, 500])
def test_a_refused_eviction_ends_the_plan(code: int) -> None:
    play = in_pieces()
    play.answers = [Refused(0, code, "no")]
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert (play.evicted, play.held()) == ([], {})
    assert bool(play.complaints) == (code == 403)
    play.wait(BACKOFF_S - 60)
    assert play.evicted == [], "nothing is repeated before the backoff"
    play.wait(90)
    assert len(play.evicted) == 1


def test_a_successor_that_does_not_come_ends_the_plan() -> None:
    play, moved = begun()
    play.replaces = False
    left(play, moved)
    play.wait(LIMIT_S + 10)
    assert play.node("large") != "", "its room is free"
    assert play.held() == {}
    play.audited()


def test_a_unit_that_goes_away_ends_the_plan() -> None:
    play, _ = begun()
    play.go(Gone(POD, large(cpu="4").build()))
    play.wait(1)
    assert play.held() == {}


def test_a_node_that_goes_away_ends_the_plan() -> None:
    play, moved = begun()
    play.go(Gone(NODE, play.parts.cluster.node_of("n1" if moved == "web" else "n2")))
    play.wait(1)
    assert play.held() == {}
    assert len(play.evicted) == 1
    assert "moving pods for it was abandoned (room)" in play.messages["large"]


def test_the_unit_gets_its_room_although_other_pods_take_that_of_a_successor() -> None:
    """The pod has left by then: to abandon the plan would help no other pod."""
    play, moved = begun()
    other = "n2" if moved == "web" else "n1"
    play.go(Seen(POD, a_pod("other").requests(cpu="3").on(other).build()))
    left(play, moved)
    play.wait(10)
    assert play.node("large") != ""
    assert play.held() == {}, "the plan is over"
    assert play.node(f"set-of-{moved}-new-1") == ""


def two_moves() -> MovePlay:
    """Two pods leave n1, one after the other, for nodes with one free CPU each. One has left."""
    play = MovePlay(room("n1", 4), *(room(f"n{n}", 1) for n in (2, 3, 4)), **ONE_AT_ONCE)
    play.sets(small("web", "n1"), small("db", "n1"))
    play.leaves = False
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 1)
    assert len(play.evicted) == 1
    return play


#: Pods of a namespace are moved one after the other.
ONE_AT_ONCE: dict[str, Any] = {"maxMovesAtOncePerNamespace": 1}


def place_said(play: MovePlay, name: str) -> str:
    """The node that the event of a moved pod names."""
    (note,) = [note for pod, reason, note in play.said if (pod, reason) == (name, "Moved")]
    return note.partition("a place on node ")[2].partition(" ")[0]


def test_a_pod_gets_another_place_if_other_pods_take_the_held_one() -> None:
    play = two_moves()
    (free,) = {"n2", "n3", "n4"} - set(play.held())
    place_of_first = place_said(play, play.evicted[0])
    (lost,) = {"n2", "n3", "n4"} - {free, place_of_first}
    play.go(Seen(POD, a_pod("other").requests(cpu="1").on(lost).build()))
    assert play.held() == {"n1": 1, place_of_first: 1, free: 1}
    play.leaves = True
    left(play, play.evicted[0])
    play.wait(30)
    assert sorted(play.evicted) == ["db", "web"]
    assert play.node("large") == "n1"
    assert play.held() == {}


def test_a_plan_without_another_place_is_abandoned() -> None:
    play = two_moves()
    place_of_first = place_said(play, play.evicted[0])
    lost = {"n2", "n3", "n4"} - {place_of_first}
    pods = [a_pod(f"other-{n}").requests(cpu="1").on(n) for n in lost]
    play.go(*(Seen(POD, pod.build()) for pod in pods))
    play.wait(1)
    assert (len(play.evicted), play.held()) == (1, {})


def test_no_further_pod_moves_for_a_unit_that_has_its_room() -> None:
    play = two_moves()
    play.go(Seen(NODE, room("n1", 6).build()))
    play.wait(10)
    assert play.node("large") == "n1"
    left(play, play.evicted[0])
    play.wait(30)
    assert len(play.evicted) == 1
    assert play.held() == {}


def test_a_successor_that_waits_does_not_hold_up_the_unit() -> None:
    play = MovePlay(*(room(f"n{n}", 4) for n in range(4)))
    play.sets(*(small(f"web-{n}", f"n{n}") for n in range(4)))
    play.leaves = False
    play.go(Seen(COSCHEDULING_GROUP, a_label_group(minimum=2)))
    crew = [large(f"crew-{n}", "4").labels({GROUP_LABEL: "crew"}) for n in range(2)]
    play.go(*(Seen(POD, pod.build()) for pod in crew))
    play.wait(WAITING_S + 1)
    assert len(play.evicted) == 2
    seen = [play.parts.cluster.pods_seen[f"default/{name}"] for name in play.evicted]
    others = {f"n{n}" for n in range(4)} - {pod.spec.node_name for pod in seen}
    play.go(*(Seen(NODE, room(name, 4).spec(unschedulable=True).build()) for name in others))
    gone, successors = zip(*(play.leave(pod) for pod in seen), strict=True)
    play.go(*successors)
    play.go(*gone, after_s=0.5)
    assert play.node("crew-0") != ""


def test_a_more_important_pod_takes_held_room() -> None:
    play, _ = begun()
    play.go(Seen(POD, a_pod("urgent").requests(cpu="3").priority(100).build()))
    assert play.node("urgent") != ""
    play.wait(1)
    assert play.held() == {}


def test_a_better_room_ends_the_plan() -> None:
    play, _ = begun()
    play.go(Seen(NODE, room("n3", 4).build()))
    play.wait(10)
    assert play.node("large") == "n3"
    play.wait(1)
    assert play.held() == {}


def test_a_successor_is_not_moved_again() -> None:
    """It is younger than pauseSeconds."""
    play = in_pieces()
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    (moved,) = play.evicted
    play.go(Gone(POD, play.parts.cluster.pods_seen["default/large"]))
    other = "n2" if moved == "web" else "n1"
    pinned = a_pod("pinned").requests(cpu="3").selects(**{"kubernetes.io/hostname": other})
    play.go(Seen(POD, pinned.build()))
    stays = play.node(f"set-of-{moved}-new-1")
    play.wait(WAITING_S + 30)
    assert f"set-of-{moved}-new-1" not in play.evicted
    assert play.node(f"set-of-{moved}-new-1") == stays


def test_pods_of_a_stateful_set_move_one_at_a_time() -> None:
    play = MovePlay(room("n1", 4), room("n2", 6), maxMovesAtOncePerController=5)
    play.turn(Seen(POD, a_pod("db", "closed").requests(cpu="4").on("n2").build()))
    play.owned(STATEFUL_SET, "web", small("web-0", "n1"), small("web-1", "n1"))
    play.leaves = False
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 30)
    assert len(play.evicted) == 1
    play.leaves = True
    left(play, play.evicted[0])
    play.wait(30)
    assert sorted(play.evicted) == ["web-0", "web-1"]
    assert play.node("large") == "n1"


def test_a_new_process_keeps_to_the_limits() -> None:
    """A unit for which pods were moved rests, whoever moved them."""
    play, _ = begun()
    noted = play.parts.cluster.pods_seen["default/large"]
    other = in_pieces()
    other.go(Seen(POD, noted))
    other.wait(WAITING_S + 30)
    assert other.evicted == []
    other.wait(BACKOFF_S)
    assert len(other.evicted) == 1
    assert other.messages["large"] == "1 pod moved to make room for it, 2 in all"


def test_a_chain_of_moves_is_carried_out_in_order() -> None:
    """The place of the first pod is free only once the second has left."""
    play = MovePlay(
        room("n1", 4),
        room("n2", 2).labels(disk="ssd"),
        room("n3", 1),
    )
    pinned = small("a", "n1", "2").spec(nodeSelector={"disk": "ssd"})
    play.parts.cluster.node_of("n1")
    play.turn(Seen(NODE, room("n1", 4).labels(disk="ssd").build()))
    play.sets(pinned, small("b", "n2", "1"))
    play.go(Seen(POD, large(cpu="4").build()))
    play.wait(WAITING_S + 60)
    assert play.evicted == ["b", "a"]
    assert play.node("large") == "n1"
    play.audited()


def test_a_unit_is_tried_again_without_the_plugin() -> None:
    play = MovePlay(a_node("n1").allocatable(cpu="1"))
    play.go(Seen(POD, large(cpu="2").build()))
    play.wait(WAITING_S + 30)
    assert "no pod may be moved" in play.messages["large"] or "suffice" in play.messages["large"]
