"""Room that is held for ProvisioningRequests has an owner, a priority, a share and an end."""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import ELASTIC_QUOTA, NODE, POD, PROVISIONING_REQUEST
from asched.core.model.quotas import ElasticQuota
from tests.builders import a_pod, room
from tests.playbook import RequestPlay, consumer, held_play, request_play, restarted

LEAST_S = 3.0


def shared(*nodes: Any, percent: int = 10, **args: Any) -> RequestPlay:
    return request_play(*nodes, args={"maxNamespacePercentage": percent, **args})


# --- whose it is, and how much of it -------------------------------------------------------------


def test_a_namespace_holds_a_tenth_of_the_cluster_and_no_more() -> None:
    play = shared(*(room(f"n{number}", 4) for number in range(5)))
    for namespace in ("default", "team"):
        play.template(namespace=namespace)
    play.ask("first", sets={"worker": 2})
    assert play.settle("first")["Provisioned"] == ("True", "CapacityIsFound")
    play.ask("second", sets={"worker": 1})
    assert play.settle("second")["Provisioned"] == ("False", "CapacityIsNotFound")
    assert "namespace default would hold 3 cpu, and may hold 2" in play.message(
        "Provisioned", "second"
    )
    play.ask("other", sets={"worker": 2}, namespace="team")
    assert play.settle("other")["Provisioned"] == ("True", "CapacityIsFound")
    assert sum(play.held().values()) == 4
    play.audited()


def test_many_small_pods_are_a_share_of_the_pods() -> None:
    play = shared(room("n1", 64))  # 100 pods
    play.template("tiny", cpu="1m")
    play.ask(sets={"tiny": 11})
    assert play.settle()["Provisioned"] == ("False", "CapacityIsNotFound")
    assert "may hold 10: 10 % of the cluster" in play.message("Provisioned")


def test_room_of_a_request_that_ended_is_no_part_of_the_share() -> None:
    play = shared(*(room(f"n{number}", 4) for number in range(5)))
    play.template()
    play.ask("first", sets={"worker": 2})
    play.settle("first")
    play.turn(Gone(PROVISIONING_REQUEST, play.record("first")))
    play.ask("second", sets={"worker": 2})
    assert play.settle("second")["Provisioned"] == ("True", "CapacityIsFound")


def test_a_status_that_promises_more_than_the_share_holds_nothing() -> None:
    play = held_play(room("n1", 20), count=20)
    other = restarted(play, room("n1", 20))
    other = shared(room("n1", 20))
    other.now_s, other.stored, other.version = play.now_s, play.stored, play.version
    other.template()
    other.show("job")
    assert other.settle()["BookingExpired"] == ("True", "CapacityIsLost")
    assert other.held() == {}


def test_what_is_held_counts_against_the_quota_of_its_namespace() -> None:
    plugins = {
        "multiPoint": {"enabled": [{"name": "CheckAndHold"}, {"name": "CapacityScheduling"}]},
        "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
    }
    args = [{"name": "CheckAndHold", "args": {"maxNamespacePercentage": 100}}]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": args}
    play = RequestPlay(room("n1", 8), profiles=[own])
    limit = {"cpu": "3", "memory": "64Gi"}
    made = {"metadata": {"name": "q", "namespace": "default", "uid": "q"}}
    quota = decode(ElasticQuota, {**made, "spec": {"min": limit, "max": limit}})
    play.turn(Seen(ELASTIC_QUOTA, quota))
    play.template()
    play.ask("too-large", sets={"worker": 4})
    assert play.settle("too-large")["Provisioned"] == ("False", "CapacityIsNotFound")
    play.turn(Gone(PROVISIONING_REQUEST, play.record("too-large")))
    play.ask(sets={"worker": 2})
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")

    play.see(a_pod("large").requests(cpu="2"))
    assert not play.binds(), "two held and two more are beyond its max"
    play.see(consumer("a"))
    assert play.bindings()["a"] == "n1", "a pod that consumes the request is in it already"
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    play.turn(after_s=LEAST_S)
    assert "large" in play.bindings(), "one placed and two more"


def test_a_namespace_has_so_many_requests_without_an_end() -> None:
    play = request_play(room("n1", 1))
    play.template(cpu="2")
    for number in range(501):
        play.ask(f"job-{number}", sets={"worker": 1})
    play.template(cpu="2", namespace="team")
    play.ask("other", sets={"worker": 1}, namespace="team")
    for _ in range(60):
        play.settle("other")
        play.turn(after_s=1.0)
    ends = [name for name in play.stored if "Failed" in play.said(name)]
    assert ends == ["job-500"]
    assert play.said("other")["Provisioned"] == ("False", "CapacityIsNotFound")


# --- for how long --------------------------------------------------------------------------------


def test_a_request_may_hold_for_a_shorter_time_and_not_for_a_longer_one() -> None:
    play = request_play(room("n1", 4), args={"holdSeconds": 60})
    play.template()
    play.ask("long", sets={"worker": 1}, parameters={"holdSeconds": "61"})
    assert play.settle("long")["Failed"] == ("True", "FailedToCreatePods")
    assert "must be seconds, 1 to 60: '61'" in play.message("Failed", "long")
    play.ask("short", sets={"worker": 1}, parameters={"holdSeconds": "59"})
    play.settle("short")
    assert play.held() == {"n1": 1}
    play.turn(after_s=60.0)
    assert play.held() == {}


# --- who goes before it --------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [None, 2_147_483_647])
def test_a_priority_in_a_template_does_not_win_over_a_nominated_pod(priority: int | None) -> None:
    play = request_play(room("n1", 1))
    victim = a_pod("victim").requests(cpu="1").on("n1")
    play.see(victim)
    play.see(a_pod("vip").requests(cpu="1").priority(2_000_000_000))
    assert play.machine.context.nominator.node_of("uid-vip") == "n1"
    play.template(**({} if priority is None else {"priority": priority}))

    play.machine.is_active = False
    play.ask(sets={"worker": 1})
    play.lose(victim)
    play.machine.is_active = True
    play.turn()
    play.turn(after_s=LEAST_S)

    assert play.node_of("uid-vip") == "n1"
    assert play.held() == {}


def test_room_that_a_pod_of_the_request_leaves_is_left_to_a_nominated_pod() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    victim = consumer("a").priority(-10)
    play.see(victim)
    node = play.bindings()["a"]
    play.see(a_pod("preemptor").requests(cpu="1"))
    assert play.machine.context.nominator.node_of("uid-preemptor") == node

    play.lose(victim.on(node))
    play.turn(after_s=LEAST_S)

    assert play.bindings() == {"preemptor": node}
    assert node not in play.held()


def test_a_pod_above_the_priority_of_held_places_takes_one() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    play.see(a_pod("equal").requests(cpu="1"))
    assert play.bindings() == {}
    play.see(a_pod("vip").requests(cpu="1").priority(1))
    (node,) = set(play.bindings().values())
    assert play.node_of("uid-vip") == node
    play.turn(after_s=LEAST_S)
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")
    assert sum(play.held().values()) == 1, "the other place stays"
    assert play.bindings() == {}
    play.audited()


def test_places_without_room_beside_the_pod_are_looked_for_elsewhere_and_told() -> None:
    play = held_play(room("n1", 4).labels(kind="one"), count=4)
    play.turn(Seen(NODE, room("n2", 2).build()))
    play.see(a_pod("vip").requests(cpu="2").priority(1).selects(kind="one"))
    assert play.bindings() == {"vip": "n1"}
    play.turn(after_s=LEAST_S)
    play.settle()
    assert play.held() == {"n1": 2, "n2": 2}
    assert sorted(play.details()["places-0"].split(",")) == ["0/n1*2", "0/n2*2"]
    play.audited()


def test_a_pod_that_fits_nowhere_even_so_takes_nothing() -> None:
    play = held_play(room("n1", 2))
    play.see(a_pod("vip").requests(cpu="3").priority(1))
    play.see(a_pod("picky").requests(cpu="1").priority(1).selects(kind="none"))
    play.turn(after_s=LEAST_S)
    assert play.bindings() == {}
    assert play.held() == {"n1": 2}


def test_an_administrator_says_which_pods_held_places_give_way_to() -> None:
    play = request_play(room("n1", 1), args={"priority": 1000})
    play.template()
    play.ask(sets={"worker": 1})
    play.settle()
    play.see(a_pod("equal").requests(cpu="1").priority(1000))
    assert play.bindings() == {}
    play.see(a_pod("vip").requests(cpu="1").priority(1001))
    assert play.bindings() == {"vip": "n1"}


def test_a_pod_that_waited_takes_room_that_is_held_in_the_turn_in_which_it_came_free() -> None:
    play = request_play(room("n1", 2))
    other = a_pod("other").requests(cpu="2").priority(5).on("n1")
    play.see(other)
    play.see(a_pod("vip").requests(cpu="2").priority(5))
    play.template()
    play.ask(sets={"worker": 2})
    play.settle()
    assert play.held() == {}
    play.lose(other)
    play.turn(after_s=LEAST_S)
    play.settle()
    play.turn(after_s=LEAST_S)
    assert play.node_of("uid-vip") == "n1"


# --- what no admission has seen ------------------------------------------------------------------


def anti_affinity(**scope: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {}, **scope}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"affinity": anti_affinity(namespaceSelector={})}, "keeps pods of other namespaces away"),
        ({"affinity": anti_affinity(namespaces=["team"])}, "keeps pods of other namespaces away"),
        (
            {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 1}]}]},
            "has host ports",
        ),
    ],
)
def test_a_template_that_keeps_others_out_beyond_amounts_is_refused(
    spec: dict[str, Any], why: str
) -> None:
    play = request_play(room("n1", 4))
    play.template(**spec)
    play.ask(sets={"worker": 1})
    assert play.settle()["Failed"] == ("True", "FailedToCreatePods")
    assert why in play.message("Failed")
    assert play.held() == {}


def test_anti_affinity_within_the_namespace_is_held() -> None:
    play = request_play(room("n1", 4).labels(zone="a"), room("n2", 4).labels(zone="b"))
    play.template(affinity=anti_affinity())
    play.ask(sets={"worker": 2})
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")
    assert play.held() == {"n1": 1, "n2": 1}


# --- what it costs other tenants -----------------------------------------------------------------


def test_a_request_that_goes_lets_others_be_decided_for_at_once() -> None:
    places, classes = 300, 60
    play = request_play(*(room(f"n{number}", 10) for number in range(30)))
    play.template()
    play.ask(sets={"worker": places})
    while sum(play.held().values()) < places:
        play.turn()
    play.settle()
    for number in range(classes):
        play.see(a_pod(f"waits-{number}").requests(cpu=f"{11_000 + number}m"))
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    turns = 0
    play.see(a_pod("other").requests(cpu="1"))
    while not play.node_of("uid-other"):
        turns += 1
        assert turns < 30, "other pods wait while each place is reported by itself"
        play.turn()
    for _ in range(30):
        play.turn()
    assert play.held() == {}
    play.audited()


def test_pods_that_wait_get_the_places_of_a_request_that_goes() -> None:
    play = held_play(*(room(f"n{number}", 1) for number in range(5)), count=5)
    for number in range(5):
        play.see(a_pod(f"waits-{number}").requests(cpu="1"))
    assert not play.binds()
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    for _ in range(5):
        play.turn(after_s=LEAST_S)
    assert len({play.node_of(f"uid-waits-{number}") for number in range(5)} - {""}) == 5


def test_namespaces_are_answered_one_after_the_other() -> None:
    play = request_play(room("n1", 4))
    play.machine.is_active = False
    play.template("large", cpu="5")
    play.template(namespace="team")
    for number in range(10):
        play.ask(f"vain-{number}", sets={"large": 1})
    play.ask("other", sets={"worker": 1}, namespace="team")
    play.machine.is_active = True
    for _ in range(20):
        play.turn()
        answered = [patch.name for patch in play.patches()]
        if "other" in answered:
            break
    assert len(answered) <= 2
    assert play.held() == {"n1": 1}


def test_requests_that_found_no_place_come_after_new_ones() -> None:
    play = request_play(room("n1", 4))
    play.template("large", cpu="5")
    for number in range(10):
        play.ask(f"vain-{number}", sets={"large": 1}, namespace="default")
    for _ in range(12):
        play.settle("vain-9")
        play.turn()
    play.template()
    play.machine.is_active = False
    play.turn(after_s=30.0)
    play.turn(Seen(POD, a_pod("moves").on("n1").build()))
    play.ask("new", sets={"worker": 1})
    play.machine.is_active = True
    play.turn()
    assert play.held() == {"n1": 1}


def test_nothing_is_bound_twice() -> None:
    """The pod that a place gives way to, and the pods that wait for it, are decided for once."""
    play = held_play(room("n1", 1), count=1)
    play.see(a_pod("vip").requests(cpu="1").priority(1))
    play.see(consumer("a"))
    assert [one.pod.name for one in play.binds()] == ["vip"]
